package rate

import "math/bits"

// level is c.used as it is now: it falls by perNano every nanosecond, down to 0.
func (r *rule) level(c *cell, now int64) int64 {
	dt := now - c.at
	if dt <= 0 {
		return c.used
	}
	// Written out: accrued would ask once more.
	hi, gone := bits.Mul64(uint64(dt), uint64(r.perNano))
	if hi != 0 || gone >= uint64(c.used) {
		return 0
	}
	return c.used - int64(gone)
}

// pour takes n tokens, or puts n into the queue: token bucket and leaky bucket are one thing seen from two sides. What is
// missing in the one is what waits in the other.
func (r *rule) pour(c *cell, now, n int64) bool {
	level, need := r.level(c, now), n*r.token
	if level > r.size-need {
		return false
	}
	c.used = level + need
	if now > c.at {
		c.at = now
	}
	return true
}

// poured is the receipt of the last pour.
func (r *rule) poured(c *cell) receipt { return receipt{at: c.at, mark: r.end(c, c.at) + c.returned} }

// end names the moment when the bucket will be full (or empty) again, in units: the same number until somebody takes
// something. It wraps; only equality and differences mean something.
func (r *rule) end(c *cell, at int64) int64 {
	return int64(uint64(at)*uint64(r.perNano) + uint64(c.used))
}

// unpour gives n back.
//
// A place in a queue is given back only while nobody stands behind it: those who do have their times already, and two must
// not leave at once. Otherwise it passes empty.
//
// Tokens that time has brought back meanwhile must not come back a second time. Had they never been taken, the bucket would
// miss less by min(n, the least that was missing at any moment since): what was missing less than that would have been lost to the upper
// bound. That least is not kept for every take, but it is at least either of two: n without what accrued since, and
// what would be missing had nobody taken anything since, without what others gave back.
func (r *rule) unpour(c *cell, now, n int64, got receipt) {
	now = max(now, c.at)
	level := r.level(c, now)
	if r.kind == leaky {
		if got.mark == r.end(c, c.at)+c.returned {
			c.used, c.at = max(0, level-n*r.token), now
		}
		return
	}
	n *= r.token
	accrued := r.accrued(now - got.at)
	if accrued >= r.size {
		return // the bucket was full since, or would have been
	}
	// Within the time that fills a bucket, the two readings of end cannot be so far apart that they wrap.
	alone := got.mark - c.returned - int64(uint64(now)*uint64(r.perNano))
	back := max(0, min(n, max(n-accrued, alone)))
	back = min(back, level)
	c.used, c.at = level-back, now
	c.returned += back
}

// accrued is how many units dt nanoseconds bring, or the size of the bucket if that is less.
func (r *rule) accrued(dt int64) int64 {
	hi, units := bits.Mul64(uint64(max(0, dt)), uint64(r.perNano))
	if hi != 0 || units > uint64(r.size) {
		return r.size
	}
	return int64(units)
}

// untilLevel is how long the level takes to fall to most.
func (r *rule) untilLevel(c *cell, now, most int64) int64 {
	over := r.level(c, now) - most
	if over <= 0 {
		return 0
	}
	if r.perNano == 0 {
		return forever
	}
	// A cell that is ahead of now begins to fall only then.
	return ceilDiv(over, r.perNano) + max(0, c.at-now)
}

// wait is how long a request that was just poured waits until the last of it may leave.
func (r *rule) wait(c *cell, now int64) int64 {
	if r.kind != leaky {
		return 0
	}
	return r.untilLevel(c, now, r.token)
}

// rescale carries a level from one rate to another, rounded up to whole units so that nothing is created.
func (r *rule) rescale(c *cell, now int64, next *rule) {
	level := r.level(c, now)
	if r.token != next.token {
		hi, lo := bits.Mul64(uint64(level), uint64(next.token))
		q, rest := bits.Div64(hi, lo, uint64(r.token)) // level <= limit x token, so that q <= limit x next.token
		if rest != 0 {
			q++
		}
		level = int64(q)
	}
	c.used, c.at = level, max(c.at, now)
}

// add puts n tokens in, as much as fits.
func (r *rule) add(c *cell, now, n int64) {
	level := r.level(c, now)
	back := min(level, n*r.token)
	c.used, c.at = level-back, max(c.at, now)
	c.returned += back
}
