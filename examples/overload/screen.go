package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// screen shows the play while it runs: in a terminal a block of lines that is
// drawn anew four times a second and fits 80 columns, elsewhere one plain line a
// second.
type screen struct {
	w        io.Writer
	terminal bool
	paint    paint
	script   Script
	sides    []Side
	arrivals [2][stripCells]int // planned, by Endpoint

	now    int         // index into sides of the one that plays
	strips [][2]string // by side: what is drawn of it so far, by Endpoint
	drawn  int         // lines of the block on the screen
}

func newScreen(w io.Writer, script Script, sides []Side) *screen {
	s := &screen{w: w, script: script, sides: sides, now: -1, strips: make([][2]string, len(sides))}
	s.terminal = isTerminal(w)
	s.paint.colour = s.terminal && os.Getenv("NO_COLOR") == ""
	s.arrivals = s.planned()
	s.title()
	return s
}

// isTerminal reports whether cursor movements written to w do what we mean.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	if runtime.GOOS == "windows" && os.Getenv("WT_SESSION") == "" {
		return false // an old console shows the escapes
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (s *screen) title() {
	rate := s.script.Phases[Calm].Rate
	fmt.Fprintf(s.w, "%s\n\n", s.paint.bold(fmt.Sprintf("One dependency, a pool of %d connections to it, two endpoints that share it", poolSize)))
	fmt.Fprintf(s.w, "  /quick  %4.0f a second, each makes 1 call of 1 ms\n", rate[Quick])
	fmt.Fprintf(s.w, "  /slow   %4.0f a second, each makes %d calls of 10 ms, one after the other\n", rate[Slow], callsPerPage)
	fmt.Fprintf(s.w, "  An answer counts when it comes within %v; after %v the client hangs up.\n\n", deadline, patience)
}

// period is the time between two calls of show.
func (s *screen) period() time.Duration {
	if s.terminal {
		return 250 * time.Millisecond
	}
	return time.Second
}

func (s *screen) begin(side Side) {
	s.now++
	if !s.terminal {
		fmt.Fprintf(s.w, "%s\n%s\n", side, plainHeader)
	}
}

// show draws how things stand at time now of the script.
func (s *screen) show(now time.Duration, rec *recorder) {
	last, inFlight := rec.live(now)
	phase := s.script.Phases[s.script.at(now)]
	if !s.terminal {
		s.plainLine(now, phase, last, inFlight)
		return
	}
	s.strips[s.now] = s.strip(rec.all(), now)
	s.draw(s.block(now, phase, last, inFlight))
}

// end draws the finished side for the last time.
func (s *screen) end(now time.Duration, rec *recorder) {
	if s.terminal {
		s.strips[s.now] = s.strip(rec.all(), now)
		s.draw(s.lanes())
	} else {
		fmt.Fprintln(s.w)
	}
}

// close leaves the block as it stands. It may be called twice.
func (s *screen) close() {
	if s.drawn > 0 {
		fmt.Fprintln(s.w)
		s.drawn = 0
	}
}

// draw replaces the block, in one write so that it does not flicker. Lines
// that do not fit are cut by the terminal, never wrapped: the block must keep
// its height.
func (s *screen) draw(lines []string) {
	var b strings.Builder
	b.WriteString("\x1b[?7l")
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	for _, line := range lines {
		b.WriteString("\r" + line + "\x1b[K\n")
	}
	b.WriteString("\x1b[J\x1b[?7h")
	s.drawn = len(lines)
	_, _ = io.WriteString(s.w, b.String()) // a terminal that is gone is no reason to stop
}

// block is everything that is drawn anew: a lane per endpoint and side, and
// the figures of the last second.
func (s *screen) block(now time.Duration, phase Phase, last [2]Tally, inFlight [2]int) []string {
	lines := s.lanes()
	played := time.Duration(s.now)*s.script.length() + max(0, now)
	togo := max(0, time.Duration(len(s.sides))*s.script.length()-played)
	what := phase.Name + ": " + phase.Says
	if now < 0 {
		what = "warming up"
	}
	head := fmt.Sprintf("%s, %s", s.sides[s.now], what)
	lines = append(lines, "", s.paint.bold(left(head, 64))+s.paint.dim(right(fmt.Sprintf("%.0f s to go", togo.Seconds()), 13)),
		s.paint.dim("          "+right("served", 10)+right("refused", 12)+right("lost", 12)+right("p99", 15)+right("in flight", 15)))
	for e := range last {
		t := &last[e]
		lost := t.arrived() - t.Counts[Served] - t.Counts[Refused]
		bad := right(perSecond(float64(lost)), 12)
		if lost > 0 {
			bad = s.paint.bad(bad)
		}
		lines = append(lines, "  "+left(Endpoint(e).String(), 8)+
			s.paint.good(right(perSecond(float64(t.Counts[Served])), 10))+
			right(perSecond(float64(t.Counts[Refused])), 12)+bad+
			right(seconds(quantile(t.Latencies, 0.99)), 15)+
			right(strconv.Itoa(inFlight[e]), 15))
	}
	return lines
}

const plainHeader = "            |  /quick: served  refused    lost      p99  in flight" +
	" |  /slow: served  refused    lost      p99  in flight"

func (s *screen) plainLine(now time.Duration, phase Phase, last [2]Tally, inFlight [2]int) {
	name := phase.Name
	if now < 0 {
		name = "warm-up"
	}
	var line strings.Builder
	fmt.Fprintf(&line, "%3.0f %s", now.Seconds(), left(name, 8))
	for e := range last {
		t := &last[e]
		lost := t.arrived() - t.Counts[Served] - t.Counts[Refused]
		fmt.Fprintf(&line, " | %s %s %s %s %s",
			right(perSecond(float64(t.Counts[Served])), 15-e), right(perSecond(float64(t.Counts[Refused])), 8),
			right(perSecond(float64(lost)), 7), right(seconds(quantile(t.Latencies, 0.99)), 8), right(strconv.Itoa(inFlight[e]), 10))
	}
	fmt.Fprintln(s.w, line.String())
}
