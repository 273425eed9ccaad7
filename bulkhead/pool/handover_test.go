package pool_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/bulkhead/pool"
	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// A late task is told with the stack of the goroutine that runs it.
func TestStackOfALateTask(t *testing.T) {
	rt := newRuntime(t)
	p, g := newPool(t, pool.Config{}), declared(t, rt, "late", registry.Spec{Limit: 4, Slow: 10 * time.Millisecond})
	events := rt.Subscribe(100)
	defer events.Close()
	release := make(chan struct{})
	task := begin(t, p, g, func(context.Context) error { hang(release); return nil })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		e, err := events.Next(ctx)
		if err != nil {
			t.Fatalf("nobody tells of the late task: %v", err)
		}
		if e.Kind != guard.EventSlow {
			continue
		}
		if !strings.Contains(strings.Join(e.Report.Stack, "\n"), "pool_test.hang") {
			t.Errorf("the stack is %q, %v", e.Report.Stack, e.Report.NoStack)
		}
		break
	}
	close(release)
	wantErr(t, task, nil)
}

//go:noinline
func hang(release chan struct{}) { <-release }

// A call of the same key inside a task passes through.
func TestCallInsideATask(t *testing.T) {
	p, g := newPool(t, pool.Config{}), declared(t, newRuntime(t), "a", registry.Spec{Limit: 1, Expand: 1})
	wantErr(t, begin(t, p, g, func(ctx context.Context) error {
		if err := g.DoContext(ctx, func(context.Context) error { return errOwn }); !errors.Is(err, errOwn) {
			return err
		}
		return nil
	}), nil)
	if s := g.Snapshot(); s.Nested != 1 || s.Admitted != 1 || s.Bulkhead.InFlight != 0 {
		t.Errorf("%+v", s)
	}
}
