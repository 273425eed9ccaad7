package guard_test

import (
	"context"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// wantNoAllocs checks that f, called a thousand times, allocates nothing.
func wantNoAllocs(t *testing.T, what string, f func()) {
	t.Helper()
	if n := testing.AllocsPerRun(1000, f); n != 0 {
		t.Errorf("%s: %v allocations a call", what, n)
	}
}

func TestCallsAllocateNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	rt := newRuntime(t)
	g := declared(t, rt, "shop.Store.Get", registry.Spec{Limit: 4})
	waits := declared(t, rt, "waits", registry.Spec{Limit: 4, Wait: 1e9})
	ctx := context.Background()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	n := 0 // what the functions close over
	parts := []string{"shop", "Store", "Get"}
	built := registry.Key(strings.Join(parts, "."))                // another address than the constant's
	withContext := func(context.Context) error { n++; return nil } //nolint:unparam // what DoContext takes
	calls := []struct {
		name string
		call func()
	}{
		{"g.Do", func() { _ = g.Do(func() error { n++; return nil }) }},
		{"Do by a constant key", func() { _ = rt.Do("shop.Store.Get", func() error { n++; return nil }) }},
		{"Do by a built key", func() { _ = rt.Do(built, func() error { n++; return nil }) }},
		{"Do by one and the other", func() {
			_ = rt.Do(built, func() error { n++; return nil })
			_ = rt.Do("shop.Store.Get", func() error { n++; return nil })
		}},
		{"guard.Do", func() { _ = guard.Do("guard_test.allocs", func() error { n++; return nil }) }},
		{"g.DoContext", func() { _ = g.DoContext(ctx, withContext) }},
		{"DoContext by key", func() { _ = rt.DoContext(ctx, "shop.Store.Get", withContext) }},
		{"CallWith", func() {
			_, _ = guard.CallWith(ctx, g, func(context.Context) (int, error) { n++; return n, nil })
		}},
		{"CallOrWith", func() {
			_, _ = guard.CallOrWith(ctx, g, func(context.Context) (int, error) { n++; return n, nil },
				func(context.Context, error) (int, error) { n++; return n, nil })
		}},
		{"EnterScoped", func() {
			pass, _ := g.EnterScoped(ctx)
			defer pass.Exit()
			pass.Record(nil)
		}},
		{"Enter", func() {
			pass, _ := g.Enter(ctx)
			defer pass.Exit()
			pass.Record(nil)
		}},
		{"a failing call", func() { _ = g.Do(func() error { return errWork }) }},
		{"a nested call", func() { _ = g.Do(func() error { return g.Do(func() error { n++; return nil }) }) }},
		{"a key that waits, with room", func() { _ = waits.Do(func() error { n++; return nil }) }},
		{"an ended context", func() { _ = g.DoContext(ended, withContext) }},
	}
	for _, c := range calls {
		wantNoAllocs(t, c.name, c.call)
	}
}

func TestRefusalsAllocateNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	rt := newRuntime(t)
	g := declared(t, rt, "shop.Store.Get", registry.Spec{Limit: 1})
	h := block(g.Do)
	ctx := context.Background()
	wantFull := func(err error) {
		if err == nil {
			t.Error("a call went in")
		}
	}
	refusals := []struct {
		name string
		call func()
	}{
		{"g.Do", func() { wantFull(g.Do(nothing)) }},
		{"by key", func() { wantFull(rt.Do("shop.Store.Get", nothing)) }},
		{"DoContext", func() { wantFull(g.DoContext(ctx, func(context.Context) error { return nil })) }},
		{"CallWith", func() {
			_, err := guard.CallWith(ctx, g, func(context.Context) (int, error) { return 0, nil })
			wantFull(err)
		}},
		{"Enter", func() {
			_, err := g.Enter(ctx)
			wantFull(err)
		}},
		{"EnterN", func() {
			_, err := g.EnterN(ctx, 2)
			wantFull(err)
		}},
		{"too heavy", func() {
			_, err := g.EnterN(ctx, 5)
			wantFull(err)
		}},
		{"EnterScoped", func() {
			_, err := g.EnterScoped(ctx)
			wantFull(err)
		}},
	}
	for _, c := range refusals {
		wantNoAllocs(t, c.name, c.call)
	}
	_ = h.end()
	_ = rt.Close()
	wantNoAllocs(t, "a closed runtime", func() { wantFull(g.Do(nothing)) })
}

// A key with a timeout pays for its context, and only where a function can see it.
func TestOnlyTheTimeoutsContextAllocates(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	rt := newRuntime(t)
	ctx := context.Background()
	timed := declared(t, rt, "timed", registry.Spec{Limit: 4, Timeout: 1e9})
	wantNoAllocs(t, "Do of a key with a timeout", func() { _ = timed.Do(nothing) })
	floor := declared(t, rt, "floor", registry.Spec{Limit: 4, Floor: 1e6})
	wantNoAllocs(t, "a floor", func() { _ = floor.DoContext(ctx, func(context.Context) error { return nil }) })
	shared := declared(t, rt, "shared", registry.Spec{Limit: 4, Group: "g"})
	wantNoAllocs(t, "a group", func() { _ = shared.Do(nothing) })
	wantNoAllocs(t, "Enter of a group", func() {
		pass, _ := shared.Enter(ctx)
		pass.Exit()
	})
}
