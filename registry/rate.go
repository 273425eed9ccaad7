package registry

import (
	"strconv"
	"time"
)

// Algorithms of a Rate, as annotations spell them.
const (
	TokenBucket   = "token"   // bursts of Burst, then evenly
	LeakyBucket   = "leaky"   // evenly; Burst calls wait for their turn
	SlidingWindow = "sliding" // never more than Calls in any Per
	FixedWindow   = "fixed"   // never more than Calls in each Per from a caller's first on
)

// ByCaller gives each caller a rate of its own.
const ByCaller = "caller"

const (
	maxRateCalls = 10_000_000
	minRatePer   = time.Millisecond
	maxRatePer   = 366 * 24 * time.Hour
)

// Rate says how many of a key's calls may begin in a time. The zero Rate is no limit; Calls switches it on.
type Rate struct {
	// Calls in a Per: 1 to 10,000,000.
	Calls int
	// Per is the time: 1ms to 366 days. Default: 1s.
	Per time.Duration
	// Burst is how many calls may come at once (TokenBucket), or wait for their turn (LeakyBucket): 1 to 10,000,000. Default: as many as
	// Calls. The windows have none.
	Burst int
	// Algorithm is TokenBucket, LeakyBucket, SlidingWindow or FixedWindow. Default: TokenBucket.
	Algorithm string
	// By is ByCaller, or "" for one rate that all callers share.
	By string
}

// windows reports whether the algorithm is one of the windows.
func (r Rate) windows() bool { return r.Algorithm == SlidingWindow || r.Algorithm == FixedWindow }

func (r Rate) withDefaults() Rate {
	if r == (Rate{}) {
		return r
	}
	fill(&r.Per, time.Second)
	fill(&r.Algorithm, TokenBucket)
	if !r.windows() {
		fill(&r.Burst, r.Calls)
	}
	return r
}

// String prints what is set as "100/1s,burst:20,algorithm:token,by:caller"; "" for none.
func (r Rate) String() string {
	if r == (Rate{}) {
		return ""
	}
	per := r.Per
	fill(&per, time.Second)
	text := strconv.Itoa(r.Calls) + "/" + formatDuration(per)
	var l list
	l.add(r.Burst != 0, "burst", strconv.Itoa(r.Burst))
	l.add(r.Algorithm != "", "algorithm", r.Algorithm)
	l.add(r.By != "", "by", r.By)
	if len(l.parts) > 0 {
		text += "," + l.orOn()
	}
	return text
}

func (r Rate) check(c *checker) {
	if r == (Rate{}) {
		return
	}
	if r.Calls < 1 || r.Calls > maxRateCalls {
		c.add("rate", strconv.Itoa(r.Calls), "1 to "+strconv.Itoa(maxRateCalls)+" calls")
	}
	c.duration("rate per", r.Per, minRatePer, maxRatePer)
	switch r.Algorithm {
	case "", TokenBucket, LeakyBucket, SlidingWindow, FixedWindow:
	default:
		c.add("rate algorithm", quote(r.Algorithm), "token, leaky, sliding or fixed")
	}
	if r.windows() && r.Burst != 0 {
		c.add("rate burst", strconv.Itoa(r.Burst), "0 for a "+r.Algorithm+" window")
	} else {
		c.number("rate burst", r.Burst, 1, maxRateCalls)
	}
	if r.By != "" && r.By != ByCaller {
		c.add("rate by", quote(r.By), "caller, or nothing")
	}
}
