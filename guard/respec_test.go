package guard_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

type specs = map[registry.Key]registry.Spec

func TestReplaceKeepsCallsInFlightAndWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t)
		g := declared(t, rt, "k", registry.Spec{Limit: 2, Wait: time.Second})
		a, b := block(g.Do), block(g.Do)
		results := make(chan error, 2)
		started := make(chan string, 2)
		wait := func(name string) {
			go func() { results <- g.Do(func() error { started <- name; return nil }) }()
			synctest.Wait()
		}
		wait("first")
		wait("second")
		check := func(what string, bound, inFlight, waiting int) {
			t.Helper()
			synctest.Wait()
			if s := g.Snapshot().Bulkhead; s.Bound != bound || s.InFlight != inFlight || s.Waiting != waiting {
				t.Errorf("%s: bound %d, in flight %d, waiting %d; want %d, %d, %d", what, s.Bound, s.InFlight, s.Waiting, bound, inFlight, waiting)
			}
		}
		check("before", 2, 2, 2)
		replace(t, rt, specs{"k": {Limit: 1, Wait: time.Second}})
		check("lowered", 1, 2, 2)
		_ = a.end()
		check("lowered, one has left", 1, 1, 2) // nobody enters until there is room under the new bound
		replace(t, rt, specs{"k": {Limit: 1, Wait: 2 * time.Second, Timeout: time.Hour}})
		check("other fields", 1, 1, 2)
		replace(t, rt, specs{"k": {Limit: 1}})
		check("no more waiting", 1, 1, 2) // who waits goes on waiting
		wantReason(t, g.Do(nothing), guard.ReasonFull)
		replace(t, rt, specs{"k": {Limit: 5}})
		if one, two := <-started, <-started; one == two { // both fit at once, so that either may run first
			t.Errorf("they came in as %q, %q", one, two)
		}
		for range 2 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		check("raised", 5, 1, 0)
		_ = b.end()
		wantIdle(t, g)
		if s := g.Snapshot(); s.Admitted != 4 {
			t.Errorf("admitted %d, want 4", s.Admitted)
		}
	})
}

func TestEveryFieldTakesEffectAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t)
		g := rt.For("k") // undeclared so far
		ctx := context.Background()
		left := func() (left time.Duration) {
			_ = g.DoContext(ctx, func(ctx context.Context) error {
				if end, ok := ctx.Deadline(); ok {
					left = time.Until(end)
				}
				return nil
			})
			return left
		}
		if left() != 0 {
			t.Error("there is a deadline already")
		}
		replace(t, rt, specs{"k": {Timeout: time.Second}})
		if left() != time.Second {
			t.Errorf("timeout: %v are left", left())
		}
		replace(t, rt, specs{"k": {Floor: time.Minute}})
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		wantReason(t, g.DoContext(short, func(context.Context) error { return nil }), guard.ReasonDeadline)
		replace(t, rt, specs{"k": {Limit: 1}})
		h := block(g.Do)
		wantReason(t, g.Do(nothing), guard.ReasonFull)
		replace(t, rt, specs{"k": {Limit: 1, Wait: 200 * time.Millisecond}})
		start := time.Now()
		wantReason(t, g.Do(nothing), guard.ReasonFull)
		if passed := time.Since(start); passed != 200*time.Millisecond {
			t.Errorf("wait: it took %v", passed)
		}
		replace(t, rt, specs{"k": {Limit: 1, Stale: 10 * time.Millisecond}})
		if err := g.Do(nothing); err != nil {
			t.Errorf("stale: %v", err)
		}
		_ = h.end()
		replace(t, rt, specs{"k": {Slow: time.Millisecond}})
		h = block(g.Do)
		elapse(2 * time.Millisecond)
		if n := g.Snapshot().Slow; n != 1 {
			t.Errorf("slow: %d calls are", n)
		}
		_ = h.end()
		rt.Registry().Remove("k")
		if s := g.Snapshot(); s.Declared || s.Spec != (registry.Spec{}).WithDefaults() {
			t.Errorf("removed: %v, declared: %v", s.Spec, s.Declared)
		}
		if err := rt.Registry().SetDefault(registry.Spec{Limit: 3, Timeout: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if s := g.Snapshot(); s.Spec.Limit != 3 || s.Bulkhead.Bound != 3 || left() != time.Minute {
			t.Errorf("a new default: %v, bound %d, %v left", s.Spec, s.Bulkhead.Bound, left())
		}
		wantIdle(t, g)
	})
}

// Whatever the order in which changes are heard of, in the end every guard follows the registry, those included that are being
// made meanwhile.
func TestConcurrentChangesConverge(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 50
	}
	for round := range rounds {
		rt := newRuntime(t, guard.WithMaxKeys(4))
		keys := []registry.Key{"a", "b", "c", "d", "e", "f"}
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(round), uint64(w)))
				for range 20 {
					key := keys[r.IntN(len(keys))]
					switch r.IntN(6) {
					case 0:
						rt.Registry().Remove(key)
					case 1:
						if err := rt.Registry().SetDefault(registry.Spec{Limit: 1 + r.IntN(100)}); err != nil {
							t.Error(err)
						}
					case 2, 3:
						s := registry.Spec{Limit: 1 + r.IntN(100), Timeout: time.Duration(1+r.IntN(2)) * time.Minute}
						if err := rt.Registry().Replace(specs{key: s}); err != nil {
							t.Error(err)
						}
					default:
						_ = rt.Do(key, nothing)
					}
				}
			})
		}
		wg.Wait()
		for _, s := range rt.Snapshot().Keys {
			if want, declared := rt.Registry().Lookup(s.Key); s.Spec != want || s.Declared != declared || s.Bulkhead.Limit != want.Limit || s.Bulkhead.Bound != want.Limit {
				t.Fatalf("round %d: %s has %v, limit %d, bound %d; the registry says %v", round, s.Key, s.Spec, s.Bulkhead.Limit, s.Bulkhead.Bound, want)
			}
		}
		_ = rt.Close()
	}
}

// Two specs take turns while calls run. Each call must see the one or the other: of the first its timeout, of the second none and a
// shared bound.
func TestCallSeesOneWholeSpec(t *testing.T) {
	rt := newRuntime(t)
	first := registry.Spec{Limit: 7, Timeout: time.Hour, Criticality: registry.Sheddable}
	second := registry.Spec{Limit: 3, Floor: time.Minute, Group: "shared"}
	g := declared(t, rt, "k", first)
	flips := 3000
	if testing.Short() {
		flips = 300
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	short, cancel := context.WithTimeout(context.Background(), 30*time.Second) // below the second's floor
	defer cancel()
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				s := g.Snapshot()
				if s.Spec != first.WithDefaults() && s.Spec != second.WithDefaults() {
					t.Errorf("a spec of both: %v", s.Spec)
					return
				}
				err := g.DoContext(short, func(ctx context.Context) error {
					if ctx == short {
						return errors.New("ran with less than the floor")
					}
					return nil
				})
				var r *guard.Rejection
				if err != nil && !errors.As(err, &r) {
					t.Error(err)
					return
				}
				if r != nil && r.Reason() != guard.ReasonDeadline && r.Reason() != guard.ReasonFull {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range flips {
		replace(t, rt, specs{"k": []registry.Spec{second, first}[i%2]})
	}
	close(stop)
	wg.Wait()
	wantIdle(t, g)
	replace(t, rt, specs{"k": second})
	wantIdle(t, g)
}

func TestEventsOfNewSpecs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t)
		g := declared(t, rt, "k", registry.Spec{Limit: 1})
		for i := range 100 {
			_ = rt.Do(registry.Key(fmt.Sprint("key", i)), nothing)
		}
		events := rt.Subscribe(100)
		replace(t, rt, specs{"k": {Limit: 2}, "without_a_guard": {}})
		replace(t, rt, specs{"k": {Limit: 2}})
		if err := rt.Registry().SetDefault(registry.Spec{Limit: 4}); err != nil {
			t.Fatal(err)
		}
		rt.Registry().Remove("k", "without_a_guard")
		_ = rt.Close()
		want := []struct {
			key  registry.Key
			spec registry.Spec
		}{
			{"k", registry.Spec{Limit: 2}.WithDefaults()},
			{"(default)", registry.Spec{Limit: 4}.WithDefaults()}, // one for a hundred keys
			{"k", registry.Spec{Limit: 4}.WithDefaults()},
		}
		for _, w := range want {
			e, err := events.Next(context.Background())
			if err != nil || e.Kind != guard.EventSpec || e.Key != w.key || e.Spec != w.spec {
				t.Errorf("event %v, %v; want %s with %v", e, err, w.key, w.spec)
			}
		}
		if e, err := events.Next(context.Background()); !errors.Is(err, guard.ErrSubscriptionClosed) {
			t.Errorf("one more event: %v", e)
		}
		if g.Snapshot().Spec.Limit != 4 {
			t.Error("the guard does not follow")
		}
	})
}
