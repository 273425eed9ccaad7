package guard_test

import (
	"context"
	"testing"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

func TestCallInfoTravelsWithTheContext(t *testing.T) {
	check := func(what string, ctx context.Context, c registry.Criticality, caller string, attempt int) {
		t.Helper()
		if guard.CriticalityFrom(ctx) != c || guard.CallerFrom(ctx) != caller || guard.AttemptFrom(ctx) != attempt {
			t.Errorf("%s: %v, %q, %d; want %v, %q, %d", what,
				guard.CriticalityFrom(ctx), guard.CallerFrom(ctx), guard.AttemptFrom(ctx), c, caller, attempt)
		}
	}
	bg := context.Background()
	check("nothing set", bg, registry.CriticalityUnset, "", 0)
	check("nil", nil, registry.CriticalityUnset, "", 0)
	one := guard.WithCriticality(bg, registry.Sheddable)
	check("criticality", one, registry.Sheddable, "", 0)
	two := guard.WithCaller(one, "alice")
	check("and caller", two, registry.Sheddable, "alice", 0)
	three := guard.WithAttempt(two, 2)
	check("and attempt", three, registry.Sheddable, "alice", 2)
	check("the earlier ones stay", one, registry.Sheddable, "", 0)
	check("changed below", guard.WithCriticality(three, registry.CriticalPlus), registry.CriticalPlus, "alice", 2)
	check("no level", guard.WithCriticality(three, 9), registry.Sheddable, "alice", 2)
	check("unset again", guard.WithCriticality(three, registry.CriticalityUnset), registry.CriticalityUnset, "alice", 2)
	check("a number below 0", guard.WithAttempt(three, -1), registry.Sheddable, "alice", 0)
	check("nil parent", guard.WithCaller(nil, "bob"), registry.CriticalityUnset, "bob", 0)         //nolint:staticcheck // that is the point
	check("nil parent", guard.WithAttempt(nil, 1), registry.CriticalityUnset, "", 1)               //nolint:staticcheck // that is the point
	check("nil parent", guard.WithCriticality(nil, registry.Sheddable), registry.Sheddable, "", 0) //nolint:staticcheck // that is the point
	check("nil parent, no level", guard.WithCriticality(nil, 9), registry.CriticalityUnset, "", 0) //nolint:staticcheck // that is the point
	check("through other values", context.WithValue(three, struct{ k int }{}, 1), registry.Sheddable, "alice", 2)
	// It reaches the function, with the timeout's context too.
	rt := newRuntime(t)
	for _, path := range paths {
		g := declared(t, rt, registry.Key(path.name), path.spec)
		for _, way := range contextOf {
			if err := way.of(three, g, func(ctx context.Context) { check(way.name, ctx, registry.Sheddable, "alice", 2) }); err != nil {
				t.Error(err)
			}
		}
	}
}

// lookups counts how often a value of the context is asked for.
type lookups struct {
	context.Context
	n int
}

func (l *lookups) Value(key any) any {
	l.n++
	return l.Context.Value(key)
}

// All three are one value, and it is read at most once a call, and only by a call that may wait.
func TestCallInfoIsReadAtMostOnce(t *testing.T) {
	rt := newRuntime(t)
	for _, path := range paths {
		g := declared(t, rt, registry.Key(path.name), path.spec)
		for _, way := range contextOf {
			if path.spec.Timeout > 0 {
				continue // package context asks the parent for its own purposes
			}
			ctx := &lookups{Context: guard.WithCaller(guard.WithCriticality(context.Background(), registry.Sheddable), "alice")}
			if err := way.of(ctx, g, func(context.Context) {}); err != nil {
				t.Error(err)
			}
			most := 0
			if path.spec.Wait > 0 {
				most = 1
			}
			if ctx.n > most {
				t.Errorf("%s of %q asks the context %d times, want at most %d", way.name, path.name, ctx.n, most)
			}
		}
	}
}
