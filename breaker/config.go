package breaker

import (
	"errors"
	"fmt"
	"time"
)

// What Config fills in.
const (
	DefaultRatio  = 0.5
	DefaultMin    = 20
	DefaultWindow = 10 * time.Second
	DefaultOpen   = 5 * time.Second
	DefaultProbes = 3
)

// The most that Config takes.
const (
	MaxMin    = 1_000_000
	MaxProbes = 1000
	maxTime   = time.Hour
)

// Config describes a Breaker. The zero Config is useful.
type Config struct {
	// Name stands in events and errors.
	Name string
	// Ratio is the share of failures in the window from which the breaker opens, above 0 to 1. 0 means 0.5.
	Ratio float64
	// Min is how many calls the window must hold for its ratio to count, 1 to 1,000,000. 0 means 20.
	Min int
	// Consecutive failures open the breaker too, 1 to 1,000,000. 0: they do not.
	Consecutive int
	// Window is how far back is looked, in ten steps, 100 ms to 1 h. 0 means 10 s.
	Window time.Duration
	// Open is how long the breaker stays open before it lets probes through, 1 ms to 1 h. 0 means 5 s.
	Open time.Duration
	// Probes is how many calls run at once in half-open, and how many of them must succeed in a row to close, 1 to 1000. 0 means 3.
	Probes int
	// Lease is after how long a probe that has not ended counts as failed, 1 ms to 1 h. 0 means as long as Open.
	Lease time.Duration
	// Slow makes a call that took longer a failure, 1 ms to 1 h. 0: no call is too slow.
	Slow time.Duration
	// Judge says what an error means. Nil: Judge of this package.
	Judge func(error) Outcome
	// OnChange is called after a change of state, on the goroutine whose call brought it about, without any lock: it may call the breaker.
	OnChange func(Change)

	// Total is for somebody who counts the calls anyway, as package guard does: how many have begun so far. It may fall by calls that turn
	// out to say nothing of the other side. It is called under the breaker's lock and must only read. Successes need not be told
	// then, but Tick must be called ten times a window. Consecutive cannot be used with it.
	Total func() uint64
	// Shut is told, for the fast path of such a caller, whether calls have to ask: while the breaker is not closed. It is called under the
	// breaker's lock and must only store.
	Shut func(bool)
}

// ErrConfig is what errors of New and NewThrottle match.
var ErrConfig = errors.New("breaker: invalid configuration")

func (c Config) withDefaults() Config {
	fill(&c.Ratio, DefaultRatio)
	fill(&c.Min, DefaultMin)
	fill(&c.Window, DefaultWindow)
	fill(&c.Open, DefaultOpen)
	fill(&c.Probes, DefaultProbes)
	fill(&c.Lease, c.Open)
	if c.Judge == nil {
		c.Judge = Judge
	}
	if c.Shut == nil {
		c.Shut = func(bool) {}
	}
	return c
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (c Config) validate() error {
	var p problems
	if !(c.Ratio > 0 && c.Ratio <= 1) {
		p.addf("Ratio is %v, must be above 0 and at most 1", c.Ratio)
	}
	p.number("Min", c.Min, 1, MaxMin)
	p.number("Consecutive", c.Consecutive, 0, MaxMin)
	if c.Total != nil && c.Consecutive > 0 {
		p.addf("Consecutive is %d, must be 0 with Total: nobody tells of the successes between two failures", c.Consecutive)
	}
	p.duration("Window", c.Window, 100*time.Millisecond)
	p.duration("Open", c.Open, time.Millisecond)
	p.number("Probes", c.Probes, 1, MaxProbes)
	p.duration("Lease", c.Lease, time.Millisecond)
	if c.Slow != 0 {
		p.duration("Slow", c.Slow, time.Millisecond)
	}
	return errors.Join(p...)
}

// problems gathers what is wrong.
type problems []error

func (p *problems) addf(format string, args ...any) {
	*p = append(*p, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
}

func (p *problems) number(name string, n, least, most int) {
	if n < least || n > most {
		p.addf("%s is %d, must be %d to %d", name, n, least, most)
	}
}

func (p *problems) duration(name string, d, least time.Duration) {
	if d < least || d > maxTime {
		p.addf("%s is %v, must be %v to %v", name, d, least, maxTime)
	}
}
