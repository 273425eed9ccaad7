package guard_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// rated is a key that admits ten calls a second.
func rated(algorithm, by string) registry.Spec {
	s := registry.Spec{Limit: 100, Rate: registry.Rate{Calls: 10, Algorithm: algorithm, By: by}}
	if algorithm == registry.LeakyBucket {
		s.Rate.Burst = 5
	}
	return s
}

// Whatever the way and the algorithm: no more pass than the rate says, and those that are refused know when to come back.
func TestRateInTheGuard(t *testing.T) {
	for _, algorithm := range []string{registry.TokenBucket, registry.SlidingWindow, registry.FixedWindow} {
		for way, through := range throughs {
			t.Run(algorithm+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := declared(t, newRuntime(t), "k", rated(algorithm, ""))
					passed := 0
					for range 300 { // three seconds of ten times the rate
						if err := through(g, nothing); err == nil {
							passed++
						} else if r := rejectionOf(t, err, guard.ReasonRate); r.RetryAfter() < 100*time.Millisecond || r.RetryAfter() > time.Second {
							t.Errorf("%v, again after %v", r, r.RetryAfter())
						}
						elapse(10 * time.Millisecond)
					}
					if passed < 29 || passed > 40 {
						t.Errorf("%d calls passed in three seconds, want about 30, and 10 at once", passed)
					}
					if s := g.Snapshot(); s.Admitted != uint64(passed) || s.Refused[guard.ReasonRate] != uint64(300-passed) {
						t.Errorf("admitted %d, refused %v", s.Admitted, s.Refused)
					}
				})
			})
		}
	}
}

// Each caller has a rate of its own.
func TestRateByCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := declared(t, newRuntime(t), "k", rated(registry.TokenBucket, registry.ByCaller))
		for c := range 5 {
			ctx := guard.WithCaller(t.Context(), fmt.Sprint("caller", c))
			passed := 0
			for range 20 {
				if g.DoContext(ctx, func(context.Context) error { return nil }) == nil {
					passed++
				}
			}
			if passed != 10 {
				t.Errorf("caller %d: %d calls passed, want 10", c, passed)
			}
		}
	})
}

// What a later stage refuses was not spent, nor is a nested call charged.
func TestRateIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec := rated(registry.TokenBucket, "")
		spec.Limit, spec.Expand = 1, 1
		g := declared(t, newRuntime(t), "k", spec)
		h := block(g.Do)
		for range 50 {
			wantReason(t, g.Do(nothing), guard.ReasonFull)
		}
		close(h.leave)
		<-h.done
		for range 9 {
			if err := g.Do(func() error { return g.Do(nothing) }); err != nil {
				t.Error(err)
			}
		}
		wantReason(t, g.Do(nothing), guard.ReasonRate)
	})
}

// A leaky bucket's calls wait for their turn; who gives up, or would be too late, gives it back.
func TestLeakyBucketInTheGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t)
		g := declared(t, rt, "k", rated(registry.LeakyBucket, ""))
		start := time.Now()
		var calls sync.WaitGroup
		var mu sync.Mutex
		var at []time.Duration
		call := func(ctx context.Context) {
			err := g.DoContext(ctx, func(context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				at = append(at, time.Since(start))
				return nil
			})
			if err != nil && !errors.Is(err, guard.ErrRejected) {
				t.Error(err)
			}
		}
		for range 6 {
			calls.Go(func() { call(t.Context()) })
		}
		synctest.Wait()
		wantReason(t, g.Do(nothing), guard.ReasonRate) // six are as many as go and wait
		calls.Wait()
		for i, d := range at {
			if want := time.Duration(i) * 100 * time.Millisecond; d < want || d > want+time.Millisecond {
				t.Errorf("the calls went at %v", at)
				break
			}
		}
		elapse(time.Second)
		_ = g.Do(nothing)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		wantReason(t, g.DoContext(ctx, func(context.Context) error { return nil }), guard.ReasonDeadline)

		timed := rated(registry.LeakyBucket, "")
		timed.Timeout = 50 * time.Millisecond
		h := declared(t, rt, "timed", timed)
		ctxCall := func() error { return h.DoContext(t.Context(), func(context.Context) error { return nil }) }
		if err := ctxCall(); err != nil {
			t.Error(err)
		}
		wantReason(t, ctxCall(), guard.ReasonRate) // its turn comes after its timeout
	})
}

// A new rate takes the place of the old one; the same one keeps what was spent.
func TestRateAndNewSpecs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t)
		spec := rated(registry.TokenBucket, "")
		g := declared(t, rt, "k", spec)
		for range 10 {
			_ = g.Do(nothing)
		}
		spec.Limit = 50
		replace(t, rt, map[registry.Key]registry.Spec{"k": spec})
		wantReason(t, g.Do(nothing), guard.ReasonRate)
		spec.Rate.Calls = 20
		replace(t, rt, map[registry.Key]registry.Spec{"k": spec})
		if err := g.Do(nothing); err != nil {
			t.Error(err)
		}
		spec.Rate = registry.Rate{}
		replace(t, rt, map[registry.Key]registry.Spec{"k": spec})
		for range 100 {
			if err := g.Do(nothing); err != nil {
				t.Fatal(err)
			}
		}
	})
}
