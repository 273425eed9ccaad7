package registry

import (
	"strconv"
	"strings"
	"time"
)

// The widest ranges of a Breaker and a Throttle.
const (
	maxBreakerMin    = 1_000_000
	maxBreakerProbes = 1000
	minBreakerWindow = 100 * time.Millisecond
	maxBreakerTime   = time.Hour
	minBreakerTime   = time.Millisecond
	maxThrottleK     = 100
)

// Breaker says when a key's calls are refused since too many of them failed. The zero Breaker is none; On, or any other field, switches it on.
type Breaker struct {
	// On switches the breaker on with its defaults.
	On bool
	// Ratio is the share of failures from which it opens: above 0 to 1. Default: 0.5.
	Ratio float64
	// Min is how many calls the window must hold for that: 1 to 1,000,000. Default: 20.
	Min int
	// Window is how far back is looked: 100ms to 1h. Default: 10s.
	Window time.Duration
	// Open is how long it stays open before it lets probes through: 1ms to 1h. Default: 5s.
	Open time.Duration
	// Probes is how many calls it then lets through, all of which must succeed: 1 to 1000. Default: 3.
	Probes int
	// Slow makes a call that took longer a failure: 1ms to 1h. Default: none is too slow.
	Slow time.Duration
}

func (b Breaker) withDefaults() Breaker {
	if b == (Breaker{}) {
		return b
	}
	b.On = true
	fill(&b.Ratio, 0.5)
	fill(&b.Min, 20)
	fill(&b.Window, 10*time.Second)
	fill(&b.Open, 5*time.Second)
	fill(&b.Probes, 3)
	return b
}

// String prints what is set as "ratio:0.5,min:20"; "" for none.
func (b Breaker) String() string {
	if b == (Breaker{}) {
		return ""
	}
	var l list
	l.add(b.Ratio != 0, "ratio", strconv.FormatFloat(b.Ratio, 'g', -1, 64))
	l.add(b.Min != 0, "min", strconv.Itoa(b.Min))
	l.add(b.Window != 0, "window", formatDuration(b.Window))
	l.add(b.Open != 0, "open", formatDuration(b.Open))
	l.add(b.Probes != 0, "probes", strconv.Itoa(b.Probes))
	l.add(b.Slow != 0, "slow", formatDuration(b.Slow))
	return l.orOn()
}

func (b Breaker) check(c *checker) {
	if b.Ratio != 0 && !(b.Ratio > 0 && b.Ratio <= 1) {
		c.add("breaker ratio", strconv.FormatFloat(b.Ratio, 'g', -1, 64), "above 0 and at most 1")
	}
	c.number("breaker min", b.Min, 1, maxBreakerMin)
	c.duration("breaker window", b.Window, minBreakerWindow, maxBreakerTime)
	c.duration("breaker open", b.Open, minBreakerTime, maxBreakerTime)
	c.number("breaker probes", b.Probes, 1, maxBreakerProbes)
	c.duration("breaker slow", b.Slow, minBreakerTime, maxBreakerTime)
}

// Throttle says when a share of a key's calls is refused since the other side accepts too few of them. The zero Throttle is none; On, or any
// other field, switches it on.
type Throttle struct {
	// On switches the throttle on with its defaults.
	On bool
	// K is how many calls are sent for each that is accepted: above 1 to 100. Default: 2.
	K float64
	// Window is how far back is looked: 100ms to 1h. Default: 10s.
	Window time.Duration
}

func (t Throttle) withDefaults() Throttle {
	if t == (Throttle{}) {
		return t
	}
	t.On = true
	fill(&t.K, 2)
	fill(&t.Window, 10*time.Second)
	return t
}

// String prints what is set as "k:2,window:10s"; "" for none.
func (t Throttle) String() string {
	if t == (Throttle{}) {
		return ""
	}
	var l list
	l.add(t.K != 0, "k", strconv.FormatFloat(t.K, 'g', -1, 64))
	l.add(t.Window != 0, "window", formatDuration(t.Window))
	return l.orOn()
}

func (t Throttle) check(c *checker) {
	if t.K != 0 && !(t.K > 1 && t.K <= maxThrottleK) {
		c.add("throttle k", strconv.FormatFloat(t.K, 'g', -1, 64), "above 1 and at most 100")
	}
	c.duration("throttle window", t.Window, minBreakerWindow, maxBreakerTime)
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// list gathers the parts of a value that are set.
type list struct{ parts []string }

func (l *list) add(set bool, name, value string) {
	if set {
		l.parts = append(l.parts, name+":"+value)
	}
}

func (l *list) orOn() string {
	if len(l.parts) == 0 {
		return "on"
	}
	return strings.Join(l.parts, ",")
}
