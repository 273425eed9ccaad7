package rate

// counted is what the fixed window has counted now: nothing once it is over.
func (r *rule) counted(c *cell, now int64) int64 {
	if now-c.at >= r.window {
		return 0
	}
	return c.used
}

func (r *rule) countFixed(c *cell, now, n int64) (got receipt, ok bool) {
	used := r.counted(c, now)
	if used > r.limit-n {
		return receipt{}, false
	}
	if used == 0 {
		c.at = max(c.at, now)
	}
	c.used = used + n
	return receipt{at: c.at}, true
}

// uncountFixed gives back to the window that counted, if that still runs.
func (r *rule) uncountFixed(c *cell, now, n int64, got receipt) {
	if got.at == c.at && r.counted(c, now) >= n {
		c.used -= n
	}
}

// slide moves the cell on to the segment of now. segs is a ring; c.used is its sum.
func (r *rule) slide(c *cell, segs []int64, now int64) {
	// One comparison while the segment lasts: dividing is dear.
	if now < (c.at+1)*r.window {
		return
	}
	newest := now / r.window
	if c.used != 0 {
		for i := c.at + 1; i <= min(newest, c.at+r.segments); i++ {
			seg := &segs[i%r.segments]
			c.used -= *seg
			*seg = 0
		}
	}
	c.at = newest
}

func (r *rule) countSliding(c *cell, segs []int64, now, n int64) (got receipt, ok bool) {
	r.slide(c, segs, now)
	if c.used > r.limit-n {
		return receipt{}, false
	}
	c.used += n
	segs[c.at%r.segments] += n
	return receipt{at: c.at}, true
}

// uncountSliding gives back to the segment that counted, if it still counts.
func (r *rule) uncountSliding(c *cell, segs []int64, n int64, got receipt) {
	if got.at <= c.at-r.segments || got.at > c.at {
		return
	}
	if seg := &segs[got.at%r.segments]; *seg >= n {
		*seg -= n
		c.used -= n
	}
}

// untilSlid is when enough of the oldest segments have gone for n to pass.
func (r *rule) untilSlid(c *cell, segs []int64, now, n int64) int64 {
	r.slide(c, segs, now)
	used := c.used
	for i := c.at - r.segments + 1; used > r.limit-n; i++ {
		if used -= segs[i%r.segments]; used <= r.limit-n {
			return (i+r.segments)*r.window - now
		}
	}
	return 0
}

// untilEmpty is when the newest segment that counted anything has gone.
func (r *rule) untilEmpty(c *cell, segs []int64, now int64) int64 {
	r.slide(c, segs, now)
	if c.used == 0 {
		return 0
	}
	i := c.at
	for segs[i%r.segments] == 0 {
		i--
	}
	return (i+r.segments)*r.window - now
}
