package guard_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// script is an injector that does what its fields say.
type script struct {
	refuse  guard.Reason
	inject  error
	latency time.Duration
	panics  any
	goexit  bool
	seen    []registry.Key
}

func (s *script) Refuse(_ context.Context, key registry.Key) guard.Reason {
	s.seen = append(s.seen, key)
	return s.refuse
}

func (s *script) Inject(ctx context.Context, _ registry.Key) error {
	if s.latency > 0 {
		select {
		case <-time.After(s.latency):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if s.panics != nil {
		panic(s.panics)
	}
	if s.goexit {
		runtime.Goexit()
	}
	return s.inject
}

// eachWayInjected is eachWay with a script in the path.
func eachWayInjected(t *testing.T, test func(t *testing.T, s *script, g *guard.Guard, do func(fn func() error) error)) {
	t.Helper()
	for _, path := range paths {
		for _, way := range ways {
			t.Run(path.name+"/"+way.name, func(t *testing.T) {
				s := &script{}
				g := declared(t, newRuntime(t, guard.WithInjector(s)), "shop.Store.Get", path.spec)
				test(t, s, g, func(fn func() error) error { return way.do(g, fn) })
			})
		}
	}
}

func TestInjectorRefusesForEveryReason(t *testing.T) {
	eachWayInjected(t, func(t *testing.T, s *script, g *guard.Guard, do func(func() error) error) {
		t.Helper()
		for _, reason := range guard.Reasons() {
			s.refuse = reason
			err := do(func() error { t.Error("a refused call ran"); return nil })
			if r := rejectionOf(t, err, reason); r.Key() != g.Key() {
				t.Errorf("the refusal names %q", r.Key())
			}
		}
		snap := g.Snapshot()
		for _, reason := range guard.Reasons() {
			if snap.Refused[reason] != 1 {
				t.Errorf("%d refusals as %q are counted, want 1", snap.Refused[reason], reason)
			}
		}
		if snap.Admitted != 0 {
			t.Errorf("%d admitted; nothing is taken before the injector is asked", snap.Admitted)
		}
		// What is no reason lets the call go on.
		for _, none := range []guard.Reason{guard.ReasonNone, 200} {
			s.refuse = none
			if err := do(nothing); err != nil {
				t.Errorf("Refuse answered %v: %v", none, err)
			}
		}
		if s.seen[0] != g.Key() {
			t.Errorf("the injector was asked about %q", s.seen[0])
		}
	})
}

func TestInjectedErrorIsTheCallsOutcome(t *testing.T) {
	eachWayInjected(t, func(t *testing.T, s *script, g *guard.Guard, do func(func() error) error) {
		t.Helper()
		s.inject = errWork
		for range 5 {
			err := do(func() error { t.Error("the function ran"); return nil })
			if err != errWork { //nolint:errorlint // untouched
				t.Errorf("got %v, want the injected error", err)
			}
		}
		s.inject = nil
		if err := do(nothing); err != nil {
			t.Error(err)
		}
		if snap := g.Snapshot(); snap.Injected != 5 || snap.Failed != 5 || snap.Admitted != 6 || snap.Unrecorded != 0 {
			t.Errorf("injected %d, failed %d, admitted %d, unrecorded %d; want 5, 5, 6, 0", snap.Injected, snap.Failed, snap.Admitted, snap.Unrecorded)
		}
		wantIdle(t, g)
	})
}

// An injector that only delays leaves the outcome to the function.
func TestInjectorThatDecidesNothingLeavesNoMark(t *testing.T) {
	eachWayInjected(t, func(t *testing.T, _ *script, g *guard.Guard, do func(func() error) error) {
		t.Helper()
		func() {
			defer func() { _ = recover() }()
			_ = do(func() error { panic("the function's") })
		}()
		if snap := g.Snapshot(); snap.Injected != 0 || snap.Unrecorded != 1 {
			t.Errorf("injected %d, unrecorded %d; want 0, 1", snap.Injected, snap.Unrecorded)
		}
	})
}

func TestInjectorThatPanicsGivesThePlaceBack(t *testing.T) {
	eachWayInjected(t, func(t *testing.T, s *script, g *guard.Guard, do func(func() error) error) {
		t.Helper()
		s.panics = "injected"
		for range 5 {
			func() {
				defer func() {
					if got := recover(); got != "injected" {
						t.Errorf("recovered %v", got)
					}
				}()
				_ = do(func() error { t.Error("the function ran"); return nil })
			}()
		}
		s.panics, s.goexit = nil, true
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = do(func() error { t.Error("the function ran"); return nil })
		}()
		<-done
		if snap := g.Snapshot(); snap.Injected != 6 || snap.Unrecorded != 6 || snap.Failed != 0 {
			t.Errorf("injected %d, unrecorded %d, failed %d; want 6, 6, 0", snap.Injected, snap.Unrecorded, snap.Failed)
		}
		wantIdle(t, g)
	})
}

func TestInjectedLatencyCountsAsTheCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{latency: time.Second}
		rt := newRuntime(t, guard.WithInjector(s))
		g := declared(t, rt, "k", registry.Spec{Limit: 1})
		h := make(chan error)
		go func() { h <- g.Do(nothing) }()
		synctest.Wait()
		wantReason(t, g.Do(nothing), guard.ReasonFull) // the place is held meanwhile
		if err := <-h; err != nil {
			t.Error(err)
		}
		snap := g.Snapshot()
		if got := snap.Latency.Quantile(0.5); snap.Latency.Count() != 1 || got < time.Second || got > 1250*time.Millisecond {
			t.Errorf("latency %v of %d calls, want about 1 s of 1", got, snap.Latency.Count())
		}
		// It ends with the context of the call.
		timed := declared(t, rt, "timed", registry.Spec{Timeout: 100 * time.Millisecond})
		start := time.Now()
		err := timed.DoContext(context.Background(), func(context.Context) error { t.Error("ran"); return nil })
		if err != context.DeadlineExceeded || time.Since(start) != 100*time.Millisecond { //nolint:errorlint // untouched
			t.Errorf("got %v after %v, want the injector's error after 100 ms", err, time.Since(start))
		}
		_, err = timed.Enter(context.Background())
		if err != context.DeadlineExceeded { //nolint:errorlint // untouched
			t.Errorf("got %v", err)
		}
		wantIdle(t, timed)
	})
}
