package rate

import (
	"context"
	"fmt"
	"time"
)

// Wait takes n, waiting until they pass. Those who wait for the same key pass in order of arrival, and while anybody waits, Allow
// and Take of the key refuse. With a Store the order holds among the calls of this process.
//
// Errors: ErrNever when n is above the limit; ErrLate at once when the context would end before n pass, or when the
// queue of a leaky bucket is full; the context's when it ends while waiting; those of a Store. What was taken by
// a call that fails is given back.
func (b *Bucket) Wait(ctx context.Context, n int64) error {
	switch {
	case n < 1:
		return badCount(n)
	case n > b.l.limit:
		return fmt.Errorf("%w: %d of at most %d", ErrNever, n, b.l.limit)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if b.l.leaky {
		return b.queue(ctx, n)
	}
	if b.l.slow.Load() == 0 && b.takeNow(n).OK {
		return nil
	}
	b.l.slow.Add(1)
	w := b.l.lines.join(b.key, n)
	defer b.l.slow.Add(-1)
	defer b.l.lines.leave(b.key, w)
	return b.stand(ctx, n, w)
}

// stand waits to become the first of the line, and then for the state.
func (b *Bucket) stand(ctx context.Context, n int64, w *waiter) error {
	for !b.l.lines.first(b.key, w) {
		select {
		case <-w.poke:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for {
		d, err := b.try(ctx, n)
		if err != nil || d.OK {
			return err
		}
		if err := late(ctx, d.RetryAfter); err != nil {
			return err
		}
		timer := time.NewTimer(max(1, d.RetryAfter))
		select {
		case <-timer.C:
		case <-w.poke:
		case <-ctx.Done():
		}
		timer.Stop()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// try takes n on behalf of the first of the line.
func (b *Bucket) try(ctx context.Context, n int64) (Decision, error) {
	if b.l.config.Store != nil {
		return b.ask(ctx, n, false)
	}
	d := b.takeNow(n)
	if b.l.feed != nil {
		b.l.feed.see(&d)
	}
	return d, nil
}

// queue stands in a leaky bucket.
func (b *Bucket) queue(ctx context.Context, n int64) error {
	d, err := b.Take(ctx, n)
	if err != nil {
		return err
	}
	if !d.OK {
		return fmt.Errorf("%w: the queue is full, room in %v", ErrLate, d.RetryAfter)
	}
	if d.Wait == 0 {
		return nil
	}
	err = late(ctx, d.Wait)
	if err == nil {
		timer := time.NewTimer(d.Wait)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	// The caller's own error says more than that of a store which cannot take the place back.
	_ = b.GiveBack(context.WithoutCancel(ctx), d)
	return err
}

// late says so when the context ends before the wait is over.
func late(ctx context.Context, wait time.Duration) error {
	deadline, ok := ctx.Deadline()
	if left := time.Until(deadline); ok && left < wait {
		return fmt.Errorf("%w: in %v, and the context ends in %v", ErrLate, wait, left)
	}
	return nil
}
