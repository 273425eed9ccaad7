package guard_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

func TestSnapshotOfAllKeys(t *testing.T) {
	rt := newRuntime(t, guard.WithMaxKeys(1))
	if s := rt.Snapshot(); len(s.Keys) != 0 || s.OverflowCalls != 0 || s.Time.IsZero() {
		t.Errorf("of an unused runtime: %+v", s)
	}
	replace(t, rt, specs{"b": {Limit: 2}, "a": {Limit: 3}, "never_used": {}})
	_ = rt.Do("b", nothing)
	_ = rt.Do("a", func() error { return errWork })
	_ = rt.Do("not valid", nothing)
	h := block(rt.For("undeclared").Do)
	_ = rt.Do("too_many", nothing)
	s := rt.Snapshot()
	want := []struct {
		key              registry.Key
		declared         bool
		admitted, failed uint64
	}{{"(invalid)", false, 0, 0}, {"(overflow)", false, 1, 0}, {"a", true, 1, 1}, {"b", true, 1, 0}, {"undeclared", false, 1, 0}}
	if len(s.Keys) != len(want) || s.OverflowCalls != 1 {
		t.Fatalf("%d keys, %d calls shared the overflow guard: %+v", len(s.Keys), s.OverflowCalls, s.Keys)
	}
	for i, w := range want {
		got := s.Keys[i]
		if got.Key != w.key || got.Declared != w.declared || got.Admitted != w.admitted || got.Failed != w.failed {
			t.Errorf("key %d: got %+v, want %+v", i, got, w)
		}
	}
	_ = h.end()
}

func TestSnapshotUnderLoad(t *testing.T) {
	rounds := 2000
	if testing.Short() {
		rounds = 200
	}
	rt := newRuntime(t)
	replace(t, rt, specs{"a": {Limit: 3, Expand: 2, Stale: 10 * time.Millisecond}, "b": {Limit: 3, Group: "g"}, "c": {Limit: 3, Group: "g"}})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, key := range []registry.Key{"a", "b", "c", "a", "b", "c"} {
		wg.Go(func() {
			g := rt.For(key)
			for {
				select {
				case <-stop:
					return
				default:
				}
				_ = g.Do(nothing)
				if pass, err := g.EnterN(context.Background(), 2); err == nil {
					pass.Exit()
				}
			}
		})
	}
	last := map[registry.Key]guard.KeySnapshot{}
	for range rounds {
		for _, s := range rt.Snapshot().Keys {
			b := s.Bulkhead
			if b.InFlight < 0 || b.Detached < 0 || b.InFlight+b.Detached > b.Max || b.InFlight > b.Bound || b.Oldest < 0 {
				t.Fatalf("%s: in flight %d, detached %d, bound %d, at most %d, oldest %v", s.Key, b.InFlight, b.Detached, b.Bound, b.Max, b.Oldest)
			}
			old := last[s.Key]
			if s.Admitted < old.Admitted || s.Unrecorded < old.Unrecorded || s.Refused[guard.ReasonFull] < old.Refused[guard.ReasonFull] {
				t.Fatalf("%s: a counter went back: %+v, then %+v", s.Key, old, s)
			}
			last[s.Key] = s
			for _, e := range rt.For(s.Key).Entries() {
				if e.Weight < 1 || e.Weight > 2 || e.Goroutine == 0 || e.Age < 0 {
					t.Fatalf("%s: entry %+v", s.Key, e)
				}
			}
		}
	}
	close(stop)
	wg.Wait()
	for _, key := range []registry.Key{"a", "b", "c"} {
		wantIdle(t, rt.For(key))
	}
	if keys := rt.Snapshot().Keys; !slices.IsSortedFunc(keys, func(x, y guard.KeySnapshot) int { return compare(x.Key, y.Key) }) {
		t.Error("the keys are not in order")
	}
}

func compare(a, b registry.Key) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}
