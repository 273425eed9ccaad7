package rate

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Never is the RetryAfter of a request that can never pass, as it asks for more than Limit.
const Never = time.Duration(math.MaxInt64)

// Errors of Wait. ErrNever also says in other places that a request is above the limit.
var (
	// ErrNever: more is asked for than the limit ever lets through at once.
	ErrNever = errors.New("rate: the request is above the limit and can never pass")
	// ErrLate: the context ends before the request could pass; or, in a leaky bucket, the queue is full.
	ErrLate = errors.New("rate: the request would pass too late")
)

// Decision is the answer to a request.
type Decision struct {
	// OK: the request passed and was counted. (Peek: it would have passed.)
	OK bool
	// Limit is the most that can pass at once: Burst, Limit, or Queue + 1.
	Limit int64
	// Remaining is the most that would pass now, after this request.
	Remaining int64
	// RetryAfter is how long to wait before the same request passes, if nobody else asks; 0 when it passed, or did not stand in the
	// way of others (see Take); Never when it cannot.
	RetryAfter time.Duration
	// ResetAfter is how long it takes until all that was counted is forgotten, if nobody else asks; Never for a rate of 0.
	ResetAfter time.Duration
	// Wait is how long a request that passed must wait before it goes ahead. 0 but in a LeakyBucket.
	Wait time.Duration
	// Mark is a Store's own note of what it counted where, for GiveBack. Nothing in memory.
	Mark string

	n       int64
	receipt receipt
	e       *entry // where it was counted, if anything was
	gen     uint32
	version uint32
}

func badCount(n int64) error {
	return fmt.Errorf("rate: a request is for %d, must be at least 1", n)
}

// describe fills in the figures of a state after a take that was made, or was not.
func (r *rule) describe(d *Decision, c *cell, segs []int64, now int64) {
	d.Limit = r.limit
	d.Remaining = r.left(c, segs, now)
	d.ResetAfter = time.Duration(r.fresh(c, segs, now))
	if d.OK {
		d.Wait = time.Duration(r.wait(c, now))
	} else {
		d.RetryAfter = time.Duration(r.until(c, segs, now, d.n))
	}
}
