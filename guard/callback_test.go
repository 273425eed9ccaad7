package guard_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// Callbacks run without a lock, so they may use the runtime that calls them; in a bubble a deadlock fails the test.

// everything uses the runtime in all the ways that take a lock somewhere.
func everything(rt *guard.Runtime, key registry.Key) {
	_ = rt.Do(key, nothing)
	_ = rt.Do("made_by_a_callback", nothing)
	_ = rt.Do("not valid", nothing)
	_ = rt.For(key).Entries()
	rt.Snapshot()
	s := rt.Subscribe(1)
	s.Close()
	_ = rt.Registry().Replace(specs{"changed_by_a_callback": {Limit: 3, Group: "made_by_a_callback"}})
	rt.Registry().Remove("changed_by_a_callback")
	_ = rt.Registry().SetDefault(registry.Spec{Limit: 17})
}

type callback struct{ f func(registry.Key) }

func (c callback) Refuse(_ context.Context, key registry.Key) guard.Reason { c.f(key); return 0 }
func (c callback) Inject(_ context.Context, key registry.Key) error        { c.f(key); return nil }

func TestInjectorThatCallsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rt *guard.Runtime
		depth, called := 0, 0
		rt = newRuntime(t, guard.WithMaxKeys(2), guard.WithInjector(callback{func(key registry.Key) {
			called++
			if depth > 0 {
				return
			}
			depth++
			everything(rt, key)
			depth--
		}}))
		for i := range 5 {
			if err := rt.Do(registry.Key(fmt.Sprint("key", i)), nothing); err != nil {
				t.Error(err)
			}
		}
		if called < 10 {
			t.Errorf("the injector was called %d times", called)
		}
	})
}

func TestWatcherThatCallsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t)
		depth, called := 0, 0
		stop := rt.Registry().Watch(func([]registry.Key) {
			called++
			if depth > 0 {
				return
			}
			depth++
			everything(rt, "k")
			depth--
		})
		defer stop()
		declared(t, rt, "k", registry.Spec{Limit: 3})
		if called < 2 {
			t.Errorf("the watcher was called %d times", called)
		}
	})
}

// expanderFunc grows to what it returns.
type expanderFunc func(bulkhead.Load) (int, time.Duration)

func (f expanderFunc) Expand(l bulkhead.Load) (int, time.Duration) { return f(l) }

type gauge func() bool

func (g gauge) MemoryTight() bool { return g() }

func TestExpanderAndGaugeThatCallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rt *guard.Runtime
		var asked []registry.Key
		depth, expanded, gauged := 0, 0, 0
		once := func(f func()) {
			if depth == 0 {
				depth++
				f()
				depth--
			}
		}
		rt = newRuntime(t,
			guard.WithExpander(func(key registry.Key) bulkhead.Expander {
				asked = append(asked, key)
				once(func() { everything(rt, "k") })
				return expanderFunc(func(l bulkhead.Load) (int, time.Duration) {
					expanded++
					once(func() { everything(rt, "k") })
					return 0, 0
				})
			}),
			guard.WithMemoryGauge(gauge(func() bool {
				gauged++
				once(func() { everything(rt, "k") })
				return false
			})))
		g := declared(t, rt, "k", registry.Spec{Limit: 1})
		if len(asked) != 0 {
			t.Errorf("before any key is full it was asked about %q", asked)
		}
		h := block(g.Do)
		wantReason(t, g.Do(nothing), guard.ReasonFull)
		if len(asked) != 1 || asked[0] != "k" || expanded == 0 || gauged == 0 {
			t.Errorf("asked about %q, expander called %d times, gauge %d times", asked, expanded, gauged)
		}
		_ = h.end()
	})
}

func TestExpanderOfEachKeyAndGroup(t *testing.T) {
	var mu sync.Mutex
	asked := map[registry.Key]int{}
	rt := newRuntime(t, guard.WithExpander(func(key registry.Key) bulkhead.Expander {
		mu.Lock()
		defer mu.Unlock()
		asked[key]++
		if key == "never" {
			return nil
		}
		return expanderFunc(func(l bulkhead.Load) (int, time.Duration) { return 2 * l.Limit, 0 })
	}))
	replace(t, rt, specs{
		"k": {Limit: 1, Expand: 2}, "never": {Limit: 1},
		"a": {Limit: 1, Group: "pool"}, "b": {Limit: 1, Group: "pool"},
	})
	for _, c := range []struct {
		key  registry.Key
		want int
	}{{"k", 2}, {"never", 1}, {"a", 2}} {
		var in []*blocked
		for range c.want {
			in = append(in, block(rt.For(c.key).Do))
		}
		var wg sync.WaitGroup
		for range 8 { // at once: it is asked once all the same
			wg.Go(func() {
				if err := rt.Do(c.key, nothing); err == nil {
					t.Errorf("%s holds more than %d", c.key, c.want)
				}
			})
		}
		wg.Wait()
		if b := rt.For(c.key).Snapshot().Bulkhead; b.Bound != c.want || b.InFlight != c.want {
			t.Errorf("%s: bound %d, in flight %d; want %d", c.key, b.Bound, b.InFlight, c.want)
		}
		if c.key == "a" {
			wantReason(t, rt.Do("b", nothing), guard.ReasonFull)
		}
		for _, h := range in {
			_ = h.end()
		}
	}
	if len(asked) != 3 || asked["k"] != 1 || asked["never"] != 1 || asked["pool"] != 1 {
		t.Errorf("asked about %v, want k, never and pool once each", asked)
	}
}

// While memory is tight a stuck call keeps its place.
func TestMemoryGauge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tight atomic.Bool
		tight.Store(true)
		rt := newRuntime(t, guard.WithMemoryGauge(gauge(tight.Load)))
		g := declared(t, rt, "k", registry.Spec{Limit: 1, Stale: time.Second})
		h := block(g.Do)
		elapse(time.Minute)
		wantReason(t, g.Do(nothing), guard.ReasonFull)
		tight.Store(false)
		elapse(2 * time.Second)
		if err := g.Do(nothing); err != nil {
			t.Error(err)
		}
		_ = h.end()
		wantIdle(t, g)
	})
}

// Close may be called from anywhere but a logger: from inside a call, an injector, a watcher, a subscriber.
func TestCloseFromCallbacks(t *testing.T) {
	for _, from := range []string{"call", "injector", "watcher", "expander"} {
		synctest.Test(t, func(t *testing.T) {
			var rt *guard.Runtime
			closes := func(where string) {
				if where == from {
					_ = rt.Close()
				}
			}
			rt = newRuntime(t,
				guard.WithInjector(callback{func(registry.Key) { closes("injector") }}),
				guard.WithExpander(func(registry.Key) bulkhead.Expander { closes("expander"); return nil }))
			stop := rt.Registry().Watch(func([]registry.Key) { closes("watcher") })
			defer stop()
			g := rt.For("k")
			_ = g.Do(func() error { closes("call"); return nil })
			replace(t, rt, specs{"k": {Limit: 1}})
			h := make(chan struct{})
			_ = g.Do(func() error {
				go func() { _ = g.Do(nothing); close(h) }()
				<-h
				return nil
			})
			if err := g.Do(nothing); err == nil {
				t.Errorf("closed from a %s it still admits", from)
			}
			wantIdle(t, g)
		})
	}
}
