package breaker

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/internal/clock"
)

// What the throttle learned before a silence longer than its window says nothing about now.
func TestThrottleForgetsWhatIsOlderThanItsWindow(t *testing.T) {
	for _, burst := range []int{10, 100} {
		synctest.Test(t, func(t *testing.T) {
			th := newThrottle(t, ThrottleConfig{})
			traffic(th, 20*time.Second, 5*time.Millisecond, always, func() bool { return false })
			elapse(time.Hour)
			for i := range burst {
				if !th.Allow(1) { // nobody has reported yet: only time can tell it
					t.Fatalf("call %d of %d is refused by failures an hour old", i, burst)
				}
			}
		})
	}
}

// A caller with a Total does not tell of successes, so that failures in a row cannot be known.
func TestConsecutiveNeedsToBeToldOfSuccesses(t *testing.T) {
	_, err := New(Config{Consecutive: 3, Total: func() uint64 { return 0 }})
	if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "Consecutive is 3, must be 0 with Total") {
		t.Errorf("the error is %v", err)
	}
}

// Changes that wait while OnChange runs are told later if it ends the goroutine, and in order.
func TestNoChangeIsLostWhenOnChangeExits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *Breaker
		var told []Change
		b = mustNew(t, Config{Min: 1, Ratio: 1, Open: time.Second, Probes: 1, OnChange: func(c Change) {
			switch told = append(told, c); len(told) {
			case 1:
				elapse(time.Second + 1)
				_ = b.Do(fine) // two more changes, which wait for this one
			case 2:
				runtime.Goexit()
			default:
			}
		}})
		var done sync.WaitGroup
		done.Go(func() { _ = b.Do(broken) })
		done.Wait()
		_ = b.Do(broken)
		if len(told) != 4 {
			t.Errorf("%d changes were told, want 4", len(told))
		}
		wantChain(t, told)
	})
}

// A panic or Goexit of fn goes through OnChange on its way up.
func TestPanicAndExitPassOnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		b, _ := half(t, Config{OnChange: func(Change) { told++ }})
		var got any
		func() {
			defer func() { got = recover() }()
			_ = b.Do(func() error { panic("mine") })
		}()
		if got != "mine" || told != 3 {
			t.Errorf("recovered %v after %d changes, want mine after 3", got, told)
		}
		b, _ = half(t, Config{OnChange: func(Change) { told++ }})
		told = 0
		returned := false
		var done sync.WaitGroup
		done.Go(func() { _ = b.Do(func() error { runtime.Goexit(); return nil }); returned = true })
		done.Wait()
		if returned || told != 2 {
			t.Errorf("the goroutine went on: %v; %d changes, want 2", returned, told)
		}
	})
}

// A Judge that panics is a failure of the call, and the probe's place is free again.
func TestJudgeThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ill := false
		b, _ := half(t, Config{Judge: func(err error) Outcome {
			if ill {
				panic("judge")
			}
			return Judge(err)
		}})
		ill = true
		func() {
			defer func() { _ = recover() }()
			_ = b.Do(fine)
		}()
		wantState(t, b, Open)
		ill = false
		elapse(time.Second + 1)
		if err := b.Do(fine); err != nil {
			t.Error(err)
		}
		wantState(t, b, Closed)
	})
}

// Calls that end in every way there is, from many goroutines: never more probes than allowed, changes follow from one another, and in the end
// the breaker closes.
func TestStress(t *testing.T) {
	var mu sync.Mutex
	var told []Change
	const probes = 3
	b := mustNew(t, Config{
		Min: 5, Open: time.Millisecond, Probes: probes, Lease: 5 * time.Millisecond, Window: 100 * time.Millisecond,
		OnChange: func(c Change) {
			mu.Lock()
			told = append(told, c)
			mu.Unlock()
		},
	})
	var callers sync.WaitGroup
	for w := range 8 {
		callers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			for range 5_000 {
				switch r.IntN(8) {
				case 0:
					var inner sync.WaitGroup
					inner.Go(func() { _ = b.Do(func() error { runtime.Goexit(); return nil }) })
					inner.Wait()
				case 1:
					func() {
						defer func() { _ = recover() }()
						_ = b.Do(func() error { panic("of a call") })
					}()
				case 2:
					_, _ = b.Enter() // and never Exit
				case 3:
					b.Tick()
					if s := b.Snapshot(); s.Probes > probes {
						t.Errorf("%d probes at once, at most %d may be", s.Probes, probes)
					}
				case 4:
					_ = b.Do(broken)
				default:
					_ = b.Do(fine)
				}
			}
		})
	}
	callers.Wait()
	for end := time.Now().Add(5 * time.Second); b.Snapshot().State != Closed; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("after five seconds of nothing but successes: %+v", b.Snapshot())
		}
		_ = b.Do(fine)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(told) < 10 {
		t.Errorf("only %d changes in all that", len(told))
	}
	wantChain(t, told)
}

// wantChain checks that each change begins where the one before ended.
func wantChain(t *testing.T, changes []Change) {
	t.Helper()
	for i := 1; i < len(changes); i++ {
		if a, b := changes[i-1], changes[i]; a.To != b.From {
			t.Errorf("change %d ends in %v, the next begins in %v", i-1, a.To, b.From)
		}
	}
}

// A Total may fall: calls that are in flight are among it, until it turns out that they say nothing of the other side. Neither breaker nor
// throttle may go blind then.
func TestTotalThatFalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var total uint64
		read := func() uint64 { return total }
		b := mustNew(t, Config{Total: read})
		th := newThrottle(t, ThrottleConfig{Total: read})
		total = 1000 // hang
		elapse(10 * time.Second)
		b.Tick()
		th.Tick()
		elapse(time.Second)
		total -= 900 // their callers have given up
		if s := b.Snapshot(); s.Calls != 0 {
			t.Errorf("the breaker sees %d calls, and nobody has called", s.Calls)
		}
		if s := th.Snapshot(); s.Requests != 0 || s.Accepts != 0 {
			t.Errorf("the throttle sees %d requests, %d of them accepted, and nobody has called", s.Requests, s.Accepts)
		}
		for range 100 {
			total++
			b.Failed(clock.Now())
			th.Failed(clock.Now())
		}
		wantState(t, b, Open)
		if s := th.Snapshot(); s.Drop[0] < 0.9 {
			t.Errorf("a hundred calls failed, none was accepted, and the throttle lets pass: %v", s)
		}
	})
}
