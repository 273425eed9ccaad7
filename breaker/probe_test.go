package breaker

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sony/gobreaker/v2"
)

// Each of these shows what gobreaker does when it is left alone with the same calls.

// K1: a probe that ends its goroutine fails. gobreaker never hears of it, and refuses for ever.
func TestK1ProbeThatExits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, cb := half(t, Config{})
		var done sync.WaitGroup
		done.Go(func() { _ = b.Do(func() error { runtime.Goexit(); return nil }) })
		done.Go(func() { _, _ = cb.Execute(func() (struct{}, error) { runtime.Goexit(); return struct{}{}, nil }) })
		done.Wait()
		wantState(t, b, Open)
		elapse(time.Hour)
		if err := b.Do(fine); err != nil {
			t.Error(err)
		}
		wantState(t, b, Closed)
		if _, err := cb.Execute(succeeded); !errors.Is(err, gobreaker.ErrTooManyRequests) {
			t.Errorf("gobreaker alone is not wedged any more: %v", err)
		}
	})
}

// K1: a probe that hangs loses its place after the lease. gobreaker waits for it for ever.
func TestK1ProbeThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, cb := half(t, Config{Lease: 10 * time.Second})
		leave := make(chan struct{})
		var done sync.WaitGroup
		done.Go(func() { _ = b.Do(func() error { <-leave; return nil }) })
		done.Go(func() { _, _ = cb.Execute(func() (struct{}, error) { <-leave; return struct{}{}, nil }) })
		synctest.Wait()
		if err := b.Do(fine); !errors.Is(err, ErrOpen) {
			t.Errorf("a second probe passes: %v", err)
		}
		elapse(10 * time.Second)
		if err := b.Do(fine); !errors.Is(err, ErrOpen) {
			t.Errorf("its lease has ended, which is a failure, but: %v", err)
		}
		wantState(t, b, Open)
		elapse(2 * time.Second)
		if err := b.Do(fine); err != nil {
			t.Error(err)
		}
		wantState(t, b, Closed)
		if _, err := cb.Execute(succeeded); !errors.Is(err, gobreaker.ErrTooManyRequests) {
			t.Errorf("gobreaker alone does not wait for the probe any more: %v", err)
		}
		close(leave) // too late to count
		done.Wait()
		wantState(t, b, Closed)
	})
}

// K1: a probe that is never given back, by somebody who uses Enter.
func TestK1ProbeThatIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := half(t, Config{Lease: 3 * time.Second})
		if _, err := b.Enter(); err != nil {
			t.Fatal(err)
		}
		two := gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{Timeout: time.Second, ReadyToTrip: func(gobreaker.Counts) bool { return true }})
		done, err := two.Allow()
		if err != nil {
			t.Fatal(err)
		}
		done(errWork)
		elapse(2 * time.Second)
		if _, err := two.Allow(); err != nil {
			t.Fatal(err)
		}
		elapse(time.Hour)
		if err := b.Do(fine); !errors.Is(err, ErrOpen) { // the lease ended just now, by this look
			t.Error(err)
		}
		elapse(2 * time.Second)
		if err := b.Do(fine); err != nil {
			t.Error(err)
		}
		if _, err := two.Allow(); !errors.Is(err, gobreaker.ErrTooManyRequests) {
			t.Errorf("gobreaker alone has forgotten the probe: %v", err)
		}
	})
}

// K1: a panic goes up untouched. gobreaker catches it and panics anew, from its own deferred function.
func TestK1PanicGoesUpUntouched(t *testing.T) {
	panics := func(f func()) (n int) {
		defer func() {
			_ = recover()
			buf := make([]byte, 8192)
			n = strings.Count(string(buf[:runtime.Stack(buf, false)]), "\npanic(")
		}()
		f()
		return 0
	}
	synctest.Test(t, func(t *testing.T) {
		b, cb := half(t, Config{})
		if n := panics(func() { _ = b.Do(func() error { panic("no") }) }); n != 1 {
			t.Errorf("%d panics, want the user's own", n)
		}
		wantState(t, b, Open)
		if n := panics(func() { _, _ = cb.Execute(func() (struct{}, error) { panic("no") }) }); n != 2 {
			t.Errorf("gobreaker alone panics %d times, no longer anew", n)
		}
	})
}

// K2: a result of before the trip does not count. gobreaker, told by somebody who reports calls when they are over, as its Execute of
// ready results does, takes it for a probe's.
func TestK2LateResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Min: 2, Open: time.Second, Probes: 1})
		early, err := b.Enter()
		if err != nil {
			t.Fatal(err)
		}
		second, _ := b.Enter()
		_ = b.Do(broken)
		_ = b.Do(broken)
		elapse(time.Second + time.Millisecond)
		if b.Left() > 0 {
			t.Error("no probe may pass")
		}
		wantState(t, b, HalfOpen)
		b.Exit(&early, nil)
		wantState(t, b, HalfOpen)
		b.Exit(&second, errWork)
		wantState(t, b, HalfOpen)
		if err := b.Do(fine); err != nil {
			t.Error(err)
		}
		wantState(t, b, Closed)

		cb := alone()
		elapse(time.Second + time.Millisecond)
		_, _ = cb.Execute(succeeded) // the late result of an early call
		if cb.State() != gobreaker.StateClosed {
			t.Error("gobreaker alone tells late results by now")
		}
	})
}

// A ticket counts once. gobreaker's done counts as often as it is called.
func TestK2DoubleExit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Min: 4})
		ticket, _ := b.Enter()
		for range 4 {
			b.Exit(&ticket, errWork)
		}
		if s := b.Snapshot(); s.Failures != 1 || s.State != Closed {
			t.Errorf("%+v", s)
		}
		two := gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{ReadyToTrip: func(c gobreaker.Counts) bool { return c.TotalFailures >= 4 }})
		done, err := two.Allow()
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			done(errWork)
		}
		if two.State() != gobreaker.StateOpen {
			t.Error("gobreaker alone counts once by now")
		}
		probing, _ := half(t, Config{Probes: 1})
		probe, err := probing.Enter()
		if err != nil {
			t.Fatal(err)
		}
		same := probe // a copy, which nobody should make
		probing.Exit(&probe, nil)
		probing.Exit(&same, errWork)
		wantState(t, probing, Closed)
	})
}

// K3: a function of the user's may call the breaker. gobreaker calls it under its lock.
func TestK3CallbacksMayCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *Breaker
		var told []Change
		var err error
		b, err = New(Config{Min: 2, Open: time.Second, Probes: 1, OnChange: func(c Change) {
			told = append(told, c)
			b.Snapshot()
			_ = b.Do(broken)
			b.SetMode(Normal)
			if len(told) == 1 {
				panic("of the user's")
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		_ = b.Do(broken)
		_ = b.Do(broken)
		elapse(time.Second + time.Millisecond)
		_ = b.Do(fine)
		synctest.Wait()
		var steps []string
		for _, c := range told {
			steps = append(steps, c.From.String()+" "+c.To.String()+": "+c.Why)
		}
		want := []string{"closed open: 2 of 2 calls failed in 10s", "open half_open: it was open for 1s", "half_open open: a probe failed"}
		if len(steps) < 2 || steps[0] != want[0] || steps[1] != want[1] {
			t.Errorf("told: %q", steps)
		}

		var cb *gobreaker.CircuitBreaker[struct{}]
		back := make(chan struct{})
		cb = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
			ReadyToTrip: func(gobreaker.Counts) bool { return true },
			OnStateChange: func(string, gobreaker.State, gobreaker.State) {
				go func() { cb.State(); close(back) }()
				isStuck(t, back)
			},
		})
		_, _ = cb.Execute(failed)
		<-back
	})
}

// isStuck checks that somebody who needs gobreaker's lock does not get it.
func isStuck(t *testing.T, back chan struct{}) {
	t.Helper()
	for range 100 {
		runtime.Gosched()
	}
	select {
	case <-back:
		t.Error("gobreaker alone calls without its lock by now")
	default:
	}
}

// A call that a later stage refused gives its probe back, uncounted. gobreaker needs to be told of an error that it excludes; its
// Execute takes a refusal for a failure.
func TestRefusalByALaterStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, cb := half(t, Config{})
		for range 5 {
			probe, err := b.Enter()
			if err != nil {
				t.Fatal(err)
			}
			b.Exit(&probe, refusal{})
		}
		wantState(t, b, HalfOpen)
		_, _ = cb.Execute(func() (struct{}, error) { return struct{}{}, refusal{} })
		if cb.State() != gobreaker.StateOpen {
			t.Error("gobreaker alone knows refusals by now")
		}
	})
}

type refusal struct{}

func (refusal) Error() string   { return "full" }
func (refusal) Unreached() bool { return true }

// Of the probes only so many pass at once, and as many must succeed.
func TestProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := opened(t, Config{Probes: 3})
		elapse(time.Second + time.Millisecond)
		var probes [3]Ticket
		for i := range probes {
			var err error
			if probes[i], err = b.Enter(); err != nil {
				t.Fatal(err)
			}
		}
		_, err := b.Enter()
		open, ok := errors.AsType[*OpenError](err)
		if !ok || open.RetryAfter != time.Second || b.Left() == 0 {
			t.Errorf("the fourth: %v", err)
		}
		b.Exit(&probes[0], nil)
		if _, err := b.Enter(); err == nil {
			t.Error("more probes than need to succeed")
		}
		b.Exit(&probes[1], nil)
		wantState(t, b, HalfOpen)
		b.Exit(&probes[2], nil)
		wantState(t, b, Closed)
	})
}
