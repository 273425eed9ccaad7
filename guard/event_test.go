package guard_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
	"github.com/spillway-go/spillway/watchdog"
)

// drain returns the events that a subscription has at this moment of a bubble.
func drain(t *testing.T, s *guard.Subscription) (list []guard.Event) {
	t.Helper()
	synctest.Wait()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for {
		e, err := s.Next(ctx)
		if err != nil {
			return list
		}
		list = append(list, e)
	}
}

// An episode of refusals is told when it begins, once a second while it lasts, and when ten seconds have passed without one.
func TestEpisodeOfRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t)
		g := declared(t, rt, "k", registry.Spec{Limit: 1, Stale: time.Hour})
		events := rt.Subscribe(100)
		elapse(10 * time.Millisecond) // not in step with the housekeeper
		h := block(g.Do)
		want := func(what string, wants ...guard.Event) {
			t.Helper()
			got := drain(t, events)
			if len(got) != len(wants) {
				t.Fatalf("%s: got %d events %v, want %d", what, len(got), got, len(wants))
			}
			for i, w := range wants {
				e := got[i]
				if e.Kind != w.Kind || e.Key != "k" || e.Count != w.Count || e.Total != w.Total || e.Duration != w.Duration || e.Bound != 1 {
					t.Errorf("%s: got %+v, want %+v", what, e, w)
				}
			}
		}
		refuse := func(n int) {
			for range n {
				wantReason(t, g.Do(nothing), guard.ReasonFull)
			}
		}
		elapse(5 * time.Second)
		want("before")
		refuse(3)
		elapse(time.Second)
		want("it begins", guard.Event{Kind: guard.EventRefused, Count: 3, Total: 3})
		refuse(2)
		elapse(time.Second)
		refuse(1)
		elapse(time.Second)
		want("it goes on", guard.Event{Kind: guard.EventRefused, Count: 2, Total: 5}, guard.Event{Kind: guard.EventRefused, Count: 1, Total: 6})
		elapse(9 * time.Second)
		want("a pause")
		refuse(1)
		elapse(time.Second)
		want("after the pause", guard.Event{Kind: guard.EventRefused, Count: 1, Total: 7})
		elapse(10 * time.Second)
		want("calm", guard.Event{Kind: guard.EventCalm, Count: 7, Duration: 13 * time.Second})
		elapse(time.Minute)
		want("nothing more")
		refuse(4)
		elapse(time.Second)
		want("another one", guard.Event{Kind: guard.EventRefused, Count: 4, Total: 4})
		elapse(10 * time.Second)
		want("and its end", guard.Event{Kind: guard.EventCalm, Count: 4, Duration: time.Second})
		_ = h.end()
	})
}

// A guard is dropped from the table with refusals that were not told of yet, and in the middle of an episode: they are told, and so
// is its end.
func TestDroppedGuardsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t, guard.WithMaxKeys(16))
		if err := rt.Registry().SetDefault(registry.Spec{Limit: 1}); err != nil {
			t.Fatal(err)
		}
		events := rt.Subscribe(1000)
		refused := uint64(0)
		for i := range 20 {
			key := registry.Key(fmt.Sprint("key", i))
			h := block(rt.For(key).Do)
			wantReason(t, rt.Do(key, nothing), guard.ReasonFull)
			refused++
			_ = h.end()
			elapse(10 * time.Millisecond)
			if i%5 == 0 {
				runtime.GC()
			}
		}
		for range 3 {
			runtime.GC()
		}
		elapse(30 * time.Second)
		told, calm := uint64(0), 0
		for _, e := range drain(t, events) {
			switch e.Kind {
			case guard.EventRefused:
				told += e.Count
			case guard.EventCalm:
				calm++
			default:
			}
		}
		// Not more guards are held for this than the table may hold.
		if told != refused || calm < 16 {
			t.Errorf("%d of %d refusals are told, and %d ends of 20 episodes", told, refused, calm)
		}
		if n := len(living(rt)); n != 16 {
			t.Errorf("afterwards there are %d guards, want 16", n)
		}
	})
}

// lose takes a pass and forgets it, on a goroutine of its own whose number it returns.
//
//go:noinline
func lose(g *guard.Guard, site *string) (goroutine uint64) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 64)
		buf = buf[:runtime.Stack(buf, false)]
		_, _ = fmt.Sscanf(string(buf), "goroutine %d ", &goroutine)
		_, _, line, _ := runtime.Caller(0)
		_, _ = g.Enter(context.Background()) // one line below
		*site = fmt.Sprintf("event_test.go:%d github.com/spillway-go/spillway/guard_test.lose.func1", line+1)
	}()
	<-done
	return goroutine
}

func TestLostPassIsToldWithGoroutineAndSite(t *testing.T) {
	for _, path := range paths {
		t.Run(path.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := newRuntime(t)
				g := declared(t, rt, "k", path.spec)
				events := rt.Subscribe(10)
				for round := range 3 {
					var site string
					id := lose(g, &site)
					elapse(time.Minute)
					for range 3 {
						runtime.GC()
					}
					elapse(time.Second)
					list := drain(t, events)
					if len(list) != 1 {
						t.Fatalf("loss %d: events %v", round, list)
					}
					e := list[0]
					if e.Kind != guard.EventLost || e.Key != "k" || e.Goroutine != id || e.Count != 1 {
						t.Errorf("loss %d of goroutine %d: %+v", round, id, e)
					}
					if e.Site != site {
						t.Errorf("loss %d: taken at %q, want %q", round, e.Site, site)
					}
					if !strings.Contains(e.String(), "taken at "+site) {
						t.Errorf("loss %d: %s", round, e)
					}
				}
				if s := g.Snapshot(); s.Lost != 3 || s.Admitted != 3 {
					t.Errorf("lost %d, admitted %d; want 3, 3", s.Lost, s.Admitted)
				}
				wantIdle(t, g)
			})
		})
	}
}

// A flood of losses: what cannot be kept to be told is counted.
func TestFloodOfLossesIsCounted(t *testing.T) {
	const n = 2000
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t)
		g := declared(t, rt, "k", registry.Spec{Limit: n})
		events := rt.Subscribe(2 * n)
		for range n {
			forget(t, g, func(g *guard.Guard) (guard.Pass, error) { return g.Enter(context.Background()) })
		}
		for range 100 {
			runtime.GC()
			if g.Snapshot().Bulkhead.InFlight == 0 {
				break
			}
		}
		elapse(time.Second)
		lost, dropped := uint64(0), uint64(0)
		for _, e := range drain(t, events) {
			switch e.Kind {
			case guard.EventLost:
				lost++
			case guard.EventDropped:
				dropped += e.Count
				if e.Key != "k" {
					t.Errorf("%+v", e)
				}
			default:
			}
		}
		if s := g.Snapshot(); lost+dropped != n || lost < 100 || s.Bulkhead.Lost != n || s.Lost != lost {
			t.Errorf("%d losses: %d told, %d dropped, counted %d and %d", n, lost, dropped, s.Bulkhead.Lost, s.Lost)
		}
		wantIdle(t, g)
	})
}

func TestSlowSubscriberLosesTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t)
		declared(t, rt, "k", registry.Spec{Limit: 1000})
		slow, quick, tiny := rt.Subscribe(3), rt.Subscribe(100), rt.Subscribe(-1)
		for i := range 10 {
			replace(t, rt, specs{"k": {Limit: 1 + i}})
		}
		if slow.Dropped() != 7 || quick.Dropped() != 0 || tiny.Dropped() != 9 {
			t.Errorf("dropped %d, %d, %d; want 7, 0, 9", slow.Dropped(), quick.Dropped(), tiny.Dropped())
		}
		for name, c := range map[string]struct {
			sub   *guard.Subscription
			first int
		}{"slow": {slow, 8}, "quick": {quick, 1}, "tiny": {tiny, 10}} {
			list := drain(t, c.sub)
			if len(list) != 11-c.first {
				t.Errorf("%s: %d events", name, len(list))
			}
			for i, e := range list {
				if e.Spec.Limit != c.first+i {
					t.Errorf("%s: event %d is of limit %d, want %d", name, i, e.Spec.Limit, c.first+i)
				}
			}
		}
		replace(t, rt, specs{"k": {Limit: 99}})
		if list := drain(t, slow); len(list) != 1 || list[0].Spec.Limit != 99 || slow.Dropped() != 7 {
			t.Errorf("afterwards: %v, dropped %d", list, slow.Dropped())
		}
	})
}

// A buffer beyond the bounds is one at the bound.
func TestBufferIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t)
		declared(t, rt, "k", registry.Spec{Limit: 1})
		huge, none := rt.Subscribe(math.MaxInt), rt.Subscribe(math.MinInt)
		const more = 10
		for i := range guard.MaxBuffer + more {
			replace(t, rt, specs{"k": {Limit: 2 + i%2}})
		}
		if n := len(drain(t, huge)); n != guard.MaxBuffer || huge.Dropped() != more || len(drain(t, none)) != 1 {
			t.Errorf("%d events and %d dropped", n, huge.Dropped())
		}
	})
}

func TestNextWaitsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t)
		declared(t, rt, "k", registry.Spec{Limit: 1})
		s := rt.Subscribe(10)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Next of nothing: %v", err)
		}
		var none context.Context
		time.AfterFunc(time.Second, func() { _ = rt.Registry().Replace(specs{"k": {Limit: 7}}) })
		if e, err := s.Next(none); err != nil || e.Spec.Limit != 7 {
			t.Errorf("Next without a context: %v, %v", e, err)
		}
		time.AfterFunc(time.Second, func() { _ = rt.Registry().Replace(specs{"k": {Limit: 2}}) })
		if e, err := s.Next(context.Background()); err != nil || e.Kind != guard.EventSpec || !e.Time.Equal(time.Now()) {
			t.Errorf("got %v, %v", e, err)
		}
		// What waits can be read after Close, and after the context has ended.
		replace(t, rt, specs{"k": {Limit: 3}})
		s.Close()
		s.Close()
		replace(t, rt, specs{"k": {Limit: 4}})
		if e, err := s.Next(ctx); err != nil || e.Spec.Limit != 3 {
			t.Errorf("got %v, %v", e, err)
		}
		for range 2 {
			if _, err := s.Next(context.Background()); !errors.Is(err, guard.ErrSubscriptionClosed) {
				t.Errorf("after Close: %v", err)
			}
		}
		// Close wakes all who wait.
		s = rt.Subscribe(1)
		results := make(chan error)
		for range 3 {
			go func() {
				_, err := s.Next(context.Background())
				results <- err
			}()
		}
		synctest.Wait()
		s.Close()
		for range 3 {
			if err := <-results; !errors.Is(err, guard.ErrSubscriptionClosed) {
				t.Errorf("got %v", err)
			}
		}
	})
}

// Several goroutines in Next of one subscription: each event wakes one of them, also when two come before the first has woken.
func TestManyReadersOfOneSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t)
		declared(t, rt, "k", registry.Spec{Limit: 1})
		const n = 5
		for range 100 {
			s := rt.Subscribe(n)
			var got atomic.Int64
			for range n {
				go func() {
					if _, err := s.Next(context.Background()); err == nil {
						got.Add(1)
					}
				}()
			}
			synctest.Wait()
			for range n {
				limit := rt.For("k").Snapshot().Spec.Limit
				replace(t, rt, specs{"k": {Limit: limit + 1}})
			}
			synctest.Wait()
			if got.Load() != n {
				t.Fatalf("%d events woke %d of %d readers", n, got.Load(), n)
			}
			s.Close()
		}
	})
}

func TestSubscribingAndClosingAtOnce(t *testing.T) {
	for range 100 {
		rt := newRuntime(t)
		declared(t, rt, "k", registry.Spec{Limit: 1})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for range 10 {
					s := rt.Subscribe(1)
					ctx, cancel := context.WithCancel(context.Background())
					wg.Go(cancel)
					_, _ = s.Next(ctx)
					wg.Go(s.Close)
					_ = s.Dropped()
				}
			})
		}
		wg.Go(func() {
			for i := range 50 {
				_ = rt.Registry().Replace(specs{"k": {Limit: 1 + i}})
			}
		})
		wg.Go(func() { _ = rt.Close() })
		wg.Wait()
		s := rt.Subscribe(1)
		if _, err := s.Next(context.Background()); !errors.Is(err, guard.ErrSubscriptionClosed) {
			t.Fatalf("subscribed after Close: %v", err)
		}
		s.Close()
	}
}

// Close tells what has not been told yet.
func TestCloseDeliversTheLastEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t)
		g := declared(t, rt, "k", registry.Spec{Limit: 2})
		events := rt.Subscribe(10)
		forget(t, g, func(g *guard.Guard) (guard.Pass, error) { return g.Enter(context.Background()) })
		h := block(g.Do)
		wantReason(t, g.Do(nothing), guard.ReasonFull)
		for range 3 {
			runtime.GC()
		}
		_ = rt.Close()
		var kinds []guard.EventKind
		for _, e := range drain(t, events) {
			kinds = append(kinds, e.Kind)
		}
		if !slices.Equal(kinds, []guard.EventKind{guard.EventLost, guard.EventRefused}) {
			t.Errorf("told at Close: %v", kinds)
		}
		_ = h.end()
	})
}

func TestEventsReadAsSentences(t *testing.T) {
	spec := registry.Spec{Limit: 4}.WithDefaults()
	seen := map[guard.EventKind]bool{}
	for _, c := range []struct {
		event guard.Event
		want  string
	}{
		{guard.Event{Kind: guard.EventRefused, Key: "k", Count: 3, Total: 5, InFlight: 2, Bound: 2}, "k: 3 calls refused, 5 since it began (2 of 2 in flight)"},
		{guard.Event{Kind: guard.EventCalm, Key: "k", Count: 5, Duration: 3 * time.Second}, "k: no more refusals; 5 calls were refused in 3s"},
		{guard.Event{Kind: guard.EventLost, Key: "k", Goroutine: 7, Duration: 1500 * time.Millisecond}, "k: a pass taken by goroutine 7 1.5s ago was lost without Exit; its place is free again"},
		{guard.Event{Kind: guard.EventLost, Key: "k", Goroutine: 7, Duration: time.Second, Site: "a.go:3 main.f"}, "k: a pass taken by goroutine 7 1s ago was lost without Exit; its place is free again, taken at a.go:3 main.f"},
		{guard.Event{Kind: guard.EventEvicted, Key: "k", Goroutine: 7, Duration: time.Minute}, "k: a call of goroutine 7 is stuck for 1m0s; its place went to a newcomer"},
		{guard.Event{Kind: guard.EventSpec, Key: "k", Spec: spec}, "k: spec is now limit=4 expand=4 stale=60s slow=5s criticality=critical"},
		{guard.Event{Kind: guard.EventBound, Key: "k", From: 20, Bound: 40, Why: "20 of 20 in flight, all is well"}, "k: bound 20 -> 40: 20 of 20 in flight, all is well"},
		{guard.Event{Kind: guard.EventBoundHeld, Key: "k", From: 20, Bound: 20, Why: "cpu 97 % of quota, limit 95 %"}, "k: bound stays at 20: cpu 97 % of quota, limit 95 %"},
		{guard.Event{Kind: guard.EventKeysFull, Key: "(overflow)", Count: 9}, "too many undeclared keys are busy at once: 9 calls shared the overflow guard"},
		{guard.Event{Kind: guard.EventDropped, Key: "k", Count: 9}, "k: 9 reports of lost or stuck calls were dropped"},
		{guard.Event{Kind: guard.EventDropped, Count: 9}, "9 events were not logged: the logger is slower than they come"},
		{reported(guard.EventSlow, watchdog.Report{Kind: watchdog.Slow, Key: "k", Count: 1, Age: time.Second, Youngest: time.Second}), `a call of "k" runs for 1s`},
		{reported(guard.EventStillSlow, watchdog.Report{Kind: watchdog.Still, Key: "k", Count: 2, Age: 2 * time.Second, Youngest: time.Second}), `2 calls of "k" still run, for 1s to 2s`},
		{reported(guard.EventMoreSlow, watchdog.Report{Kind: watchdog.More, Count: 2, Groups: 1}), "2 more late calls, in 1 groups"},
		{reported(guard.EventSlowEnded, watchdog.Report{Kind: watchdog.Ended, Key: "k", Count: 1, Age: time.Second}), `a call of "k" ended after 1s`},
		{reported(guard.EventWatchdog, watchdog.Report{Kind: watchdog.Trouble, Problem: "it is tired"}), "the watchdog: it is tired"},
		{guard.Event{Kind: guard.EventBreaker, Key: "k", Cause: "open", Why: "20 of 20 calls failed in 10s"}, "k: breaker open: 20 of 20 calls failed in 10s"},
		{guard.Event{Kind: 99}, "unknown"},
	} {
		seen[c.event.Kind] = true
		if got := c.event.String(); got != c.want {
			t.Errorf("%v reads\n%s\nwant\n%s", c.event.Kind, got, c.want)
		}
	}
	for k := guard.EventRefused; k.String() != "unknown"; k++ {
		if !seen[k] {
			t.Errorf("no sentence for %q", k)
		}
	}
}

func reported(kind guard.EventKind, r watchdog.Report) guard.Event {
	return guard.Event{Kind: kind, Report: &r}
}
