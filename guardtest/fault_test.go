package guardtest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/guard"
)

func TestRefuseForEveryReason(t *testing.T) {
	rt := New(t)
	for _, reason := range guard.Reasons() {
		rt.Refuse("k", reason)
		ran := false
		err := rt.Do("k", func() error { ran = true; return nil })
		rejection, ok := errors.AsType[*guard.Rejection](err)
		if !ok || rejection.Reason() != reason || ran {
			t.Errorf("Refuse(%v): error %v, ran %v", reason, err, ran)
		}
		if err := rt.Do("other", func() error { return nil }); err != nil {
			t.Errorf("Refuse(%v) of one key refused another: %v", reason, err)
		}
		if n := rt.For("k").Snapshot().Refused[reason]; n != 1 {
			t.Errorf("%d refusals are counted for %v, want 1", n, reason)
		}
	}
	rt.Allow("k")
	if err := rt.Do("k", func() error { return nil }); err != nil {
		t.Errorf("after Allow: %v", err)
	}
}

func TestRefuseReachesEveryWayIn(t *testing.T) {
	rt := New(t)
	rt.Refuse("k", guard.ReasonOpen)
	g, ctx := rt.For("k"), t.Context()
	ways := map[string]func() error{
		"Do":          func() error { return g.Do(func() error { return nil }) },
		"DoContext":   func() error { return g.DoContext(ctx, func(context.Context) error { return nil }) },
		"Enter":       func() error { p, err := g.Enter(ctx); p.Exit(); return err },
		"EnterN":      func() error { p, err := g.EnterN(ctx, 2); p.Exit(); return err },
		"EnterScoped": func() error { p, err := g.EnterScoped(ctx); p.Exit(); return err },
	}
	for name, way := range ways {
		if err := way(); !errors.Is(err, guard.ErrRejected) {
			t.Errorf("%s: %v, want a rejection", name, err)
		}
	}
	rt.Allow("k")
	for name, way := range ways {
		if err := way(); err != nil {
			t.Errorf("%s after Allow: %v", name, err)
		}
	}
	rt.AssertIdle()
}

func TestInjectError(t *testing.T) {
	rt := New(t)
	broken := errors.New("broken")
	rt.Inject("k", Fail(broken))
	ran := false
	if err := rt.Do("k", func() error { ran = true; return nil }); !errors.Is(err, broken) || ran {
		t.Errorf("error %v, ran %v; want the injected error and no run", err, ran)
	}
	if s := rt.For("k").Snapshot(); s.Failed != 1 || s.Injected != 1 {
		t.Errorf("failed %d, injected %d, want 1 and 1", s.Failed, s.Injected)
	}
	rt.AssertIdle()
	rt.Inject("k", nil)
	if err := rt.Do("k", func() error { ran = true; return nil }); err != nil || !ran {
		t.Errorf("after it was taken back: error %v, ran %v", err, ran)
	}
}

func TestInjectLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := New(t)
		rt.Inject("k", Latency(time.Minute))
		start := time.Now()
		inFlight := make(chan int, 1)
		go func() {
			<-time.After(30 * time.Second)
			inFlight <- rt.For("k").Snapshot().Bulkhead.InFlight
		}()
		if err := rt.Do("k", func() error { return nil }); err != nil {
			t.Error(err)
		}
		if d, n := time.Since(start), <-inFlight; d != time.Minute || n != 1 {
			t.Errorf("the call took %v with %d in flight, want a minute with the place held", d, n)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		err := rt.For("k").DoContext(ctx, func(context.Context) error { return nil })
		if d := time.Since(start); d != time.Second || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, guard.ErrRejected) {
			t.Errorf("the call took %v and got %v, want the context's end after a second", d, err)
		}
		rt.AssertIdle()
	})
}

func TestMisuseIsReported(t *testing.T) {
	rt, f := newFake(t)
	rt.Refuse("a b", guard.ReasonOpen)
	wantError(t, f, "guardtest: Refuse", `"a b"`)
	rt.Refuse("k", guard.ReasonNone)
	wantError(t, f, "guardtest: Refuse: reason 0 of key k must be one of guard.Reasons()")
	rt.Refuse("k", 200)
	wantError(t, f, "reason 200")
	rt.Inject("", Latency(0))
	wantError(t, f, "guardtest: Inject", "1 to 256 bytes")
	rt.Fill("a b")()
	wantError(t, f, "guardtest: Fill", `"a b"`)
	rt.Close()
	rt.Fill("k")()
	wantError(t, f, "guardtest: Fill", "closed")
}
