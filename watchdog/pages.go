package watchdog

import "time"

// pages limits how often something is written: burst times in a row, then once every so often. Not safe for concurrent use.
type pages struct {
	burst, left float64
	every       time.Duration
	last        int64 // when left was right
	notBefore   int64
}

func newPages(burst int, every time.Duration) pages {
	return pages{burst: float64(burst), left: float64(burst), every: every}
}

// take reports whether there may be a page now, and counts it.
func (p *pages) take(now int64) bool {
	if p.last == 0 {
		p.last = now
	}
	p.left = min(p.burst, p.left+float64(now-p.last)/float64(p.every))
	p.last = now
	if p.left < 1 || now < p.notBefore {
		return false
	}
	p.left--
	return true
}

// rest lets no page be written for a while.
func (p *pages) rest(now int64, d time.Duration) { p.notBefore = now + int64(d) }
