package main

import (
	"fmt"
	"io"
	"time"
)

func header(out io.Writer) {
	fmt.Fprintln(out, "               unguarded    breaker                    throttle")
	fmt.Fprintln(out, "    s  it       ok  bad     ok  bad   no               ok  bad   no")
}

// print writes what the breaker told in this second, and the second.
func (l line) print(out io.Writer, number int, changes <-chan string) {
	for {
		select {
		case c := <-changes:
			fmt.Fprintln(out, c)
			continue
		default:
		}
		break
	}
	a, b, c := l.seen[0], l.seen[1], l.seen[2]
	fmt.Fprintf(out, "%5d  %-6v %4d %4d   %4d %4d %4d %-10s  %4d %4d %4d %s\n",
		number, l.mood, a.ok, a.failed, b.ok, b.failed, b.refused, l.states[1], c.ok, c.failed, c.refused, l.states[2])
}

// sum adds up the seconds in which the dependency was in a mood.
func sum(lines []line, caller int, in func(mood) bool) (t tally) {
	for _, l := range lines {
		if in(l.mood) {
			s := l.seen[caller]
			t = tally{t.ok + s.ok, t.failed + s.failed, t.refused + s.refused, t.waited + s.waited}
		}
	}
	return t
}

func down(m mood) bool { return m != works }

// healed is after how many seconds of the last act a caller was served for all of a second, or 0.
func healed(lines []line, caller int) int {
	last := script[len(script)-1].seconds
	for i, l := range lines[len(lines)-last:] {
		if s := l.seen[caller]; s.failed+s.refused == 0 {
			return i + 1
		}
	}
	return 0
}

// report says what it came to.
func report(out io.Writer, lines []line) error {
	fmt.Fprintln(out, "\nWhile it was down:     reached it   callers waited   all is well in second")
	for i, name := range []string{"unguarded", "breaker", "throttle"} {
		t := sum(lines, i, down)
		if _, err := fmt.Fprintf(out, "  %-18s %8d calls %14v %12d\n", name, t.sent(), t.waited.Round(10*time.Millisecond), healed(lines, i)); err != nil {
			return err
		}
	}
	return nil
}
