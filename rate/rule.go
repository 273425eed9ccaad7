package rate

import (
	"math"
	"time"
)

type kind uint8

const (
	tokens kind = iota
	leaky
	sliding
	fixed
)

// rule is an Algorithm as the call path reads it. Its methods are pure: time is an argument, in nanoseconds, and the
// state of a key is a cell and, for sliding windows, its segments. Time never goes back for a cell: a reading older than
// the last one counts as the last one.
type rule struct {
	kind    kind
	limit   int64  // the largest request that can pass
	version uint32 // how often the rate was changed

	// Buckets, in units: see Rate.units.
	token, perNano    int64
	size              int64 // limit x token
	service, tolerate time.Duration

	// Windows.
	window   int64 // nanoseconds; of a sliding window, those of one segment
	segments int64 // counted segments: one more than the window has, as the oldest counts whole
}

// cell is the state of a key. The zero value is that of a key never seen.
type cell struct {
	// at is when used was right, in nanoseconds: the last request of a bucket, or the start of a fixed window. Of a sliding
	// window it is the number of the newest segment.
	at int64
	// used is what is missing until the bucket is full (or, leaky, empty), in units; or what the window has counted.
	used int64
	// returned counts the units that were given back to a token bucket, ever. It wraps; only differences mean something.
	returned int64
}

// receipt is what giveBack has to know of a take.
type receipt struct {
	at   int64 // of the take: nanoseconds, or the start or the number of the window
	mark int64 // of a bucket: see poured
}

// forever stands for a time that never comes.
const forever = math.MaxInt64

// take counts n if they pass. The receipt tells giveBack what was counted where. n must be 1 to limit.
func (r *rule) take(c *cell, segs []int64, now, n int64) (got receipt, ok bool) {
	switch r.kind {
	case tokens, leaky:
		if ok = r.pour(c, now, n); ok {
			got = r.poured(c)
		}
		return got, ok
	case sliding:
		return r.countSliding(c, segs, now, n)
	default:
		return r.countFixed(c, now, n)
	}
}

// giveBack undoes a take of n.
func (r *rule) giveBack(c *cell, segs []int64, now, n int64, got receipt) {
	switch r.kind {
	case tokens, leaky:
		r.unpour(c, now, n, got)
	case sliding:
		r.uncountSliding(c, segs, n, got)
	default:
		r.uncountFixed(c, now, n, got)
	}
}

// until is how many nanoseconds after now n pass if nobody else asks: 0 now, forever never.
func (r *rule) until(c *cell, segs []int64, now, n int64) int64 {
	if n > r.limit {
		return forever
	}
	switch r.kind {
	case tokens, leaky:
		return r.untilLevel(c, now, r.size-n*r.token)
	case sliding:
		return r.untilSlid(c, segs, now, n)
	default:
		if used := r.counted(c, now); used > r.limit-n {
			return c.at + r.window - now
		}
		return 0
	}
}

// fresh is how many nanoseconds after now the state is that of a key never seen: 0 now, forever never.
func (r *rule) fresh(c *cell, segs []int64, now int64) int64 {
	switch r.kind {
	case tokens, leaky:
		return r.untilLevel(c, now, 0)
	case sliding:
		return r.untilEmpty(c, segs, now)
	default:
		if r.counted(c, now) == 0 {
			return 0
		}
		return c.at + r.window - now
	}
}

// left is the largest request that would pass now.
func (r *rule) left(c *cell, segs []int64, now int64) int64 {
	switch r.kind {
	case tokens, leaky:
		return (r.size - r.level(c, now)) / r.token
	case sliding:
		r.slide(c, segs, now)
		return r.limit - c.used
	default:
		return r.limit - r.counted(c, now)
	}
}

// ceilDiv is a / b rounded up, for a >= 0 and b > 0.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if q*b != a {
		q++
	}
	return q
}
