package watchdog_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/watchdog"
)

// The hook gets every report about slow calls, and no other.
func TestHook(t *testing.T) {
	scene(t, func(t *testing.T, s *stage) {
		p := &pen{}
		watch(t, watchdog.Config{Source: s, OnSlow: p.write})
		end := make(chan struct{})
		s.do(func() { stuck(end) })
		elapse(2500 * time.Millisecond)
		close(end)
		elapse(time.Second)
		list := p.take()
		if got := kinds(list); got != "slow still_slow" {
			t.Fatalf("got %s", got)
		}
		wantStuck(t, list[0])
	})
}

// A panic in the hook ends neither the hook nor the watchdog, and is told.
func TestHookPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		calls := 0
		w, pen := watch(t, watchdog.Config{Source: s, OnSlow: func(watchdog.Report) {
			calls++
			panic("on purpose")
		}})
		s.begin(key, 1)
		elapse(2600 * time.Millisecond)
		list := pen.take()
		if got := kinds(list); got != "slow watchdog still_slow watchdog" || list[1].Problem != "OnSlow panicked: on purpose" {
			t.Errorf("got %v", list)
		}
		if calls != 2 || w.Stats().HookPanics != 2 {
			t.Errorf("%d calls, stats %+v", calls, w.Stats())
		}
	})
}

// A hook that hangs holds up nobody, and shows.
func TestHookHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		leave := make(chan struct{})
		w, pen := watch(t, watchdog.Config{Source: s, Burst: 1000, OnSlow: func(watchdog.Report) { <-leave }})
		for range 100 {
			s.begin(key, 1)
			elapse(time.Second)
		}
		elapse(time.Minute)
		slow, troubles := 0, []string{}
		for _, r := range pen.take() {
			if r.Kind == watchdog.Slow {
				slow++
			}
			if r.Kind == watchdog.Trouble {
				troubles = append(troubles, r.Problem)
			}
		}
		if slow < 90 {
			t.Errorf("%d calls reported while the hook hangs", slow)
		}
		if dropped := w.Stats().HookDropped; dropped == 0 {
			t.Error("nothing was dropped")
		}
		all := strings.Join(troubles, "\n")
		if strings.Count(all, "OnSlow has been running for 10") != 1 || !strings.Contains(all, "reports were not handed to OnSlow") || len(troubles) > 6 {
			t.Errorf("troubles told:\n%s", all)
		}
		close(leave)
	})
}

// Close waits for the hook that runs, and drops what waits for it.
func TestCloseWaitsForTheHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		var mu sync.Mutex
		began, ended := 0, 0
		w, _ := watch(t, watchdog.Config{Source: s, OnSlow: func(watchdog.Report) {
			mu.Lock()
			began++
			mu.Unlock()
			elapse2(time.Hour)
			mu.Lock()
			ended++
			mu.Unlock()
		}})
		s.begin("a", 1)
		s.begin("b", 1)
		elapse(1500 * time.Millisecond)
		w.Close()
		if began != 1 || ended != 1 {
			t.Errorf("%d began, %d ended", began, ended)
		}
	})
}

func elapse2(d time.Duration) { <-time.After(d) }

// A logger that panics is counted; the watchdog goes on.
func TestLogPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		w, _ := watch(t, watchdog.Config{Source: s, Log: func(watchdog.Report) { panic("no") }})
		s.begin(key, 1)
		elapse(5 * time.Second)
		if got := w.Stats(); got.LogPanics != 3 || got.Reports != 3 {
			t.Errorf("stats %+v", got)
		}
	})
}
