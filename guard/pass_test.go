package guard_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

func TestZeroPass(t *testing.T) {
	var pass guard.Pass
	pass.Record(nil)
	pass.Record(errWork)
	pass.Pin()
	pass.Exit()
	pass.Exit()
	if pass.Context() != context.Background() {
		t.Errorf("its context is %v", pass.Context())
	}
	// The one that comes with an error is as good.
	g := declared(t, newRuntime(t), "k", registry.Spec{Limit: 1})
	h := block(g.Do)
	refused, err := g.Enter(context.Background())
	wantReason(t, err, guard.ReasonFull)
	if refused != (guard.Pass{}) {
		t.Error("a refusal came with a pass")
	}
	refused.Record(nil)
	refused.Exit()
	_ = h.end()
	wantIdle(t, g)
	if s := g.Snapshot(); s.Admitted != 1 || s.Failed+s.Unrecorded != 0 {
		t.Errorf("admitted %d, failed %d, unrecorded %d; want 1, 0, 0", s.Admitted, s.Failed, s.Unrecorded)
	}
}

// enters are the ways to get a pass.
var enters = []struct {
	name  string
	enter func(*guard.Guard) (guard.Pass, error)
}{
	{"Enter", func(g *guard.Guard) (guard.Pass, error) { return g.Enter(context.Background()) }},
	{"EnterN", func(g *guard.Guard) (guard.Pass, error) { return g.EnterN(context.Background(), 2) }},
	{"EnterScoped", func(g *guard.Guard) (guard.Pass, error) { return g.EnterScoped(context.Background()) }},
}

func eachEnter(t *testing.T, test func(t *testing.T, g *guard.Guard, enter func() guard.Pass)) {
	t.Helper()
	for _, path := range paths {
		for _, e := range enters {
			t.Run(path.name+"/"+e.name, func(t *testing.T) {
				g := declared(t, newRuntime(t), "k", path.spec)
				test(t, g, func() guard.Pass {
					pass, err := e.enter(g)
					if err != nil {
						t.Fatal(err)
					}
					return pass
				})
			})
		}
	}
}

func TestOutcomeIsTheLastRecord(t *testing.T) {
	eachEnter(t, func(t *testing.T, g *guard.Guard, enter func() guard.Pass) {
		t.Helper()
		for _, c := range []struct {
			record             []error
			failed, unrecorded uint64
		}{
			{nil, 0, 1},
			{[]error{nil}, 0, 0},
			{[]error{errWork}, 1, 0},
			{[]error{errWork, nil}, 0, 0},
			{[]error{nil, errWork}, 1, 0},
		} {
			before := g.Snapshot()
			pass := enter()
			for _, err := range c.record {
				pass.Record(err)
			}
			pass.Exit()
			after := g.Snapshot()
			if after.Failed-before.Failed != c.failed || after.Unrecorded-before.Unrecorded != c.unrecorded || after.Admitted-before.Admitted != 1 {
				t.Errorf("after Record of %v: failed +%d, unrecorded +%d, admitted +%d", c.record,
					after.Failed-before.Failed, after.Unrecorded-before.Unrecorded, after.Admitted-before.Admitted)
			}
		}
		wantIdle(t, g)
	})
}

// Copies, Exit twice, and Exit when another call has long taken the place: only the first Exit counts, and no other call loses
// its place.
func TestOnlyTheFirstExitCounts(t *testing.T) {
	eachEnter(t, func(t *testing.T, g *guard.Guard, enter func() guard.Pass) {
		t.Helper()
		for range 100 {
			first := enter()
			spare := first
			late := first
			first.Record(nil)
			first.Exit()
			first.Exit()
			next := enter() // in the same slot
			spare.Record(errWork)
			spare.Exit()
			done := make(chan struct{})
			go func() { late.Exit(); close(done) }()
			<-done
			if n := g.Snapshot().Bulkhead.InFlight; n == 0 {
				t.Fatal("a late Exit gave back another call's place")
			}
			next.Record(nil)
			next.Exit()
		}
		if s := g.Snapshot(); s.Admitted != 200 || s.Failed != 0 || s.Unrecorded != 0 {
			t.Errorf("admitted %d, failed %d, unrecorded %d; want 200, 0, 0", s.Admitted, s.Failed, s.Unrecorded)
		}
		wantIdle(t, g)
	})
}

func TestExitOnManyGoroutinesCountsOnce(t *testing.T) {
	eachEnter(t, func(t *testing.T, g *guard.Guard, enter func() guard.Pass) {
		t.Helper()
		for range 50 {
			pass := enter()
			pass.Record(errWork)
			var wg sync.WaitGroup
			for range 4 {
				copied := pass
				wg.Go(func() { copied.Exit() })
			}
			wg.Wait()
		}
		if s := g.Snapshot(); s.Failed != 50 || s.Admitted != 50 {
			t.Errorf("admitted %d, failed %d; want 50, 50", s.Admitted, s.Failed)
		}
		wantIdle(t, g)
	})
}

func TestEnterNIsAllOrNothing(t *testing.T) {
	g := declared(t, newRuntime(t), "k", registry.Spec{Limit: 5, Expand: 2})
	ctx := context.Background()
	three, err := g.EnterN(ctx, 3)
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.EnterN(ctx, 3)
	wantReason(t, err, guard.ReasonFull)
	if n := g.Snapshot().Bulkhead.InFlight; n != 3 {
		t.Errorf("%d places are taken after a refusal, want 3", n)
	}
	two, err := g.EnterN(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	two.Exit()
	for _, n := range []int{0, -5} {
		one, err := g.EnterN(ctx, n)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Snapshot().Bulkhead.InFlight; got != 4 {
			t.Errorf("weight %d: %d places are taken, want 3+1", n, got)
		}
		one.Exit()
	}
	three.Exit()
	_, err = g.EnterN(ctx, 11)
	if r := rejectionOf(t, err, guard.ReasonTooHeavy); r.Limit() != 10 {
		t.Errorf("the limit of a weight is named as %d, want Expand x Limit = 10", r.Limit())
	}
	_, err = g.EnterN(ctx, 6)
	wantReason(t, err, guard.ReasonFull) // fits only an expanded bound
	wantIdle(t, g)
}

func TestEntriesShowTheCallsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := declared(t, newRuntime(t), "k", registry.Spec{Limit: 5, Slow: 10 * time.Second})
		heavy, _ := g.EnterN(context.Background(), 2)
		elapse(time.Second)
		stream, _ := g.Enter(context.Background())
		stream.Pin()
		elapse(time.Second)
		list := g.Entries()
		if len(list) != 2 {
			t.Fatalf("%d entries: %+v", len(list), list)
		}
		if e := list[0]; e.Weight != 2 || e.Pinned || !about(e.Age, 2*time.Second) || e.Owner != any(g) || e.Goroutine == 0 {
			t.Errorf("the older entry is %+v", e)
		}
		if e := list[1]; e.Weight != 1 || !e.Pinned || !about(e.Age, time.Second) || e.Goroutine != list[0].Goroutine {
			t.Errorf("the younger entry is %+v", e)
		}
		s := g.Snapshot()
		if s.Bulkhead.InFlight != 3 || !about(s.Bulkhead.Oldest, 2*time.Second) || s.Slow != 0 {
			t.Errorf("in flight %d, oldest %v, slow %d", s.Bulkhead.InFlight, s.Bulkhead.Oldest, s.Slow)
		}
		elapse(8500 * time.Millisecond)
		if s := g.Snapshot(); s.Slow != 1 {
			t.Errorf("%d calls are slow, want 1: %+v", s.Slow, g.Entries())
		}
		elapse(time.Second)
		if s := g.Snapshot(); s.Slow != 2 {
			t.Errorf("%d calls are slow, want 2: %+v", s.Slow, g.Entries())
		}
		heavy.Exit()
		stream.Exit()
		wantIdle(t, g)
	})
}

// about: ages are exact to 256 ns.
func about(d, want time.Duration) bool { return (d - want).Abs() < time.Microsecond }

// A stuck call loses its place to a newcomer; its own Exit, late, counts once and frees what it still held.
func TestLateExitAfterEviction(t *testing.T) {
	for _, path := range paths {
		for _, e := range enters {
			t.Run(path.name+"/"+e.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					spec := path.spec
					spec.Limit, spec.Expand, spec.Stale = 2, 2, time.Second
					rt := newRuntime(t)
					g := declared(t, rt, "k", spec)
					events := rt.Subscribe(10)
					enter := func() (guard.Pass, error) { return e.enter(g) }
					stuck, err := enter()
					if err != nil {
						t.Fatal(err)
					}
					second, err := g.Enter(context.Background())
					if e.name != "EnterN" && err != nil {
						t.Fatal(err)
					}
					elapse(time.Second + time.Millisecond)
					var newcomer guard.Pass
					done := make(chan error)
					go func() { // elsewhere, or the scoped one would be nested in the stuck one
						var err error
						newcomer, err = enter()
						done <- err
					}()
					if err := <-done; err != nil {
						t.Fatalf("a newcomer did not get the stuck call's place: %v", err)
					}
					if b := g.Snapshot().Bulkhead; b.Detached == 0 || b.InFlight+b.Detached > b.Max {
						t.Errorf("in flight %d, detached %d of at most %d", b.InFlight, b.Detached, b.Max)
					}
					stuck.Record(errWork)
					stuck.Exit()
					stuck.Exit()
					if b := g.Snapshot().Bulkhead; b.Detached != 0 {
						t.Errorf("%d detached after the late Exit", b.Detached)
					}
					newcomer.Record(nil)
					newcomer.Exit()
					second.Record(nil)
					second.Exit()
					wantIdle(t, g)
					elapse(time.Second)
					if s := g.Snapshot(); s.Failed != 1 || s.Unrecorded != 0 || s.Evicted != 1 {
						t.Errorf("failed %d, unrecorded %d, evicted %d; want 1, 0, 1", s.Failed, s.Unrecorded, s.Evicted)
					}
					ev, err := events.Next(context.Background())
					if ev.Kind == guard.EventRefused { // second had no room beside a heavy one
						ev, err = events.Next(context.Background())
					}
					if err != nil || ev.Kind != guard.EventEvicted || ev.Key != "k" || ev.Goroutine == 0 || ev.Duration < time.Second {
						t.Errorf("event %+v, %v", ev, err)
					}
				})
			})
		}
	}
}

func TestPinnedPassIsNeverEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := declared(t, newRuntime(t), "k", registry.Spec{Limit: 1, Stale: time.Second})
		for _, e := range enters {
			if e.name == "EnterN" {
				continue
			}
			pass, err := e.enter(g)
			if err != nil {
				t.Fatal(err)
			}
			pass.Pin()
			elapse(time.Hour)
			h := make(chan error)
			go func() { h <- g.Do(nothing) }()
			wantReason(t, <-h, guard.ReasonFull)
			pass.Exit()
			// A pin is the call's, not the slot's.
			pass, err = e.enter(g)
			if err != nil {
				t.Fatal(err)
			}
			elapse(time.Minute)
			go func() { h <- g.Do(nothing) }()
			if err := <-h; err != nil {
				t.Errorf("the call after a pinned one is pinned too: %v", err)
			}
			pass.Exit()
		}
		wantIdle(t, g)
	})
}

func TestForgottenPassIsFoundByTheCollector(t *testing.T) {
	rt := newRuntime(t)
	for _, path := range paths {
		for _, e := range enters[:2] { // a scoped pass cannot be lost
			g := declared(t, rt, registry.Key("k:"+path.name+":"+e.name), path.spec)
			for round := range uint64(3) {
				forget(t, g, e.enter)
				for range 100 {
					runtime.GC()
					if g.Snapshot().Bulkhead.InFlight == 0 {
						break
					}
				}
				b := g.Snapshot().Bulkhead
				if path.spec.Group == "" && (b.InFlight != 0 || b.Lost != round+1) {
					t.Fatalf("%s: %d in flight, %d lost; want 0, %d", g.Key(), b.InFlight, b.Lost, round+1)
				}
				if err := g.Do(nothing); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

//go:noinline
func forget(t *testing.T, g *guard.Guard, enter func(*guard.Guard) (guard.Pass, error)) {
	t.Helper()
	if _, err := enter(g); err != nil {
		t.Fatal(err)
	}
}
