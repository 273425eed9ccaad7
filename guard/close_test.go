package guard_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

func TestClosedRuntimeRefuses(t *testing.T) {
	for _, path := range paths {
		for _, way := range ways {
			t.Run(path.name+"/"+way.name, func(t *testing.T) {
				rt := newRuntime(t)
				g := declared(t, rt, "k", path.spec)
				do := func(fn func() error) error { return way.do(g, fn) }
				h := block(do)
				nested := make(chan error)
				n := block(func(fn func() error) error {
					return g.Do(func() error {
						err := fn()
						nested <- g.Do(nothing)
						return err
					})
				})
				for range 2 {
					if err := rt.Close(); err != nil {
						t.Error(err)
					}
				}
				for range 3 {
					err := do(func() error { t.Error("a call ran"); return nil })
					if r := rejectionOf(t, err, guard.ReasonClosed); !errors.Is(err, guard.ErrClosed) || r.Key() != "k" {
						t.Errorf("%v", err)
					}
				}
				wantReason(t, rt.Do("new", nothing), guard.ReasonClosed)
				wantReason(t, rt.Do("not valid", nothing), guard.ReasonInvalidKey)
				if n := g.Snapshot().Bulkhead.InFlight; n != 2 {
					t.Errorf("%d in flight, want the two that were", n)
				}
				if err := h.end(); err != nil {
					t.Errorf("the call in flight: %v", err)
				}
				close(n.leave)
				if err := <-nested; err != nil {
					t.Errorf("a call inside a call in flight: %v", err)
				}
				if err := <-n.done; err != nil {
					t.Errorf("the call in flight: %v", err)
				}
				if s := g.Snapshot(); s.Admitted != 2 || s.Failed+s.Unrecorded != 0 || s.Refused[guard.ReasonClosed] != 3 {
					t.Errorf("admitted %d, failed %d, unrecorded %d, refused %v", s.Admitted, s.Failed, s.Unrecorded, s.Refused)
				}
				wantIdle(t, g)
			})
		}
	}
}

func TestCloseAnswersThoseWhoWait(t *testing.T) {
	for _, path := range paths {
		for _, way := range ways {
			if path.spec.Wait == 0 {
				continue
			}
			t.Run(path.name+"/"+way.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					rt := newRuntime(t)
					spec := path.spec
					spec.Limit = 1
					g := declared(t, rt, "k", spec)
					h := block(g.Do)
					waiter := make(chan error)
					go func() { waiter <- way.do(g, func() error { t.Error("it ran"); return nil }) }()
					synctest.Wait()
					start := time.Now()
					_ = rt.Close()
					wantReason(t, <-waiter, guard.ReasonClosed)
					if time.Since(start) != 0 {
						t.Errorf("it was answered after %v", time.Since(start))
					}
					_ = h.end()
					wantIdle(t, g)
				})
			})
		}
	}
}

// A runtime that nobody used has nothing to end, and starts nothing afterwards.
func TestCloseBeforeTheFirstUse(t *testing.T) {
	before := runtime.NumGoroutine()
	rt := newRuntime(t)
	if runtime.NumGoroutine() != before {
		t.Error("making a runtime starts a goroutine")
	}
	_ = rt.Close()
	wantReason(t, rt.Do("k", nothing), guard.ReasonClosed)
	s := rt.Subscribe(1)
	if _, err := s.Next(context.Background()); !errors.Is(err, guard.ErrSubscriptionClosed) {
		t.Error(err)
	}
	if runtime.NumGoroutine() != before {
		t.Error("a closed runtime started a goroutine")
	}
}

// Close against everything else. What Close returns to has no call admitted afterwards.
func TestCloseAmidCalls(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 50
	}
	for round := range rounds {
		rt, err := guard.NewRuntime(nil, guard.WithLogger(zerolog.Nop()), guard.WithMaxKeys(4))
		if err != nil {
			t.Fatal(err)
		}
		replace(t, rt, specs{
			"a": {Limit: 2}, "b": {Limit: 2, Wait: time.Minute, Queue: 100}, "c": {Limit: 2, Group: "g"}, "d": {Limit: 2, Timeout: time.Minute},
		})
		keys := []registry.Key{"a", "b", "c", "d", "e", "f", "g", "h", "i"}
		var closed atomic.Bool
		var late, ran atomic.Int64
		var wg sync.WaitGroup
		for w := range 6 {
			wg.Go(func() {
				for i := range 60 {
					key := keys[(i*7+w)%len(keys)]
					was := closed.Load()
					err := rt.Do(key, func() error {
						if was {
							late.Add(1)
						}
						ran.Add(1)
						return nil
					})
					var r *guard.Rejection
					if err != nil && (!errors.As(err, &r) || r.Reason() != guard.ReasonClosed && r.Reason() != guard.ReasonFull) {
						t.Error(err)
					}
					if was && err == nil {
						late.Add(1)
					}
					if i%20 == 0 {
						_ = rt.Registry().Replace(specs{"c": {Limit: 2, Group: fmt.Sprint("g", w)}})
						_ = rt.Registry().SetDefault(registry.Spec{Limit: 2 + w})
					}
				}
			})
		}
		wg.Go(func() {
			for range round % 7 * 10 {
				runtime.Gosched()
			}
			_ = rt.Close()
			closed.Store(true)
		})
		wg.Go(func() { _ = rt.Close() })
		wg.Wait()
		if late.Load() > 0 {
			t.Fatalf("round %d: %d calls were admitted after Close had returned", round, late.Load())
		}
		for _, key := range keys {
			wantIdle(t, rt.For(key))
			if err := rt.Do(key, nothing); !errors.Is(err, guard.ErrClosed) {
				t.Fatalf("round %d: %v", round, err)
			}
		}
	}
}
