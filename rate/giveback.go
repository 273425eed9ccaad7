package rate

import (
	"context"
	"sync/atomic"

	"github.com/spillway-go/spillway/internal/clock"
)

// GiveBack returns what a Take of this key took, because it was not needed after all. At most once for each decision, see
// Reserve for one that counts. A decision that took nothing, or of another key, gives back nothing. The error is that of a Store.
//
// It is as if the request had never been, with these bounds, all on the safe side: tokens that accrued again since the
// Take are not given back a second time; a window that is over takes nothing back; a place in a leaky bucket is given
// back only while nobody stands behind it; and after a change of the rate nothing is.
func (b *Bucket) GiveBack(ctx context.Context, d Decision) error {
	if !d.OK {
		return nil
	}
	if b.l.config.Store != nil {
		return b.l.config.Store.GiveBack(ctx, []Request{{Limiter: b.l, Key: b.key, N: d.n}}, []Decision{d})
	}
	b.giveBack(d)
	return nil
}

func (b *Bucket) giveBack(d Decision) {
	if !d.OK || d.e == nil { // refused, or only looked at
		return
	}
	now := clock.Now()
	s, crowd := b.s, d.e == b.l.alone.e
	if crowd {
		s = &b.l.shared
	}
	s.mu.Lock()
	if e, segs := b.held(s); e == d.e && e.gen == d.gen && s.rule.version == d.version {
		s.rule.giveBack(&e.cell, segs, now, d.n, d.receipt)
		s.open()
	}
	s.mu.Unlock()
	switch {
	case b.l.slow.Load() == 0:
	case crowd:
		b.l.lines.kickAll()
	default:
		b.l.lines.kick(b.key)
	}
}

// held returns the bucket's entry in a shard, nil if there is none. The caller holds s.mu.
func (b *Bucket) held(s *shard) (*entry, []int64) {
	i := 0
	if s != &b.l.shared {
		i = s.find(b.id)
	}
	if i < 0 {
		return nil, nil
	}
	return s.entry(i)
}

// Reservation is a decision that can be given back, once.
type Reservation struct {
	Decision

	bucket *Bucket
	given  atomic.Bool
}

// Reserve is Take with a result that can be given back any number of times, on any goroutine: it counts once.
func (b *Bucket) Reserve(ctx context.Context, n int64) (*Reservation, error) {
	d, err := b.Take(ctx, n)
	if err != nil {
		return nil, err
	}
	return &Reservation{Decision: d, bucket: b}, nil
}

// GiveBack returns what was reserved, as Bucket.GiveBack does. On nil, and from the second call on, it does nothing.
func (r *Reservation) GiveBack(ctx context.Context) error {
	if r == nil || r.given.Swap(true) {
		return nil
	}
	return r.bucket.GiveBack(ctx, r.Decision)
}
