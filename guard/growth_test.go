package guard_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// weather is a machine as a test wants it. It takes a sample every 100 ms.
type weather struct {
	cpu, memory, unknown atomic.Bool
	since                time.Time
}

func newWeather() *weather { return &weather{since: time.Now()} }

func (w *weather) Normal() bool      { return !w.cpu.Load() && !w.memory.Load() && !w.unknown.Load() }
func (w *weather) CPUTight() bool    { return w.cpu.Load() }
func (w *weather) MemoryTight() bool { return w.memory.Load() }
func (w *weather) Number() uint64    { return uint64(time.Since(w.since) / (100 * time.Millisecond)) }

func (w *weather) Why() string {
	switch {
	case w.cpu.Load():
		return "cpu 97 % of quota, limit 95 %"
	case w.memory.Load():
		return "memory 93 % of 512 MiB, limit 90 %"
	case w.unknown.Load():
		return "cpu unknown"
	default:
		return ""
	}
}

// pile starts n calls of a key that stay until release, and returns how many were refused.
func pile(g *guard.Guard, n int, release <-chan struct{}) (refused int) {
	var no atomic.Int64
	for range n {
		go func() {
			err := g.Do(func() error { <-release; return nil })
			if errors.Is(err, guard.ErrRejected) {
				no.Add(1)
			}
		}()
		synctest.Wait() // they come one after the other
	}
	return int(no.Load())
}

func TestBurstOfThreeTimesNLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t, guard.WithPressure(newWeather()))
		sub := rt.Subscribe(100)
		g := declared(t, rt, "k", registry.Spec{Limit: 20})
		release := make(chan struct{})
		refused := 0
		for range 3 { // N a sample
			elapse(100 * time.Millisecond)
			refused += pile(g, 20, release)
		}
		if refused != 0 {
			t.Errorf("%d of 3N calls were refused on an idle machine", refused)
		}
		elapse(100 * time.Millisecond)
		if refused := pile(g, 40, release); refused != 20 {
			t.Errorf("%d of 40 more were refused, want the 20 above 4N", refused)
		}
		if s := g.Snapshot().Bulkhead; s.Bound != 80 || s.InFlight != 80 {
			t.Errorf("bound %d, in flight %d; want 80", s.Bound, s.InFlight)
		}
		close(release)
		synctest.Wait()
		elapse(25 * time.Second) // two calm windows
		if s := g.Snapshot().Bulkhead; s.Bound != 20 || s.InFlight != 0 {
			t.Errorf("bound %d, in flight %d after the pile-up; want 20 and 0", s.Bound, s.InFlight)
		}
		var steps []string
		for {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			e, err := sub.Next(ctx)
			cancel()
			if err != nil {
				break
			}
			if e.Kind == guard.EventBound || e.Kind == guard.EventBoundHeld {
				steps = append(steps, fmt.Sprintf("%v %d>%d %s", e.Kind, e.From, e.Bound, e.Cause))
			}
		}
		want := "[bound 20>40 grown bound 40>80 grown bound_held 80>80 ceiling bound 80>40 calm bound 40>20 calm]"
		if fmt.Sprint(steps) != want {
			t.Errorf("steps %v, want %s", steps, want)
		}
	})
}

func TestBoundStaysAtN(t *testing.T) {
	for name, tc := range map[string]struct {
		set   func(*weather)
		cause string
	}{
		"cpu tight":    {func(w *weather) { w.cpu.Store(true) }, "tight"},
		"memory tight": {func(w *weather) { w.memory.Store(true) }, "tight"},
		"unknown":      {func(w *weather) { w.unknown.Store(true) }, "pressure"},
		"calls late":   {func(*weather) { elapse(3 * time.Second) }, "late"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWeather()
				rt := newRuntime(t, guard.WithPressure(w))
				sub := rt.Subscribe(100)
				g := declared(t, rt, "k", registry.Spec{Limit: 20, Slow: 2 * time.Second})
				release := make(chan struct{})
				defer close(release)
				if refused := pile(g, 20, release); refused != 0 {
					t.Fatalf("%d of N calls were refused", refused)
				}
				tc.set(w)
				if refused := pile(g, 40, release); refused != 40 {
					t.Errorf("%d of 40 calls above N were refused, want all", refused)
				}
				if b := g.Snapshot().Bulkhead.Bound; b != 20 {
					t.Errorf("bound %d, want 20", b)
				}
				for {
					e, err := sub.Next(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if e.Kind == guard.EventBoundHeld {
						if e.Cause != tc.cause || e.Why == "" {
							t.Errorf("held for %q: %q, want %q", e.Cause, e.Why, tc.cause)
						}
						break
					}
				}
			})
		})
	}
}

func TestTightTakesTheBoundBackAndLetsCallsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeather()
		rt := newRuntime(t, guard.WithPressure(w))
		g := declared(t, rt, "k", registry.Spec{Limit: 20})
		release := make(chan struct{})
		pile(g, 40, release)
		w.memory.Store(true)
		elapse(150 * time.Millisecond)
		if s := g.Snapshot().Bulkhead; s.Bound != 20 || s.InFlight != 40 {
			t.Errorf("bound %d, in flight %d; want 20 and 40", s.Bound, s.InFlight)
		}
		if refused := pile(g, 1, release); refused != 1 {
			t.Error("a newcomer entered above N while memory is tight")
		}
		close(release)
		synctest.Wait()
	})
}

func TestThousandKeysDoNotGrowTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t, guard.WithPressure(newWeather()))
		if err := rt.Registry().SetDefault(registry.Spec{Limit: 2}); err != nil {
			t.Fatal(err)
		}
		var guards []*guard.Guard
		for i := range 1000 {
			guards = append(guards, rt.For(registry.Key(fmt.Sprintf("k%d", i))))
		}
		sum := func() (n int) {
			for _, g := range guards {
				n += g.Snapshot().Bulkhead.Bound
			}
			return n
		}
		release := make(chan struct{})
		var calls sync.WaitGroup
		before := sum()
		for sample := range 3 {
			elapse(100 * time.Millisecond)
			for _, g := range guards {
				for range 3 << sample {
					calls.Go(func() { _ = g.Do(func() error { <-release; return nil }) })
				}
			}
			synctest.Wait()
			after := sum()
			if gain := after - before; gain > 500 || gain == 0 {
				t.Errorf("sample %d: all bounds gained %d, at most 500 of 2000", sample, gain)
			}
			before = after
		}
		close(release)
		calls.Wait()
	})
}

func TestReplacedSpecGoesBackToItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t, guard.WithPressure(newWeather()))
		g := declared(t, rt, "k", registry.Spec{Limit: 20})
		release := make(chan struct{})
		pile(g, 40, release)
		replace(t, rt, map[registry.Key]registry.Spec{"k": {Limit: 30}})
		if b := g.Snapshot().Bulkhead.Bound; b != 30 {
			t.Errorf("bound %d after the limit became 30", b)
		}
		elapse(100 * time.Millisecond)
		if refused := pile(g, 20, release); refused != 0 {
			t.Errorf("%d refused, want 60 places", refused)
		}
		close(release)
		synctest.Wait()
		elapse(25 * time.Second)
		if b := g.Snapshot().Bulkhead.Bound; b != 30 {
			t.Errorf("bound %d in the end, want 30", b)
		}
	})
}

// A group that nobody is in any more, and that is made anew, has one bound and one voice.
func TestDroppedGroupStepsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t, guard.WithPressure(newWeather()))
		sub := rt.Subscribe(100)
		g := declared(t, rt, "k", registry.Spec{Limit: 10, Group: "g"})
		release := make(chan struct{})
		pile(g, 20, release)
		if b := g.Snapshot().Bulkhead.Bound; b != 20 {
			t.Fatalf("bound %d of the group, want 20", b)
		}
		close(release)
		synctest.Wait()
		replace(t, rt, map[registry.Key]registry.Spec{"k": {Limit: 10}})
		replace(t, rt, map[registry.Key]registry.Spec{"k": {Limit: 10, Group: "g"}})
		elapse(25 * time.Second)
		_ = rt.Close()
		for {
			e, err := sub.Next(t.Context())
			if err != nil {
				break
			}
			if e.Kind == guard.EventBound && e.Cause == "calm" {
				t.Errorf("the dropped group goes on: %v", e)
			}
		}
	})
}

// Which call is late is judged by the key's own spec, also in a group, and by places.
func TestLateInAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t, guard.WithPressure(newWeather()))
		replace(t, rt, map[registry.Key]registry.Spec{
			"quick":   {Limit: 4, Group: "g", Slow: time.Second},
			"patient": {Limit: 4, Group: "g", Slow: time.Minute},
		})
		quick, patient := rt.For("quick"), rt.For("patient")
		release := make(chan struct{})
		pile(patient, 4, release)
		elapse(10 * time.Second)
		if refused := pile(patient, 1, release); refused != 0 {
			t.Error("no call is late, yet the group did not grow")
		}
		pile(quick, 3, release)
		elapse(10 * time.Second)
		if refused := pile(patient, 1, release); refused != 1 {
			t.Error("3 of 8 calls are late, yet the group grew")
		}
		close(release)
		synctest.Wait()
	})
}
