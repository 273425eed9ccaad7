package bulkhead

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestQuietEndsInTime: a full bulkhead that refuses without a look at anything looks again before anything can have changed.
func TestQuietEndsInTime(t *testing.T) {
	t.Run("at the head's age", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := mustNew(t, Config{Limit: 1, Stale: 5 * time.Second})
			enter(t, b)
			pass(time.Second)
			refused(t, b, "full")
			if !b.quiet.Load() {
				t.Error("the bulkhead does not refuse at once")
			}
			pass(4*time.Second - time.Microsecond)
			refused(t, b, "not stale")
			pass(time.Millisecond)
			enter(t, b)
		})
	})
	t.Run("when an entry was not to be seen yet", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := mustNew(t, Config{Limit: 1, Stale: time.Second})
			tk, out := b.TakeLoose()
			if !out.Admitted() {
				t.Fatal(out)
			}
			refused(t, b, "admitted, its slot not published")
			p := b.Hold(tk, Site{}, false)
			pass(time.Second)
			enter(t, b)
			check(t, b, 1, 1, 0)
			exits(t, p, true)
		})
	})
	t.Run("when the Expander wants to be asked", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := &expander{pause: 2 * time.Second}
			b := mustNew(t, Config{Limit: 1, Expander: e})
			enter(t, b)
			for range 5 {
				refused(t, b, "the bound may not grow")
			}
			if e.asked != 1 {
				t.Errorf("asked %d times within its pause", e.asked)
			}
			e.bound = 2
			pass(2*time.Second - time.Nanosecond)
			refused(t, b, "still in its pause")
			pass(time.Nanosecond)
			enter(t, b)
			want := Load{Limit: 1, Max: 4, Bound: 1, InFlight: 1, Weight: 1}
			if e.asked != 2 || e.seen != want || b.Bound() != 2 {
				t.Errorf("asked %d times, the last time about %+v; bound %d", e.asked, e.seen, b.Bound())
			}
		})
	})
	t.Run("when a detached call leaves", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := mustNew(t, Config{Limit: 1, Expand: 2, Stale: time.Second})
			p := enter(t, b)
			pass(time.Second)
			enter(t, b)
			pass(time.Hour)
			refused(t, b, "at the wall")
			exits(t, p, true)
			enter(t, b)
		})
	})
	t.Run("when a detached call is lost while the lock is held", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := mustNew(t, Config{Limit: 1, Expand: 2, Stale: time.Second})
			b.mu.Lock()
			b.lostWeight.Add(1) // what the cleanup leaves, before it takes quiet back
			b.quietEnd, b.quietWeight = now()+int64(5*time.Second), 1
			b.arm(now())
			b.detached.Add(1)
			b.mu.Unlock()
			if b.quiet.Load() {
				t.Error("a bulkhead with a place that came free refuses at once")
			}
			check(t, b, 0, 0, 0)
		})
	})
	t.Run("with new settings", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := mustNew(t, Config{Limit: 1})
			enter(t, b)
			refused(t, b, "full")
			b.SetBound(2)
			enter(t, b)
			refused(t, b, "full")
			if err := b.Configure(Config{Limit: 3}); err != nil {
				t.Fatal(err)
			}
			enter(t, b)
			refused(t, b, "full")
		})
	})
}

// TestQuietRefusesWithoutALock: neither the fast paths nor Enter take it.
func TestQuietRefusesWithoutALock(t *testing.T) {
	b := mustNew(t, Config{Limit: 1})
	enter(t, b)
	refused(t, b, "full")
	b.mu.Lock()
	defer b.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := b.Enter(context.Background()); !errors.Is(err, ErrFull) {
			t.Errorf("Enter: %v, want ErrFull", err)
		}
		if _, out := b.Take(); out != Full {
			t.Errorf("Take: %v, want Full", out)
		}
		if _, out := b.TakeLoose(); out != Full {
			t.Errorf("TakeLoose: %v, want Full", out)
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("a refusal waits for the lock")
	}
}

// TestQuietCountsOnlyCallsOfWeightOne: what forbids a heavy call to evict may not forbid it to a light one.
func TestQuietCountsOnlyCallsOfWeightOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 3, Expand: 2, Stale: time.Second})
		enter(t, b)
		pass(900 * time.Millisecond)
		enterAll(t, b)
		pass(100 * time.Millisecond)
		if _, err := b.EnterN(context.Background(), 2, 0); !errors.Is(err, ErrFull) {
			t.Fatalf("weight 2 with one stale head: %v, want ErrFull", err)
		}
		check(t, b, 3, 0, 0)
		enter(t, b)
		check(t, b, 3, 1, 0)
	})
}

// TestExpanderRange: what an Expander says is taken within the bulkhead's range, and never lowers the bound.
func TestExpanderRange(t *testing.T) {
	for _, tt := range []struct{ says, want int }{{-1, 5}, {0, 5}, {4, 5}, {5, 5}, {6, 6}, {10, 10}, {11, 10}, {1 << 30, 10}} {
		e := &expander{bound: tt.says}
		b := mustNew(t, Config{Limit: 5, Expand: 2, Expander: e})
		enterAll(t, b)
		if b.Bound() != tt.want || b.InFlight() != tt.want {
			t.Errorf("the Expander says %d: bound %d, %d in flight; want %d", tt.says, b.Bound(), b.InFlight(), tt.want)
		}
	}
}

// TestNewBoundServesThoseWhoWait: growth that a newcomer asked for goes to the ones before it first.
func TestNewBoundServesThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &expander{}
		b := mustNew(t, Config{Limit: 2, Wait: time.Minute, Queue: 9, Expander: e})
		enterSome(t, b, 2)
		var calls []*call
		for range 3 {
			calls = append(calls, enterLater(t, b, 1, 0))
			pass(time.Millisecond)
		}
		e.bound = 4
		calls = append(calls, enterLater(t, b, 1, 0))
		synctest.Wait()
		for i, c := range calls {
			if c.in() != (i < 2) {
				t.Errorf("call %d is in: %v", i, c.in())
			}
		}
		check(t, b, 4, 0, 2)
		b.Close()
	})
}

// TestWaitingAsksForGrowth at the end of the Expander's pause, even if nobody else comes, and does not spin if there is none.
func TestWaitingAsksForGrowth(t *testing.T) {
	for _, tt := range []struct {
		pause time.Duration
		asked int // at most, within 200 ms
	}{{0, 210}, {time.Nanosecond, 210}, {50 * ms, 6}, {time.Hour, 1}} {
		synctest.Test(t, func(t *testing.T) {
			e := &expander{bound: 1, pause: tt.pause}
			b := mustNew(t, Config{Limit: 1, Wait: 300 * ms, Queue: 9, Expander: e})
			enter(t, b)
			var calls []*call
			for range 5 {
				calls = append(calls, enterLater(t, b, 1, 0))
				pass(time.Microsecond)
			}
			pass(200 * ms)
			e.mu.Lock()
			asked := e.asked
			e.bound = 2
			e.mu.Unlock()
			if asked == 0 || asked > tt.asked {
				t.Errorf("pause %v: asked %d times, want 1..%d", tt.pause, asked, tt.asked)
			}
			pass(51 * ms)
			if calls[0].in() != (tt.pause < time.Hour) {
				t.Errorf("pause %v: the first waiter is in: %v", tt.pause, calls[0].in())
			}
			b.Close()
		})
	}
}
