package rate

import (
	"context"
	"time"

	"github.com/spillway-go/spillway/internal/clock"
)

// The path of calls that have more to look at than the state: a store, a queue, a source of tokens, or others that stand in line.

func (b *Bucket) allowSlow() bool {
	d, err := b.decide(context.Background(), 1, false)
	return err == nil && d.OK
}

func (b *Bucket) takeSlow(ctx context.Context, n int64) (Decision, error) {
	return b.decide(ctx, n, true)
}

// decide takes n. With queue = false it does not stand in the queue of a leaky bucket.
func (b *Bucket) decide(ctx context.Context, n int64, queue bool) (Decision, error) {
	l := b.l
	if l.config.Store != nil {
		d, err := b.ask(ctx, n, false)
		if err == nil && d.OK && d.Wait > 0 && !queue {
			err = b.GiveBack(ctx, d)
			d.OK = false
		}
		return d, err
	}
	if n > l.limit {
		return b.peek(n), nil
	}
	if ahead := l.lines.ahead(b.key); ahead != 0 {
		d := b.peek(n)
		b.behind(&d, ahead)
		return d, nil
	}
	if !queue && l.leaky {
		return b.atOnce(n), nil
	}
	d := b.takeNow(n)
	if l.feed != nil {
		l.feed.see(&d)
	}
	return d, nil
}

// atOnce takes n from a leaky bucket if they need not wait.
func (b *Bucket) atOnce(n int64) (d Decision) {
	now := clock.Now()
	s, e, segs := b.lock(now)
	defer s.mu.Unlock()
	if wait := s.rule.untilLevel(&e.cell, now, (1-n)*s.rule.token); wait > 0 {
		d.n = n
		s.rule.describe(&d, &e.cell, segs, now)
		d.RetryAfter = time.Duration(wait)
		return d
	}
	d.take(s, e, segs, now, n)
	return d
}

// behind turns a decision into that of somebody who comes after those in line, who ask for ahead together; 0: there is none.
func (b *Bucket) behind(d *Decision, ahead int64) {
	if ahead == 0 {
		return
	}
	d.OK, d.Wait = false, 0
	if d.RetryAfter != Never {
		d.RetryAfter = max(1, b.peek(min(b.l.limit, ahead+d.n)).RetryAfter)
	}
}

// ask asks the store.
func (b *Bucket) ask(ctx context.Context, n int64, peek bool) (Decision, error) {
	ds, err := takeFrom(ctx, b.l.config.Store, []Request{{Limiter: b.l, Key: b.key, N: n, Peek: peek}})
	if err != nil {
		return Decision{}, err
	}
	return ds[0], nil
}
