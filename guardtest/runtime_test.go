package guardtest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

func TestNewIsIsolatedAndClosed(t *testing.T) {
	var a, b *Runtime
	t.Run("inner", func(t *testing.T) {
		a, b = New(t), New(t)
		if err := a.Registry().Declare("k", registry.Spec{Limit: 1}); err != nil {
			t.Fatal(err)
		}
		defer a.Fill("k")()
		if err := a.Do("k", func() error { return nil }); !errors.Is(err, guard.ErrRejected) {
			t.Errorf("the full key let a call in: %v", err)
		}
		if err := b.Do("k", func() error { return nil }); err != nil {
			t.Errorf("the other runtime refused: %v", err)
		}
	})
	for _, rt := range []*Runtime{a, b} {
		if err := rt.Do("other", func() error { return nil }); !errors.Is(err, guard.ErrClosed) {
			t.Errorf("after the test a call got %v, want ErrClosed", err)
		}
	}
}

func TestNewTakesOptionsAndSaysWhatIsWrong(t *testing.T) {
	rt := New(t, guard.WithMaxKeys(1))
	if rt.For("a") == nil {
		t.Error("no guard")
	}
	f := &fakeTB{}
	if rt := New(f, guard.WithMaxKeys(0)); rt != nil || !f.fatal {
		t.Errorf("New with a bad option returned %v, fatal %v", rt, f.fatal)
	}
	wantError(t, f, "guardtest: New: guard: WithMaxKeys got 0")
}

// The runtime's goroutines must end before the bubble does, or else synctest.Test panics.
func TestCleanupRunsInsideTheBubble(t *testing.T) {
	var rt *Runtime
	synctest.Test(t, func(t *testing.T) {
		rt = New(t)
		if err := rt.Do("k", func() error { return nil }); err != nil {
			t.Error(err)
		}
	})
	if err := rt.Do("k", func() error { return nil }); !errors.Is(err, guard.ErrClosed) {
		t.Errorf("after the bubble a call got %v, want ErrClosed", err)
	}
}

func TestTimeOfTheBubble(t *testing.T) {
	before := time.Now()
	synctest.Test(t, func(t *testing.T) {
		rt := New(t)
		if err := rt.Registry().Declare("k", registry.Spec{Timeout: time.Hour}); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		err := rt.For("k").DoContext(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		if d := time.Since(start); d != time.Hour || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the call ended with %v after %v, want its timeout after an hour", err, d)
		}
	})
	if d := time.Since(before); d > time.Minute {
		t.Errorf("an hour in the bubble took %v outside", d)
	}
}

func TestEventsInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := New(t)
		if got := rt.Events(); len(got) != 0 {
			t.Errorf("a fresh runtime has events: %v", got)
		}
		rt.Refuse("k", guard.ReasonOverload)
		for range 3 {
			rt.Do("k", func() error { return nil })
		}
		<-time.After(time.Second) // of the bubble's clock
		synctest.Wait()
		if err := rt.Registry().Declare("k", registry.Spec{Limit: 7}); err != nil {
			t.Fatal(err)
		}
		got := rt.Events()
		if len(got) != 2 || got[0].Kind != guard.EventRefused || got[0].Count != 3 || got[1].Kind != guard.EventSpec || got[1].Spec.Limit != 7 {
			t.Fatalf("events are %v, want 3 refusals and then a spec", got)
		}
		got[0].Count = 99
		if again := rt.Events(); len(again) != 2 || again[0].Count != 3 {
			t.Errorf("the second look shows %v", again)
		}
	})
}

func TestEventsAfterClose(t *testing.T) {
	rt := New(t)
	rt.Refuse("k", guard.ReasonOpen)
	rt.Do("k", func() error { return nil })
	rt.Close()
	got := rt.Events()
	if len(got) != 1 || got[0].Kind != guard.EventRefused || got[0].Key != "k" || got[0].Count != 1 {
		t.Errorf("events are %v, want one refusal", got)
	}
}

func TestTooManyEventsFailTheTest(t *testing.T) {
	rt, f := newFake(t)
	rt.For("k")
	for i := range eventBuffer + 3 {
		if err := rt.Registry().Replace(map[registry.Key]registry.Spec{"k": {Limit: i + 1}}); err != nil {
			t.Fatal(err)
		}
	}
	got := rt.Events()
	wantError(t, f, "3 events were lost")
	if len(got) != eventBuffer || got[0].Spec.Limit != 4 {
		t.Errorf("%d events, the first with limit %d, want the last %d", len(got), got[0].Spec.Limit, eventBuffer)
	}
	rt.Events() // tells of each loss once
	if s := f.take(); s != "" {
		t.Errorf("the second look reports %s", s)
	}
}

func TestConcurrentUse(t *testing.T) {
	rt := New(t)
	done := make(chan struct{})
	var calls atomic.Int64
	for range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 100 {
				rt.For("k").DoContext(context.Background(), func(context.Context) error { calls.Add(1); return nil })
				rt.Refuse("k", guard.ReasonOpen)
				rt.Allow("k")
				rt.Inject("k", Latency(0))
				rt.Inject("k", nil)
				rt.Events()
				rt.Fill("k")()
			}
		}()
	}
	for range 4 {
		<-done
	}
	rt.AssertIdle()
	if calls.Load() == 0 {
		t.Error("no call ran")
	}
}
