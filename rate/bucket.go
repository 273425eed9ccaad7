package rate

import (
	"context"
	"hash/maphash"
	"time"

	"github.com/spillway-go/spillway/internal/clock"
)

// Bucket is one key of a Limiter, looked up once: it costs no hash and no search. It keeps working when the key was
// forgotten meanwhile, and holds no memory of the limiter's but itself. All methods are safe for concurrent use.
type Bucket struct {
	l   *Limiter
	key string
	s   *shard // where the key belongs
	id  id

	// Where it was found last, guarded by s.mu. It is there still if gen is that of the entry.
	e    *entry
	segs []int64
	gen  uint32
}

// Bucket returns the handle of a key.
func (l *Limiter) Bucket(key string) *Bucket {
	b := l.bucket(key)
	return &b
}

// bucket finds the shard of a key, not yet its entry.
func (l *Limiter) bucket(key string) Bucket {
	if len(l.shards) == 0 {
		b := l.alone
		if l.config.Store != nil {
			b.key = key // else all keys are one
		}
		return b
	}
	h := maphash.String(l.second, key)
	return Bucket{
		l: l, key: key, s: &l.shards[h>>l.shift&uint64(len(l.shards)-1)],
		id: id{maphash.String(l.seed, key), uint32(h)},
	}
}

// Allow is Limiter.Allow of the key.
func (l *Limiter) Allow(key string) bool {
	b := l.bucket(key)
	return b.Allow()
}

// Take is Bucket.Take of the key.
func (l *Limiter) Take(ctx context.Context, key string, n int64) (Decision, error) {
	b := l.bucket(key)
	return b.Take(ctx, n)
}

// Allow takes 1 and reports whether it passed. It never waits: in a LeakyBucket it refuses unless the request may leave at
// once. An error of a Store is a no.
func (b *Bucket) Allow() bool {
	if b.l.slow.Load() != 0 {
		return b.allowSlow()
	}
	now := clock.Now()
	if now < b.s.closed.Load() {
		return false
	}
	s, e, segs := b.lock(now)
	var ok bool
	if s.rule.kind == tokens { // the most common: without a receipt
		ok = s.rule.pour(&e.cell, now, 1)
	} else {
		_, ok = s.rule.take(&e.cell, segs, now, 1)
	}
	if !ok && b.s == &b.l.shared {
		s.close(e, segs, now)
	}
	s.mu.Unlock()
	return ok
}

// lock returns the entry of the key, made if need be, or the shared one when there is no room; and the shard that it lies
// in, locked.
func (b *Bucket) lock(now int64) (*shard, *entry, []int64) {
	s := b.s
	s.mu.Lock()
	if b.e != nil && b.e.gen == b.gen {
		return s, b.e, b.segs
	}
	if b.locate(now) {
		return s, b.e, b.segs
	}
	s.mu.Unlock()
	s = &b.l.shared
	b.l.crowd.Add(1)
	s.mu.Lock()
	e, segs := s.entry(0)
	return s, e, segs
}

// locate finds the entry, or makes it. The caller holds s.mu.
func (b *Bucket) locate(now int64) bool {
	i := b.s.find(b.id)
	if i < 0 {
		if i = b.s.add(b.id, now); i < 0 {
			return false
		}
	}
	b.e, b.segs = b.s.entry(i)
	b.gen = b.e.gen
	return true
}

// look is lock for those who only look: a key that was never seen gets no entry, and e is nil.
func (b *Bucket) look() (s *shard, e *entry, segs []int64) {
	s = b.s
	s.mu.Lock()
	if b.e != nil && b.e.gen == b.gen {
		return s, b.e, b.segs
	}
	if i := s.find(b.id); i >= 0 {
		e, segs = s.entry(i)
		return s, e, segs
	}
	if s.live.Load() < s.most {
		return s, nil, nil
	}
	s.mu.Unlock()
	s = &b.l.shared
	s.mu.Lock()
	e, segs = s.entry(0)
	return s, e, segs
}

// Take takes n, all or none. The error is that of bad input (n < 1) or of a Store; a refusal is none. It does not wait:
// in a LeakyBucket a request that passed must wait for Decision.Wait, or be given back.
func (b *Bucket) Take(ctx context.Context, n int64) (Decision, error) {
	switch {
	case n < 1:
		return Decision{}, badCount(n)
	case b.l.slow.Load() != 0:
		return b.takeSlow(ctx, n)
	case n > b.l.limit:
		return b.peek(n), nil
	}
	return b.takeNow(n), nil
}

// takeNow takes 1 to limit from memory.
func (b *Bucket) takeNow(n int64) (d Decision) {
	now := clock.Now()
	s, e, segs := b.lock(now)
	d.take(s, e, segs, now, n)
	s.mu.Unlock()
	return d
}

// take decides about 1 to limit. The caller holds s.mu.
func (d *Decision) take(s *shard, e *entry, segs []int64, now, n int64) {
	d.n, d.e, d.gen, d.version = n, e, e.gen, s.rule.version
	d.receipt, d.OK = s.rule.take(&e.cell, segs, now, n)
	s.rule.describe(d, &e.cell, segs, now)
}

// Peek is what Take would answer, without taking anything. For a key never seen, at a limiter that is full, it tells the state of
// those that there is no room for, though Take may yet find room.
func (b *Bucket) Peek(ctx context.Context, n int64) (Decision, error) {
	if n < 1 {
		return Decision{}, badCount(n)
	}
	if b.l.config.Store != nil {
		return b.ask(ctx, n, true)
	}
	d := b.peek(n)
	b.behind(&d, b.l.lines.ahead(b.key))
	return d, nil
}

func (b *Bucket) peek(n int64) (d Decision) {
	now := clock.Now()
	s, e, segs := b.look()
	d.peek(&s.rule, e, segs, now, n)
	s.mu.Unlock()
	return d
}

// peek describes a state, or with e = nil that of a key never seen. The caller holds the lock of the shard.
func (d *Decision) peek(r *rule, e *entry, segs []int64, now, n int64) {
	var unseen cell
	c := &unseen
	if e != nil {
		c = &e.cell
	}
	d.n = n
	d.OK = r.until(c, segs, now, n) == 0
	r.describe(d, c, segs, now)
	if d.OK && r.kind == leaky {
		d.Wait = time.Duration(r.untilLevel(c, now, (1-n)*r.token)) // nothing was poured
	}
}
