package watchdog

import (
	"fmt"
	"strings"
	"time"

	"github.com/spillway-go/spillway/registry"
)

// Kind says what a Report is about.
type Kind uint8

// The kinds of reports, and how they are spelled in the log.
const (
	Slow    Kind = iota + 1 // "slow": calls became older than their key's slow
	Still                   // "still_slow": they passed twice that age, four times, eight times, ...
	More                    // "more_slow": as many more such calls, in groups that a page has no lines for
	Ended                   // "slow_ended": late calls are over
	Lost                    // "lost": a pass became unreachable without Exit, and its place was taken back
	Evicted                 // "evicted": a stuck call lost its place to a newcomer, and runs on
	Trouble                 // "watchdog": the watchdog's own trouble, in Problem
)

var kindNames = [...]string{Slow: "slow", Still: "still_slow", More: "more_slow", Ended: "slow_ended", Lost: "lost", Evicted: "evicted", Trouble: "watchdog"}

func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Report is one line of the log. It is about one call, or about a group of calls that have the key and the stack in common.
type Report struct {
	Kind  Kind
	Time  time.Time
	Key   registry.Key // not of More and Trouble
	Count int          // calls
	// Goroutines that entered, oldest call first, at most ten of them.
	Goroutines []uint64
	// Age of the oldest call, Youngest of the youngest. At the end they are known to within one Config.Period, rounded up.
	Age, Youngest time.Duration
	Slow          time.Duration // the key's threshold
	InFlight      int           // of the key, or its group
	Bound         int
	// Stack of the goroutines, innermost function first, "main.work /src/shop/work.go:41". NoStack says why there is none.
	Stack   []string
	NoStack NoStack
	Groups  int    // More: of how many groups
	Site    string // Lost, Evicted: where the pass was taken, if known
	// Suppressed are reports that there was no time for since the last page: of calls that ended or grew twice as old before.
	Suppressed uint64
	Problem    string // Trouble: what is wrong
}

// String is the report in a sentence, without the stack.
func (r Report) String() string {
	calls := fmt.Sprintf("a call of %q", r.Key)
	if r.Count != 1 {
		calls = fmt.Sprintf("%d calls of %q", r.Count, r.Key)
	}
	switch r.Kind {
	case Slow:
		return fmt.Sprintf("%s %s for %s", calls, r.verb("runs", "run"), r.ages())
	case Still:
		return fmt.Sprintf("%s still %s, for %s", calls, r.verb("runs", "run"), r.ages())
	case More:
		return fmt.Sprintf("%d more late calls, in %d groups", r.Count, r.Groups)
	case Ended:
		return fmt.Sprintf("%s ended after %s", calls, r.ages())
	case Lost:
		return fmt.Sprintf("the pass of %s was lost without Exit after %s", calls, r.ages())
	case Evicted:
		return fmt.Sprintf("%s lost %s place after %s and %s on", calls, r.verb("its", "their"), r.ages(), r.verb("runs", "run"))
	case Trouble:
		return "the watchdog: " + r.Problem
	default:
		return r.Kind.String()
	}
}

func (r Report) verb(one, many string) string {
	if r.Count == 1 {
		return one
	}
	return many
}

func (r Report) ages() string {
	oldest, youngest := r.Age.Round(time.Millisecond), r.Youngest.Round(time.Millisecond)
	if r.Count == 1 || youngest == oldest {
		return oldest.String()
	}
	return fmt.Sprintf("%v to %v", youngest, oldest)
}

// maxExamples is how many goroutines a report names.
const maxExamples = 10

// group gathers what becomes one report.
type group struct {
	Report

	order int // in which the groups of a page came up
}

// add takes one more call into the group.
func (g *group) add(goroutine uint64, age time.Duration) {
	if g.Count == 0 || age > g.Age {
		g.Age = age
	}
	if g.Count == 0 || age < g.Youngest {
		g.Youngest = age
	}
	g.Count++
	if len(g.Goroutines) < maxExamples {
		g.Goroutines = append(g.Goroutines, goroutine)
	}
}

// larger orders groups for people: many calls first, then old ones.
func larger(x, y *group) int {
	switch {
	case x.Count != y.Count:
		return y.Count - x.Count
	case x.Age != y.Age:
		if x.Age > y.Age {
			return -1
		}
		return 1
	case x.Key != y.Key:
		return strings.Compare(string(x.Key), string(y.Key))
	default:
		return x.order - y.order
	}
}
