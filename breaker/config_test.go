package breaker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestConfig(t *testing.T) {
	_, err := New(Config{Ratio: math.NaN(), Min: -1, Consecutive: -1, Window: 1, Open: 1, Probes: 1001, Lease: -1, Slow: 1})
	if !errors.Is(err, ErrConfig) {
		t.Fatal(err)
	}
	for _, want := range []string{
		"breaker: invalid configuration: Ratio is NaN, must be above 0 and at most 1", "Min is -1, must be 1 to 1000000",
		"Consecutive is -1, must be 0 to 1000000", "Window is 1ns, must be 100ms to 1h0m0s", "Open is 1ns, must be 1ms to 1h0m0s",
		"Probes is 1001, must be 1 to 1000", "Lease is -1ns, must be 1ms to 1h0m0s", "Slow is 1ns, must be 1ms to 1h0m0s",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
	_, err = NewThrottle(ThrottleConfig{K: 1, Window: 2 * time.Hour})
	for _, want := range []string{"K is 1, must be above 1 and at most 100", "Window is 2h0m0s, must be 100ms to 1h0m0s"} {
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
}

func TestJudge(t *testing.T) {
	for err, want := range map[error]Outcome{
		nil: Success, errWork: Failure, context.DeadlineExceeded: Failure, context.Canceled: Ignored, ErrThrottled: Ignored,
		&OpenError{}: Ignored, fmt.Errorf("reading: %w", context.Canceled): Ignored, fmt.Errorf("reading: %w", refusal{}): Ignored,
	} {
		if got := Judge(err); got != want {
			t.Errorf("%v is %v, want %v", err, got, want)
		}
	}
}

func TestSlowCallsAreFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Min: 2, Slow: time.Second})
		for range 2 {
			if err := b.Do(func() error { <-time.After(1001 * time.Millisecond); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		wantState(t, b, Open)
		b = mustNew(t, Config{Min: 2, Slow: time.Second})
		for range 20 {
			_ = b.Do(func() error { <-time.After(time.Second); return nil })
		}
		wantState(t, b, Closed)
	})
}

func TestConsecutive(t *testing.T) {
	b := mustNew(t, Config{Ratio: 1, Min: 1000, Consecutive: 3})
	for _, call := range []func() error{broken, broken, fine, broken, broken} {
		_ = b.Do(call)
	}
	wantState(t, b, Closed)
	_ = b.Do(broken)
	wantState(t, b, Open)
}

func TestModes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shut := false
		b := mustNew(t, Config{Min: 2, Open: time.Second, Probes: 1, Shut: func(s bool) { shut = s }})
		b.SetMode(ForceOpen)
		if err := b.Do(fine); !errors.Is(err, ErrOpen) || b.Left() == 0 || !shut {
			t.Errorf("forced open: %v", err)
		}
		b.SetMode(ForceClosed)
		for range 3 {
			if err := b.Do(broken); !errors.Is(err, errWork) || b.Left() > 0 || shut {
				t.Errorf("forced closed: %v", err)
			}
		}
		if s := b.Snapshot(); s.State != Open || s.Mode != ForceClosed {
			t.Errorf("underneath: %+v", s)
		}
		b.SetMode(99)
		b.SetMode(Normal)
		if err := b.Do(fine); !errors.Is(err, ErrOpen) || !shut || b.Left() != time.Second {
			t.Errorf("normal again: %v", err)
		}
		elapse(time.Second + 1)
		if err := b.Do(fine); err != nil || shut {
			t.Error(err)
		}
		wantState(t, b, Closed)
	})
}

// A function of the user's that ends its goroutine does not keep later changes from being told.
func TestOnChangeThatExits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		b := opened(t, Config{OnChange: func(Change) {
			if told++; told == 2 {
				runtime.Goexit()
			}
		}})
		elapse(time.Second + 1)
		var done sync.WaitGroup
		done.Go(func() { _ = b.Do(fine) })
		done.Wait()
		elapse(time.Second) // the lease of the probe, whose goroutine has ended
		_ = b.Do(fine)
		wantState(t, b, Open)
		if told != 3 {
			t.Errorf("%d changes told, want 3", told)
		}
	})
}

func TestWordsForPeople(t *testing.T) {
	for got, want := range map[string]string{
		Closed.String() + Open.String() + HalfOpen.String() + State(9).String():               "closedopenhalf_openunknown",
		Normal.String() + ForceOpen.String() + ForceClosed.String() + Mode(9).String():        "normalforce_openforce_closedunknown",
		(&OpenError{Name: "db", RetryAfter: time.Second}).Error():                             "breaker db: open, try again in 1s",
		(&OpenError{RetryAfter: time.Second}).Error():                                         "breaker: open, try again in 1s",
		ThrottleSnapshot{Requests: 10, Accepts: 1, Drop: [Levels]float64{0, 0.5, 1}}.String(): "1 of 10 accepted, refused 0 % / 50 % / 100 % / 0 %",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestNothingIsAllocated(t *testing.T) {
	b, th := mustNew(t, Config{}), newThrottle(t, ThrottleConfig{})
	if n := testing.AllocsPerRun(100, func() { _ = b.Do(fine) }); n != 0 {
		t.Errorf("a call through a breaker allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { _ = th.Do(1, fine) }); n != 0 {
		t.Errorf("a call through a throttle allocates %v times", n)
	}
}

func BenchmarkBreaker(b *testing.B) {
	br := mustNew(b, Config{})
	b.ReportAllocs()
	for b.Loop() {
		_ = br.Do(fine)
	}
}

func BenchmarkThrottle(b *testing.B) {
	th := newThrottle(b, ThrottleConfig{})
	b.ReportAllocs()
	for b.Loop() {
		_ = th.Do(1, fine)
	}
}
