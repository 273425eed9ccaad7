package guard_test

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// ways are all the ways to run a function under a guard.
var ways = []struct {
	name string
	do   func(g *guard.Guard, fn func() error) error
}{
	{"Do", func(g *guard.Guard, fn func() error) error { return g.Do(fn) }},
	{"DoContext", func(g *guard.Guard, fn func() error) error {
		return g.DoContext(context.Background(), func(context.Context) error { return fn() })
	}},
	{"DoContext without context", func(g *guard.Guard, fn func() error) error {
		return g.DoContext(nil, func(ctx context.Context) error { //nolint:staticcheck // that is the point
			if ctx == nil {
				panic("fn got a nil context")
			}
			return fn()
		})
	}},
	{"CallWith", func(g *guard.Guard, fn func() error) error {
		_, err := guard.CallWith(context.Background(), g, func(context.Context) (int, error) { return 1, fn() })
		return err
	}},
	{"CallOrWith", func(g *guard.Guard, fn func() error) error {
		_, err := guard.CallOrWith(context.Background(), g, func(context.Context) (int, error) { return 1, fn() },
			func(_ context.Context, err error) (int, error) { return 2, err })
		return err
	}},
	{"Enter", func(g *guard.Guard, fn func() error) error { return throughPass(g.Enter, fn) }},
	{"Enter without context", func(g *guard.Guard, fn func() error) error {
		return throughPass(func(context.Context) (guard.Pass, error) { return g.Enter(nil) }, fn) //nolint:staticcheck // that is the point
	}},
	{"EnterN", func(g *guard.Guard, fn func() error) error {
		return throughPass(func(ctx context.Context) (guard.Pass, error) { return g.EnterN(ctx, 1) }, fn)
	}},
	{"EnterScoped", func(g *guard.Guard, fn func() error) error { return throughPass(g.EnterScoped, fn) }},
}

func throughPass(enter func(context.Context) (guard.Pass, error), fn func() error) error {
	pass, err := enter(context.Background())
	if err != nil {
		return err
	}
	defer pass.Exit()
	if pass.Context() == nil {
		panic("a pass without a context")
	}
	err = fn()
	pass.Record(err)
	return err
}

// specs are keys that take every path: straight to the bulkhead, through all stages, with a shared bound, and with a waiting room.
var paths = []struct {
	name string
	spec registry.Spec
}{
	{"direct", registry.Spec{Limit: 3}},
	{"timeout", registry.Spec{Limit: 3, Timeout: 1 << 40}},
	{"floor", registry.Spec{Limit: 3, Floor: 1e6}},
	{"group", registry.Spec{Limit: 3, Group: "g"}},
	{"wait", registry.Spec{Limit: 3, Wait: 1e9}},
	{"all", registry.Spec{Limit: 3, Timeout: 1 << 40, Floor: 1e6, Group: "h", Wait: 1e9}},
}

// eachWay runs a test for all ways and paths, each with a fresh runtime.
func eachWay(t *testing.T, test func(t *testing.T, g *guard.Guard, do func(fn func() error) error)) {
	t.Helper()
	for _, path := range paths {
		for _, way := range ways {
			t.Run(path.name+"/"+way.name, func(t *testing.T) {
				g := declared(t, newRuntime(t), "shop.Store.Get", path.spec)
				test(t, g, func(fn func() error) error { return way.do(g, fn) })
			})
		}
	}
}

func TestErrorComesBackUntouched(t *testing.T) {
	eachWay(t, func(t *testing.T, g *guard.Guard, do func(func() error) error) {
		t.Helper()
		for range 10 {
			if err := do(nothing); err != nil {
				t.Fatal(err)
			}
			if err := do(func() error { return errWork }); err != errWork { //nolint:errorlint // the same one, not one that wraps it
				t.Fatalf("got %v, want the very error of the function", err)
			}
		}
		s := g.Snapshot()
		if s.Admitted != 20 || s.Failed != 10 || s.Unrecorded != 0 || len(s.Refused) != 0 {
			t.Errorf("admitted %d, failed %d, unrecorded %d, refused %v; want 20, 10, 0, none", s.Admitted, s.Failed, s.Unrecorded, s.Refused)
		}
		wantIdle(t, g)
	})
}

func explode(v any) error { panic(v) }

func TestPanicKeepsItsStack(t *testing.T) {
	eachWay(t, func(t *testing.T, g *guard.Guard, do func(func() error) error) {
		t.Helper()
		value := &struct{ n int }{7}
		for range 10 {
			stack := func() (stack string) {
				defer func() {
					if got := recover(); got != value {
						t.Errorf("recovered %v, want the very value of the panic", got)
					}
					stack = string(debug.Stack())
				}()
				_ = do(func() error { return explode(value) })
				t.Error("the panic was swallowed")
				return ""
			}()
			if !strings.Contains(stack, "guard_test.explode") || strings.Count(stack, "panic(") != 1 {
				t.Fatalf("the stack does not lead to the function that panicked:\n%s", stack)
			}
		}
		s := g.Snapshot()
		if s.Admitted != 10 || s.Failed != 0 || s.Unrecorded != 10 {
			t.Errorf("admitted %d, failed %d, unrecorded %d; want 10, 0, 10", s.Admitted, s.Failed, s.Unrecorded)
		}
		wantIdle(t, g)
	})
}

func TestGoexitGivesThePlaceBack(t *testing.T) {
	eachWay(t, func(t *testing.T, g *guard.Guard, do func(func() error) error) {
		t.Helper()
		for range 10 {
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = do(func() error { runtime.Goexit(); return nil })
				t.Error("the call returned after Goexit")
			}()
			<-done
		}
		if s := g.Snapshot(); s.Admitted != 10 || s.Unrecorded != 10 {
			t.Errorf("admitted %d, unrecorded %d; want 10, 10", s.Admitted, s.Unrecorded)
		}
		wantIdle(t, g)
	})
}

func TestFullKeyRefusesAndRunsNothing(t *testing.T) {
	eachWay(t, func(t *testing.T, g *guard.Guard, do func(func() error) error) {
		t.Helper()
		if g.Snapshot().Spec.Wait > 0 {
			t.Skip("waits instead: see the tests of waiting")
		}
		var holders []*blocked
		for range 3 {
			holders = append(holders, block(do))
		}
		for range 10 {
			err := do(func() error { t.Error("a refused call ran"); return nil })
			wantReason(t, err, guard.ReasonFull)
		}
		for _, h := range holders {
			if err := h.end(); err != nil {
				t.Error(err)
			}
		}
		if err := do(nothing); err != nil {
			t.Errorf("after all have left: %v", err)
		}
		if s := g.Snapshot(); s.Admitted != 4 || s.Refused[guard.ReasonFull] != 10 {
			t.Errorf("admitted %d, refused %v; want 4, full 10", s.Admitted, s.Refused)
		}
		wantIdle(t, g)
	})
}

// A call of the same key further down the same call passes through: taking a place, it could wait for itself.
func TestNestedCallPassesThrough(t *testing.T) {
	eachWay(t, func(t *testing.T, g *guard.Guard, do func(func() error) error) {
		t.Helper()
		if strings.Contains(t.Name(), "Enter") && !strings.Contains(t.Name(), "EnterScoped") {
			t.Skip("these take a place of their own")
		}
		var others []*blocked
		for range 2 {
			others = append(others, block(do))
		}
		depth := 0
		var down func() error
		down = func() error {
			if depth++; depth == 5 {
				return errWork
			}
			return do(down)
		}
		if err := do(down); err != errWork { //nolint:errorlint // untouched
			t.Errorf("got %v, want the innermost error", err)
		}
		for _, o := range others {
			_ = o.end()
		}
		if s := g.Snapshot(); s.Admitted != 3 || s.Nested != 4 || s.Failed != 1 {
			t.Errorf("admitted %d, nested %d, failed %d; want 3, 4, 1", s.Admitted, s.Nested, s.Failed)
		}
		wantIdle(t, g)
	})
}

// Enter takes a place of its own even inside a call, since its pass may outlive it.
func TestEnterInsideACallTakesAPlace(t *testing.T) {
	g := declared(t, newRuntime(t), "k", registry.Spec{Limit: 2})
	err := g.Do(func() error {
		pass, err := g.Enter(context.Background())
		if err != nil {
			return err
		}
		defer pass.Exit()
		if n := g.Snapshot().Bulkhead.InFlight; n != 2 {
			t.Errorf("%d in flight, want 2", n)
		}
		_, err = g.Enter(context.Background())
		wantReason(t, err, guard.ReasonFull)
		return g.Do(nothing) // nested in the outer Do
	})
	if err != nil {
		t.Error(err)
	}
	wantIdle(t, g)
}

func TestCallReturnsResultsAsTheyCame(t *testing.T) {
	g := declared(t, newRuntime(t), "k", registry.Spec{Limit: 1})
	ctx := context.Background()
	v, err := guard.CallWith(ctx, g, func(context.Context) (string, error) { return "half an answer", errWork })
	if v != "half an answer" || err != errWork { //nolint:errorlint // untouched
		t.Errorf("got %q, %v; want what the function returned", v, err)
	}
	h := block(g.Do)
	v, err = guard.CallWith(ctx, g, func(context.Context) (string, error) { return "ran", nil })
	if v != "" {
		t.Errorf("a refused call returned %q", v)
	}
	wantReason(t, err, guard.ReasonFull)
	_ = h.end()
}

func TestFallbacksAreCountedByWhatTheyFollow(t *testing.T) {
	injector := &script{}
	rt := newRuntime(t, guard.WithInjector(injector))
	g := declared(t, rt, "k", registry.Spec{Limit: 1})
	inner := declared(t, rt, "inner", registry.Spec{Limit: 1})
	type key struct{}
	ctx := context.WithValue(context.Background(), key{}, "caller's")
	call := func(fn func(context.Context) (int, error)) (int, error) {
		return guard.CallOrWith(ctx, g, fn, func(got context.Context, err error) (int, error) {
			if got != ctx {
				t.Error("the fallback did not get the caller's context")
			}
			if err == nil {
				t.Error("the fallback got no error")
			}
			return -1, err
		})
	}
	check := func(what string, refused, failed uint64) {
		t.Helper()
		if s := g.Snapshot(); s.FallbackRefused != refused || s.FallbackFailed != failed {
			t.Errorf("%s: fallbacks after refusals %d, after failures %d; want %d, %d", what, s.FallbackRefused, s.FallbackFailed, refused, failed)
		}
	}
	if v, err := call(func(context.Context) (int, error) { return 1, nil }); v != 1 || err != nil {
		t.Errorf("got %d, %v", v, err)
	}
	check("success", 0, 0)
	if v, err := call(func(context.Context) (int, error) { return 1, errWork }); v != -1 || err != errWork { //nolint:errorlint // untouched
		t.Errorf("got %d, %v", v, err)
	}
	check("failure", 0, 1)
	h := block(g.Do)
	_, err := call(func(context.Context) (int, error) { return 1, nil })
	wantReason(t, err, guard.ReasonFull)
	_ = h.end()
	check("refusal", 1, 1)
	// The function ran and passed on another guard's refusal: that is a failure of this call.
	h = block(inner.Do)
	_, err = call(func(context.Context) (int, error) { return 0, inner.Do(nothing) })
	wantReason(t, err, guard.ReasonFull)
	_ = h.end()
	check("refusal of an inner guard", 1, 2)
	injector.inject = errWork
	if _, err := call(func(context.Context) (int, error) { t.Error("ran"); return 0, nil }); !errors.Is(err, errWork) {
		t.Errorf("got %v, want the injected error", err)
	}
	check("injected failure", 1, 3)
}

// The functions of the package are those of the default runtime.
func TestPackageFunctionsUseTheDefaultRuntime(t *testing.T) {
	const key = "guard_test.Default.Key"
	ctx := context.Background()
	before := guard.For(key).Snapshot() // the test may run more than once
	if err := guard.Do(key, nothing); err != nil {
		t.Error(err)
	}
	if err := guard.DoContext(ctx, key, func(context.Context) error { return errWork }); err != errWork { //nolint:errorlint // untouched
		t.Error(err)
	}
	if v, err := guard.Call(ctx, key, func(context.Context) (int, error) { return 3, nil }); v != 3 || err != nil {
		t.Error(v, err)
	}
	v, err := guard.CallOr(ctx, key, func(context.Context) (int, error) { return 3, errWork },
		func(context.Context, error) (int, error) { return 4, nil })
	if v != 4 || err != nil {
		t.Error(v, err)
	}
	pass, err := guard.Enter(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	if guard.For(key) != guard.Default().For(key) {
		t.Error("For is not the default runtime's")
	}
	if n := guard.For(key).Snapshot().Bulkhead.InFlight; n != 1 {
		t.Errorf("%d in flight, want 1", n)
	}
	pass.Exit()
	s := guard.For(key).Snapshot()
	if s.Admitted-before.Admitted != 5 || s.Failed-before.Failed != 2 || s.Unrecorded-before.Unrecorded != 1 || s.FallbackFailed-before.FallbackFailed != 1 {
		t.Errorf("admitted %d, failed %d, unrecorded %d, fallbacks %d; before %d, %d, %d, %d; want 5, 2, 1, 1 more",
			s.Admitted, s.Failed, s.Unrecorded, s.FallbackFailed, before.Admitted, before.Failed, before.Unrecorded, before.FallbackFailed)
	}
}

func TestRuntimeMethodsAreThoseOfTheGuard(t *testing.T) {
	rt := newRuntime(t)
	if err := rt.Do("k", func() error { return errWork }); err != errWork { //nolint:errorlint // untouched
		t.Error(err)
	}
	if err := rt.DoContext(context.Background(), "k", func(context.Context) error { return errWork }); err != errWork { //nolint:errorlint // untouched
		t.Error(err)
	}
	if s := rt.For("k").Snapshot(); s.Admitted != 2 || s.Failed != 2 {
		t.Errorf("admitted %d, failed %d; want 2, 2", s.Admitted, s.Failed)
	}
}
