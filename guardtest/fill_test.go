package guardtest

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

func declare(t *testing.T, rt *Runtime, s registry.Spec) {
	t.Helper()
	if err := rt.Registry().Declare("k", s); err != nil {
		t.Fatal(err)
	}
}

func TestFill(t *testing.T) {
	rt := New(t)
	declare(t, rt, registry.Spec{Limit: 3})
	pass, err := rt.For("k").Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	release := rt.Fill("k")
	if n := rt.For("k").Snapshot().Bulkhead.InFlight; n != 3 {
		t.Errorf("%d in flight, want all 3", n)
	}
	if err := rt.Do("k", func() error { return nil }); !errors.Is(err, bulkhead.ErrFull) {
		t.Errorf("a call of the full key got %v", err)
	}
	rt.Fill("k")() // nothing left to take
	release()
	release()
	if n := rt.For("k").Snapshot().Bulkhead.InFlight; n != 1 {
		t.Errorf("%d in flight after release, want the one that was there before", n)
	}
	pass.Exit()
	rt.AssertIdle()
	if s := rt.For("k").Snapshot(); s.Failed != 0 {
		t.Errorf("%d failures from filling", s.Failed)
	}
}

func TestFillPassesFaults(t *testing.T) {
	rt := New(t)
	declare(t, rt, registry.Spec{Limit: 2})
	rt.Refuse("k", guard.ReasonOpen)
	rt.Inject("k", Fail(errors.New("broken")))
	defer rt.Fill("k")()
	rt.Allow("k")
	if err := rt.Do("k", func() error { return nil }); !errors.Is(err, bulkhead.ErrFull) {
		t.Errorf("got %v, want the key full", err)
	}
}

// A release that is thrown away must not let the places be found lost.
func TestFillSurvivesCollection(t *testing.T) {
	rt := New(t)
	declare(t, rt, registry.Spec{Limit: 5})
	rt.Fill("k")
	for range 3 {
		runtime.GC()
	}
	if n := rt.For("k").Snapshot().Bulkhead.InFlight; n != 5 {
		t.Errorf("%d in flight after collections, want 5", n)
	}
}

func TestFillIsNotStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := New(t)
		declare(t, rt, registry.Spec{Limit: 2, Stale: time.Second})
		rt.Fill("k")
		<-time.After(time.Hour)
		if err := rt.Do("k", func() error { return nil }); !errors.Is(err, bulkhead.ErrFull) {
			t.Errorf("an hour later a call got %v, want the key still full", err)
		}
	})
}

func TestFillLeavesWaitingCallsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := New(t)
		declare(t, rt, registry.Spec{Limit: 2, Wait: time.Minute})
		release := rt.Fill("k")
		ran := false
		go rt.Do("k", func() error { ran = true; return nil })
		synctest.Wait()
		if ran {
			t.Error("the call did not wait")
		}
		release()
		synctest.Wait()
		if !ran {
			t.Error("the call still waits after release")
		}
	})
}
