package main

import (
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"time"
)

const (
	labelWidth  = 50
	columnWidth = 13
)

// writeText prints a table per phase, the sides beside each other, each with
// the line that says what it means, and the promises at the end.
func (r *Report) writeText(w io.Writer, p paint) error {
	var b strings.Builder
	for i := range r.Sides[0].Phases {
		r.table(&b, p, i)
	}
	if len(r.Checks) > 0 {
		r.promises(&b, p)
	}
	if r.Grow != nil && r.Hang != nil {
		r.story(&b, p)
	}
	if noise := r.noise(); noise > 5*time.Millisecond {
		says := fmt.Sprintf("A busy machine: the client was up to %s late", seconds(noise))
		if g := r.side(Guarded); g != nil {
			says += fmt.Sprintf(", %.0f ms calls took %.1f ms", ms(slowCall), g.Phases[Burst].Slow.CallMS)
		}
		fmt.Fprintf(&b, "  %s\n", p.middle(says+"."))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// noise is the worst lateness of the sender.
func (r *Report) noise() time.Duration {
	worst := 0.0
	for i := range r.Sides {
		for j := range r.Sides[i].Phases {
			worst = max(worst, r.Sides[i].Phases[j].LatenessMS)
		}
	}
	return fromMS(worst)
}

// promises prints what the guard promises and whether it held.
func (r *Report) promises(b *strings.Builder, p paint) {
	b.WriteString(p.bold(left("What the guard promises", labelWidth)))
	for _, side := range r.Sides {
		b.WriteString(p.dim(right(string(side.Side), columnWidth)))
	}
	b.WriteString("\n")
	for _, check := range r.Checks {
		mark, figure := p.good("ok  "), p.good(right(check.Guarded, columnWidth))
		if !check.OK {
			mark, figure = p.bad("MISS"), p.bad(right(check.Guarded, columnWidth))
		}
		b.WriteString("  " + mark + "  " + left(check.Promise, labelWidth-8))
		if check.Beside != "" {
			b.WriteString(right(check.Beside, columnWidth))
		}
		b.WriteString(figure + "\n")
	}
	fmt.Fprintf(b, "  %s\n", p.dim("/slow can serve "+r.CapacitySays+"."))
}

// table prints phase i.
func (r *Report) table(b *strings.Builder, p paint, i int) {
	first := r.Sides[0].Phases[i]
	title := left(first.Name, 10)
	b.WriteString(p.bold(title) + left(first.Says, labelWidth-len(title)))
	for _, side := range r.Sides {
		b.WriteString(p.dim(right(string(side.Side), columnWidth)))
	}
	b.WriteString("\n")
	row := func(endpoint, label string, cell func(*PhaseReport) string) {
		b.WriteString("  " + left(endpoint, 8) + left(label, labelWidth-10))
		for j := range r.Sides {
			b.WriteString(cell(&r.Sides[j].Phases[i]))
		}
		b.WriteString("\n")
	}
	plain := func(text string) string { return right(text, columnWidth) }
	quiet := func(n int, text string) string { // nothing to see is not worth ink
		if n == 0 {
			return p.dim(plain("-"))
		}
		return plain(text)
	}
	row("/quick", "served in time", func(f *PhaseReport) string {
		return p.byShare(f.Quick.Success, plain(percent(f.Quick.Success)))
	})
	row("", "p99", func(f *PhaseReport) string { return plain(seconds(fromMS(f.Quick.P99MS))) })
	row("/slow", "served in time", func(f *PhaseReport) string {
		text := plain(perSecond(f.Slow.Goodput))
		if possible := r.possible(i, f); possible > 0 {
			return p.byShare(f.Slow.Goodput/possible, text)
		}
		return text
	})
	row("", "p99", func(f *PhaseReport) string {
		return quiet(f.Slow.Arrived-f.Slow.Refused, seconds(fromMS(f.Slow.P99MS)))
	})
	row("", "refused (503, Retry-After)", func(f *PhaseReport) string {
		return quiet(f.Slow.Refused, perSecond(float64(f.Slow.Refused)/f.Seconds))
	})
	row("", "lost (late, failed, given up)", func(f *PhaseReport) string {
		return quiet(f.Slow.lost(), perSecond(float64(f.Slow.lost())/f.Seconds))
	})
	row("", "most at one time inside the handler", func(f *PhaseReport) string { return plain(strconv.Itoa(f.Slow.Running)) })
	if says := r.meaning(i); says != "" {
		b.WriteString("  " + says + "\n")
	}
	b.WriteString("\n")
}

// possible is how many pages a second the slow endpoint could serve in phase
// i: what arrives, or what its places have room for.
func (r *Report) possible(i int, f *PhaseReport) float64 {
	capacity := r.Capacity
	switch i {
	case Slowed:
		capacity *= slowCall.Seconds() / slowedCall.Seconds()
	case Hang:
		capacity = 0
	}
	return min(float64(f.Slow.Arrived)/f.Seconds, capacity)
}

// meaning is the one line that says what the figures of phase i mean; there is
// none when only one side was played.
func (r *Report) meaning(i int) string {
	g, u := r.side(Guarded), r.side(Unguarded)
	if g == nil || u == nil {
		return ""
	}
	quick := func(s *SideReport) string { return percent(s.Phases[i].Quick.Success) }
	slow := func(s *SideReport) string { return perSecond(s.Phases[i].Slow.Goodput) }
	switch i {
	case Calm:
		if min(g.Phases[i].Quick.Success, g.Phases[i].Slow.Success) < leastSuccess {
			return "Not everybody is served even now: this machine or these rates cannot carry the example."
		}
		return "Everybody is served: as long as there is room, the guard does not show."
	case Burst:
		return fmt.Sprintf("Refusing the rest at once, /slow serves %s; with everybody queueing, %s.", slow(g), slow(u))
	case Slowed:
		return fmt.Sprintf("/slow may hold %d of the %d connections: /quick serves %s, otherwise %s.", r.SlowPlaces, r.Pool, quick(g), quick(u))
	case Hang:
		return fmt.Sprintf("What hangs takes down /slow alone (/quick: %s), or everything (%s).", quick(g), quick(u))
	}
	back := "is back at once, when its"
	switch {
	case g.RecoveryMS < 0:
		return "/slow is not back within the phase: see the promise below."
	case g.RecoveryMS > 0:
		back = fmt.Sprintf("is back %s after the dependency: its", after(g.RecoveryMS))
	}
	return "/slow " + back + " last hung calls have timed out."
}

// story prints what the guard did by itself.
func (r *Report) story(b *strings.Builder, p paint) {
	fmt.Fprintf(b, "\n%s%s\n", p.bold(left("What it does by itself", labelWidth)), p.dim(fmt.Sprintf("a key with %d places, calls of 10 ms", storyPlaces)))
	tell := func(title string, lines []string, most int) {
		for i, line := range lines {
			if i == most {
				line = fmt.Sprintf("... %d more", len(lines)-most)
			}
			fmt.Fprintf(b, "  %s%s\n", left(title, 10), line)
			if title = ""; i == most {
				break
			}
		}
	}
	tell("burst", r.Grow.Bound, 3)
	tell("hang", r.Hang.Bound, 1)
	if r.Hang.Slow == "" {
		return
	}
	tell("", []string{r.Hang.Slow + ":"}, 1)
	for _, frame := range shorten(r.Hang.Stack) {
		fmt.Fprintf(b, "  %s%s\n", left("", 12), p.dim(frame))
	}
}

// shorten keeps of a stack the innermost function and those of this program, without the folders of their files.
func shorten(stack []string) (list []string) {
	for i, frame := range stack {
		function, place, _ := strings.Cut(frame, " ")
		if i > 0 && !strings.HasPrefix(function, "main.") {
			continue
		}
		list = append(list, function+" "+path.Base(place))
	}
	return list
}
