package watchdog_test

import (
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/registry"
	"github.com/spillway-go/spillway/watchdog"
)

// Lost and evicted calls are told at the next look, those of one key and site together.
func TestLostAndEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pen := watch(t, watchdog.Config{Source: &script{}})
		for i := range uint64(500) {
			w.Lost(watchdog.Gone{Key: key, Goroutine: i, Age: time.Second + time.Duration(i), Site: "work.go:41 main.work", InFlight: 5, Bound: 9})
		}
		w.Lost(watchdog.Gone{Key: key, Goroutine: 1, Age: time.Second})
		w.Evicted(watchdog.Gone{Key: key, Goroutine: 2, Age: time.Minute, InFlight: 9, Bound: 9})
		if list := pen.take(); len(list) != 0 {
			t.Errorf("written at once: %v", list)
		}
		elapse(250 * time.Millisecond)
		list := pen.take()
		if got := kinds(list); got != "lost evicted lost" {
			t.Fatalf("got %s", got)
		}
		if r := list[0]; r.Count != 500 || r.Site != "work.go:41 main.work" || r.Age != time.Second+499 || r.Youngest != time.Second || r.InFlight != 5 {
			t.Errorf("%+v", r)
		}
		if r := list[1]; r.Count != 1 || r.Goroutines[0] != 2 || r.Age != time.Minute {
			t.Errorf("%+v", r)
		}
	})
}

// A flood of lost calls is bounded, whoever brings it.
func TestLostFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pen := watch(t, watchdog.Config{Source: &script{}})
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 1000 {
					w.Lost(watchdog.Gone{Key: key})
				}
			})
		}
		all.Wait()
		elapse(250 * time.Millisecond)
		if r := only(t, pen.take()); r.Count != 1024 {
			t.Errorf("%d told", r.Count)
		}
		if n := w.Stats().GoneDropped; n != 4000-1024 {
			t.Errorf("%d dropped", n)
		}
		for i := range 1000 { // each of another key
			w.Lost(watchdog.Gone{Key: registry.Key(strconv.Itoa(i))})
		}
		elapse(250 * time.Millisecond)
		list := pen.take()
		if len(list) != 161 || list[160].Kind != watchdog.Trouble || list[160].Problem != "840 more lines about keys whose late calls ended, or whose calls were lost, are left out" {
			t.Errorf("%d lines, the last: %v", len(list), list[len(list)-1])
		}
	})
}

// What was reported just before Close is written.
func TestLostBeforeClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pen := watch(t, watchdog.Config{Source: &script{}})
		w.Lost(watchdog.Gone{Key: key})
		w.Close()
		if got := kinds(pen.take()); got != "lost" {
			t.Errorf("got %q", got)
		}
	})
}
