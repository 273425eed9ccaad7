package guard_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

func TestGroupSharesOneBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t)
		shared := registry.Spec{Limit: 2, Stale: time.Second, Group: "pool"}
		replace(t, rt, specs{"a": shared, "b": shared, "c": {Limit: 1}})
		a, b, c := rt.For("a"), rt.For("b"), rt.For("c")
		events := rt.Subscribe(10)
		ctx := context.Background()
		pa, err := a.Enter(ctx)
		if err != nil {
			t.Fatal(err)
		}
		pb, err := b.Enter(ctx)
		if err != nil {
			t.Fatal(err)
		}
		r := rejectionOf(t, a.Do(nothing), guard.ReasonFull)
		if r.Key() != "a" || r.Limit() != 2 {
			t.Errorf("the refusal names %q and %d", r.Key(), r.Limit())
		}
		if err := c.Do(nothing); err != nil {
			t.Errorf("a key outside of the group: %v", err)
		}
		// Each knows its own calls, and what they share.
		for _, g := range []*guard.Guard{a, b} {
			if list := g.Entries(); len(list) != 1 || list[0].Owner != any(g) {
				t.Errorf("%s: its entries are %+v", g.Key(), list)
			}
			if s := g.Snapshot(); s.Bulkhead.InFlight != 2 || s.Bulkhead.Bound != 2 || s.Admitted != 2 {
				t.Errorf("%s: in flight %d of %d, admitted %d", g.Key(), s.Bulkhead.InFlight, s.Bulkhead.Bound, s.Admitted)
			}
		}
		// Counters and events are the key's own, whoever needed the place.
		elapse(2 * time.Second)
		if err := a.Do(func() error { return errWork }); err != errWork { //nolint:errorlint // untouched
			t.Errorf("a newcomer: %v", err)
		}
		if err := a.Do(nothing); err != nil {
			t.Errorf("a newcomer: %v", err)
		}
		pa.Record(nil)
		pa.Exit()
		pb.Exit()
		elapse(time.Second)
		sa, sb := a.Snapshot(), b.Snapshot()
		if sa.Failed != 1 || sa.Unrecorded != 0 || sa.Refused[guard.ReasonFull] != 1 || sa.Evicted != 1 {
			t.Errorf("a: failed %d, unrecorded %d, refused %v, evicted %d", sa.Failed, sa.Unrecorded, sa.Refused, sa.Evicted)
		}
		if sb.Failed != 0 || sb.Unrecorded != 1 || len(sb.Refused) != 0 || sb.Evicted != 0 {
			t.Errorf("b: failed %d, unrecorded %d, refused %v, evicted %d", sb.Failed, sb.Unrecorded, sb.Refused, sb.Evicted)
		}
		_ = rt.Close()
		for {
			e, err := events.Next(ctx)
			if err != nil {
				break
			}
			if e.Key != "a" {
				t.Errorf("an event of %q: %v", e.Key, e)
			}
		}
	})
}

// A group comes back with another bound: what was left of it must not stand in its place.
func TestGroupFollowsItsSpec(t *testing.T) {
	rt := newRuntime(t)
	bound := func(key registry.Key, want int) {
		t.Helper()
		if s := rt.For(key).Snapshot(); s.Bulkhead.Bound != want || s.Bulkhead.Limit != want || s.Spec.Limit != want {
			t.Errorf("%s: bound %d, limit %d, spec %d; want %d", key, s.Bulkhead.Bound, s.Bulkhead.Limit, s.Spec.Limit, want)
		}
	}
	in := func(n int) registry.Spec { return registry.Spec{Limit: n, Group: "pool"} }
	replace(t, rt, specs{"a": in(10)})
	bound("a", 10)
	rt.Registry().Remove("a") // the group has nobody
	replace(t, rt, specs{"b": in(5)})
	bound("b", 5)
	rt.Registry().Remove("b")
	replace(t, rt, specs{"c": {Limit: 3}})
	bound("c", 3)
	replace(t, rt, specs{"c": in(3)})
	bound("c", 3)
	// The key's own bound is not left behind either.
	replace(t, rt, specs{"c": in(4)})
	replace(t, rt, specs{"c": {Limit: 4}})
	bound("c", 4)
	// Both at once, and one after the other.
	replace(t, rt, specs{"a": in(8), "b": in(8)})
	bound("a", 8)
	bound("b", 8)
	replace(t, rt, specs{"a": in(9), "b": in(9)})
	bound("a", 9)
	bound("b", 9)
	replace(t, rt, specs{"a": {Limit: 1}})
	bound("a", 1)
	bound("b", 9)
}

// A key that moves finds its calls in flight again: its own bound cannot be had twice by going to a group and back.
func TestMovingInAndOutOfAGroup(t *testing.T) {
	rt := newRuntime(t)
	own, shared := registry.Spec{Limit: 2}, registry.Spec{Limit: 3, Group: "pool"}
	g := declared(t, rt, "k", own)
	ctx := context.Background()
	var passes []guard.Pass
	for round := range 5 {
		for g.Snapshot().Bulkhead.InFlight < g.Snapshot().Bulkhead.Bound {
			pass, err := g.Enter(ctx)
			if err != nil {
				t.Fatal(err)
			}
			passes = append(passes, pass)
		}
		wantReason(t, g.Do(nothing), guard.ReasonFull)
		replace(t, rt, specs{"k": []registry.Spec{shared, own}[round%2]})
	}
	if len(passes) != 2+3 {
		t.Errorf("%d calls are in flight under bounds of 2 and 3", len(passes))
	}
	for _, pass := range passes {
		pass.Record(nil)
		pass.Exit()
	}
	wantIdle(t, g)
	replace(t, rt, specs{"k": own})
	wantIdle(t, g)
	if s := g.Snapshot(); s.Failed+s.Unrecorded != 0 {
		t.Errorf("failed %d, unrecorded %d", s.Failed, s.Unrecorded)
	}
}

// Those who wait and those who are lost in a bulkhead that no key uses any more are not forgotten.
func TestNothingIsLeftInAGroupThatNobodyIsIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t)
		shared := registry.Spec{Limit: 2, Wait: time.Minute, Group: "pool"}
		g := declared(t, rt, "k", shared)
		events := rt.Subscribe(10)
		h := block(g.Do)
		forget(t, g, func(g *guard.Guard) (guard.Pass, error) { return g.Enter(context.Background()) })
		waiter := make(chan error)
		go func() { waiter <- g.Do(nothing) }()
		synctest.Wait()
		replace(t, rt, specs{"k": {Limit: 1, Wait: time.Minute, Queue: 5}})
		own := block(g.Do)
		ownWaiter := make(chan error)
		go func() { ownWaiter <- g.Do(nothing) }()
		synctest.Wait()
		for range 3 {
			runtime.GC()
		}
		elapse(300 * time.Millisecond) // the lost place goes to the waiter, and is told of
		if err := <-waiter; err != nil {
			t.Errorf("waiting for a lost place: %v", err)
		}
		go func() { waiter <- g.Do(nothing) }()
		synctest.Wait()
		replace(t, rt, specs{"k": shared})
		full := block(g.Do)
		go func() { waiter <- g.Do(nothing) }() // waits in the group
		synctest.Wait()
		replace(t, rt, specs{"k": {Limit: 1, Wait: time.Minute, Queue: 5}})
		_ = rt.Close()
		for range 2 {
			wantReason(t, <-waiter, guard.ReasonClosed)
		}
		wantReason(t, <-ownWaiter, guard.ReasonClosed)
		for _, b := range []*blocked{h, own, full} {
			if err := b.end(); err != nil {
				t.Error(err)
			}
		}
		lost := 0
		for {
			e, err := events.Next(context.Background())
			if err != nil {
				break
			}
			if e.Kind == guard.EventLost {
				lost++
			}
		}
		if lost != 1 || g.Snapshot().Lost != 1 {
			t.Errorf("%d losses are told, %d counted; want 1", lost, g.Snapshot().Lost)
		}
	})
}

// Calls of all kinds while keys move between groups and bounds change: nothing is lost on the way, and no group ever holds more
// than its largest bound.
func TestCallsWhileGroupsChange(t *testing.T) {
	calls, most := 100_000, int64(8)
	if testing.Short() || raceDetector {
		calls = 20_000
	}
	rt := newRuntime(t)
	keys := []registry.Key{"a", "b", "c", "d"}
	var running [5]atomic.Int64 // by where the call entered
	var over atomic.Int64
	stop := make(chan struct{})
	var mover, workers sync.WaitGroup
	mover.Go(func() {
		r := rand.New(rand.NewPCG(1, 1))
		for {
			select {
			case <-stop:
				return
			default:
			}
			s := specs{}
			wait := time.Duration(r.IntN(2)) * time.Millisecond
			for _, key := range keys {
				s[key] = registry.Spec{Limit: int(most) - r.IntN(3), Wait: wait}
			}
			n := 1 + r.IntN(int(most))
			for _, key := range keys[:r.IntN(len(keys)+1)] {
				s[key] = registry.Spec{Limit: n, Wait: wait, Group: "pool"}
			}
			if err := rt.Registry().Replace(s); err != nil {
				t.Error(err)
			}
			runtime.Gosched()
		}
	})
	ctx := context.Background()
	var ran, refused atomic.Int64
	for w := range 16 {
		workers.Go(func() {
			r := rand.New(rand.NewPCG(2, uint64(w)))
			for range calls / 16 {
				k := r.IntN(len(keys))
				g := rt.For(keys[k])
				err := g.DoContext(ctx, func(context.Context) error {
					if running[k].Add(1) > 2*most { // its own bound and the group's
						over.Add(1)
					}
					defer running[k].Add(-1)
					ran.Add(1)
					if r.IntN(4) == 0 {
						runtime.Gosched()
					}
					return nil
				})
				if err != nil {
					refused.Add(1)
				}
			}
		})
	}
	workers.Wait()
	close(stop)
	mover.Wait()
	if over.Load() > 0 {
		t.Errorf("%d calls saw more of their key than both bounds allow", over.Load())
	}
	own, pool := specs{}, specs{}
	for _, key := range keys {
		own[key] = registry.Spec{Limit: 1}
		pool[key] = registry.Spec{Limit: 1, Group: "pool"}
	}
	sum := uint64(0)
	for _, s := range []specs{own, pool} {
		replace(t, rt, s)
		for _, key := range keys {
			wantIdle(t, rt.For(key))
		}
	}
	for _, key := range keys {
		for _, n := range rt.For(key).Snapshot().Refused {
			sum += n
		}
	}
	if sum != uint64(refused.Load()) || ran.Load()+refused.Load() != int64(calls/16*16) {
		t.Errorf("%d calls ran, %d were refused, %d refusals are counted", ran.Load(), refused.Load(), sum)
	}
	t.Logf("%d calls ran, %d were refused", ran.Load(), refused.Load())
}
