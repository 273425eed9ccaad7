package registry

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Two keys always get the same limit in one Replace, and limits only grow. So a
// reader who ever sees half of a Replace, or any of a refused one, sees limits
// that differ in one All, or that fall from one Lookup to the next.
func TestReplaceIsAllOrNothing(t *testing.T) {
	const rounds = 2000
	r := New()
	both := func(limit int) map[Key]Spec { return map[Key]Spec{"a": {Limit: limit}, "b": {Limit: limit}} }
	if err := r.Replace(both(1)); err != nil {
		t.Fatal(err)
	}
	var done atomic.Bool
	var readers sync.WaitGroup
	limit := func(key Key) int {
		s, _ := r.Lookup(key)
		return s.Limit
	}
	for range 2 {
		readers.Go(func() {
			for !done.Load() {
				a := limit("a")
				b := limit("b")
				if again := limit("a"); b < a || again < b {
					t.Errorf("limits read one after the other: %d, %d, %d", a, b, again)
					return
				}
			}
		})
	}
	readers.Go(func() {
		for !done.Load() {
			seen := make(map[Key]int)
			for key, s := range r.All() {
				seen[key] = s.Limit
			}
			if seen["a"] != seen["b"] || len(seen) != 2 {
				t.Errorf("one All shows %v", seen)
				return
			}
		}
	})
	for i := range rounds {
		if err := r.Replace(both(i + 2)); err != nil {
			t.Error(err)
		}
		wrong := both(MaxLimit)
		wrong["c"] = Spec{Expand: 9}
		if r.Replace(wrong) == nil {
			t.Error("a wrong spec is let through")
		}
	}
	done.Store(true)
	readers.Wait()
	if got := limit("a"); got != rounds+1 {
		t.Errorf("the limit ends at %d, want %d", got, rounds+1)
	}
}

// However changes and their reports interleave, a watcher that reads anew ends
// with the state of the registry.
func TestWatchersConverge(t *testing.T) {
	r := New()
	var mu sync.Mutex
	mirror := make(map[Key]Spec)
	defer r.Watch(func(changed []Key) {
		mu.Lock()
		defer mu.Unlock()
		for _, key := range changed {
			if s, declared := r.Lookup(key); declared {
				mirror[key] = s
			} else {
				delete(mirror, key)
			}
		}
	})()
	keys := []Key{"a", "b", "c"}
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 300 {
				key := keys[(w+i)%len(keys)]
				if i%5 == 0 {
					r.Remove(key)
					continue
				}
				if err := r.Replace(map[Key]Spec{key: {Limit: 1 + w*1000 + i, Wait: time.Second}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	seen := 0
	for key, s := range r.All() {
		seen++
		if mirror[key] != s {
			t.Errorf("%s: the watcher ends with %v, the registry with %v", key, mirror[key], s)
		}
	}
	if len(mirror) != seen {
		t.Errorf("the watcher knows %d keys, the registry %d", len(mirror), seen)
	}
}

// Every operation at once, for the race detector.
func TestConcurrentUse(t *testing.T) {
	r := New()
	var users sync.WaitGroup
	for u := range 4 {
		users.Go(func() {
			key := Key(string(rune('a' + u)))
			for i := range 200 {
				stop := r.Watch(func(changed []Key) { r.Lookup(key) })
				group := ""
				if i%2 == 0 {
					group = "shared"
				}
				_ = r.Declare(key, Spec{Limit: 7, Group: group})
				_ = r.SetDefault(Spec{Limit: 1 + i})
				for range r.All() {
				}
				r.Remove(key)
				stop()
			}
		})
	}
	users.Wait()
	if len(r.specs) != 0 || len(r.groups) != 0 || len(r.watchers) != 0 {
		t.Errorf("left behind: %d keys, %d groups, %d watchers", len(r.specs), len(r.groups), len(r.watchers))
	}
}
