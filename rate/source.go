package rate

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/internal/clock"
)

// Bounds of requests to a TokenSource.
const (
	SourceTimeout = 5 * time.Second      // of one request's context
	SourcePause   = time.Second          // after an error
	sourceLeast   = 1 * time.Millisecond // between two requests
)

// A TokenSource hands out tokens that somebody else owns, so that a policy there steers the bucket. Tokens is called on a goroutine of
// its own, one at a time, when less than half of the burst is left. It must return when ctx ends; a bucket whose source hangs
// goes on with its own Rate. A panic counts as an error.
type TokenSource interface {
	// Tokens asks for up to want tokens.
	Tokens(ctx context.Context, want int64) (Grant, error)
}

// Grant is the answer of a TokenSource.
type Grant struct {
	// Tokens is how many there are; those above the burst, and negative ones, are dropped.
	Tokens int64
	// Next is how long not to ask again, at least 1 ms.
	Next time.Duration
}

// feed is a bucket's connection to its source.
type feed struct {
	source  TokenSource
	limiter *Limiter
	busy    atomic.Bool
	next    atomic.Int64 // clock reading before which the source is not asked
}

// see asks the source when a decision shows that the bucket runs low. A refusal then says to come back when the source may be
// asked again, if that is sooner than by the bucket's own rate.
func (f *feed) see(d *Decision) {
	if d.OK && d.Remaining > d.Limit/2 || d.n > d.Limit {
		return
	}
	now := clock.Now()
	wait := f.next.Load() - now
	if wait <= 0 && f.busy.CompareAndSwap(false, true) {
		if f.next.Load() > now { // it was asked, and has answered, since we looked
			f.busy.Store(false)
		} else {
			go f.ask(d.Limit - d.Remaining)
		}
	}
	if !d.OK {
		d.RetryAfter = min(d.RetryAfter, max(sourceLeast, time.Duration(wait)))
	}
}

func (f *feed) ask(want int64) {
	ctx, cancel := context.WithTimeout(context.Background(), SourceTimeout)
	grant := Grant{Next: SourcePause} // until the source answers: an error, a panic and an end of its goroutine are one
	defer func() {
		_ = recover()
		cancel()
		f.limiter.fill(grant.Tokens)
		f.next.Store(clock.Now() + int64(max(sourceLeast, min(grant.Next, MaxPer))))
		f.busy.Store(false)
		f.limiter.lines.kickAll()
	}()
	if g, err := f.source.Tokens(ctx, want); err == nil {
		grant = g
	}
}

// fill puts tokens into the one bucket of a limiter with a source.
func (l *Limiter) fill(n int64) {
	s := &l.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	e, _ := s.entry(0)
	s.open()
	s.rule.add(&e.cell, clock.Now(), min(max(n, 0), l.limit))
}
