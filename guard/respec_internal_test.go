package guard

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/registry"
)

func silent(t *testing.T, opts ...Option) *Runtime {
	t.Helper()
	rt, err := NewRuntime(nil, append([]Option{WithLogger(zerolog.Nop()), WithPressure(nil), WithoutWatchdog()}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close() })
	return rt
}

func respecified(t *testing.T, rt *Runtime, s registry.Spec) {
	t.Helper()
	if err := rt.reg.Replace(map[registry.Key]registry.Spec{"k": s}); err != nil {
		t.Fatal(err)
	}
}

// A call that has read its plan when the spec is replaced goes on by that plan: a key that did not wait does not begin to, with a
// timeout that the call does not know of.
func TestCallKeepsThePlanItBeganWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := silent(t)
		respecified(t, rt, registry.Spec{Limit: 1})
		g := rt.For("k")
		pass, err := g.Enter(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		enter := func(p *plan) (waited time.Duration) {
			start := time.Now()
			done := make(chan error)
			go func() {
				_, err := g.enterBulkhead(context.Background(), p, time.Time{}, &p.scoped)
				done <- err
			}()
			if r, ok := (<-done).(*Rejection); !ok || r.reason != ReasonFull { //nolint:errorlint // never wrapped
				t.Errorf("got %v, want full", r)
			}
			return time.Since(start)
		}
		before := g.plan.Load()
		respecified(t, rt, registry.Spec{Limit: 1, Wait: time.Minute, Timeout: 10 * time.Millisecond})
		if waited := enter(before); waited != 0 {
			t.Errorf("a call that began under a spec without waiting waited for %v", waited)
		}
		before = g.plan.Load()
		respecified(t, rt, registry.Spec{Limit: 1, Wait: time.Minute})
		if waited := enter(before); waited != 10*time.Millisecond {
			t.Errorf("a call that began with a timeout of 10 ms waited for %v", waited)
		}
		pass.Exit()
	})
}

// A direct call finds no place and by then the spec has another: it must take the new one whole.
func TestDirectCallThatLosesItsSpec(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := silent(t)
		respecified(t, rt, registry.Spec{Limit: 1})
		g := rt.For("k")
		h, err := g.Enter(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		respecified(t, rt, registry.Spec{Limit: 1, Wait: time.Minute, Timeout: 100 * time.Millisecond})
		g.turn(byPlan, false) // as the call read it just before
		time.AfterFunc(10*time.Millisecond, h.Exit)
		done := make(chan struct{})
		go func() {
			defer close(done)
			err := g.DoContext(context.Background(), func(ctx context.Context) error {
				if end, ok := ctx.Deadline(); !ok || time.Until(end) != 90*time.Millisecond {
					t.Errorf("it waited by the new spec, and has its timeout: %v", ok)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}()
		<-done
	})
}

// What was once used and is not any more must not pile up.
func TestGroupsAreLetGo(t *testing.T) {
	rt := silent(t)
	g := rt.For("k")
	for i := range 100 {
		respecified(t, rt, registry.Spec{Limit: 3, Group: fmt.Sprint("group", i)})
		if err := g.Do(func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		if n := len(rt.table.groups); n != 1 {
			t.Fatalf("after %d groups %d are kept", i+1, n)
		}
	}
	// One with calls in flight stays until they have left.
	pass, err := g.Enter(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	busy := rt.table.groups["group99"]
	respecified(t, rt, registry.Spec{Limit: 3, Group: "next"})
	if rt.table.groups["group99"] != busy || len(rt.table.groups) != 2 {
		t.Error("a group with a call in flight was let go")
	}
	respecified(t, rt, registry.Spec{Limit: 3, Group: "group99"})
	if g.group != busy || busy.bulkhead.InFlight() != 1 || busy.members != 1 {
		t.Error("coming back, the key does not find its call in flight")
	}
	respecified(t, rt, registry.Spec{Limit: 3})
	pass.Exit()
	respecified(t, rt, registry.Spec{Limit: 3, Group: "last"})
	rt.reg.Remove("k")
	if n := len(rt.table.groups); n != 0 {
		t.Errorf("%d groups are left", n)
	}
	if n := g.own.InFlight() + busy.bulkhead.InFlight(); n != 0 {
		t.Errorf("%d in flight", n)
	}
}

// A guard that is dropped and found again for years must not carry a cleanup for each time.
func TestForgettingTwiceLeavesOneCleanup(t *testing.T) {
	rt := silent(t, WithMaxKeys(1))
	g := rt.For("held")
	for range 3 {
		rt.For("other")
		if rt.For("held") != g {
			t.Fatal("not found again")
		}
	}
	if !g.forgotten {
		t.Error("it was never dropped")
	}
	rt.table.mu.Lock()
	rt.table.forget(g)
	if n := len(rt.table.weak); n != 2 {
		t.Errorf("%d guards are known weakly, want 2", n)
	}
	rt.table.hold(g, false)
	rt.table.mu.Unlock()
}

// Bulkheads take every spec that the registry accepts.
func TestRegistrysRangesLieWithinTheBulkheads(t *testing.T) {
	if registry.MaxLimit > bulkhead.MaxLimit || registry.MaxExpand > bulkhead.MaxExpand || registry.MaxQueue > bulkhead.MaxQueue {
		t.Error("the registry accepts what a bulkhead refuses")
	}
	rt := silent(t)
	for _, s := range []registry.Spec{
		{Limit: registry.MaxLimit, Expand: registry.MaxExpand, Wait: time.Minute, Queue: registry.MaxQueue, Stale: 24 * time.Hour},
		{Limit: 1, Expand: 1, Stale: 10 * time.Millisecond},
	} {
		respecified(t, rt, s)
		if err := rt.Do("k", func() error { return nil }); err != nil {
			t.Error(err)
		}
	}
}
