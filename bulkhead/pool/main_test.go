package pool_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/spillway-go/spillway/bulkhead/pool"
	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// ants has started two goroutines before main; they stay.
func TestMain(m *testing.M) { goleak.VerifyTestMain(closingDefault{m}, goleak.IgnoreCurrent()) }

// closingDefault runs the tests and closes the default pool, which in a program lives as long as the process.
type closingDefault struct{ m *testing.M }

func (c closingDefault) Run() int {
	code := c.m.Run()
	_ = pool.Default().Close(nil) //nolint:staticcheck // nil is documented
	return code
}

// newRuntime returns a silent runtime that ends with the test.
func newRuntime(t testing.TB, opts ...guard.Option) *guard.Runtime {
	t.Helper()
	rt, err := guard.NewRuntime(nil, append([]guard.Option{guard.WithLogger(zerolog.Nop()), guard.WithPressure(nil)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close() })
	return rt
}

// declared returns the guard of a key with a spec of its own.
func declared(t testing.TB, rt *guard.Runtime, key registry.Key, s registry.Spec) *guard.Guard {
	t.Helper()
	if err := rt.Registry().Declare(key, s); err != nil {
		t.Fatal(err)
	}
	return rt.For(key)
}

// wide returns the guard of a key that a pool fills before itself.
func wide(t testing.TB) *guard.Guard {
	t.Helper()
	return declared(t, newRuntime(t), "wide", registry.Spec{Limit: 1000})
}

// newPool returns a pool that ends with the test.
func newPool(t testing.TB, cfg pool.Config) *pool.Pool {
	t.Helper()
	p, err := pool.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, p) })
	return p
}

func shut(t testing.TB, p *pool.Pool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		t.Errorf("Close: %v, %+v", err, p.Snapshot())
	}
}

// begin starts a task that must be accepted.
func begin(t testing.TB, p *pool.Pool, g *guard.Guard, fn func(context.Context) error) *pool.Task {
	t.Helper()
	task, err := p.Go(context.Background(), g, fn)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// elapse lets time pass; only inside a bubble.
func elapse(d time.Duration) { <-time.After(d) }

// wantErr waits for a task and compares its error.
func wantErr(t testing.TB, task *pool.Task, want error) {
	t.Helper()
	if err := task.Wait(context.Background()); !errors.Is(err, want) {
		t.Errorf("the task ended with %v, want %v", err, want)
	}
	if err := task.Err(); !errors.Is(err, want) {
		t.Errorf("Err is %v, want %v", err, want)
	}
}

func wantReason(t testing.TB, err error, want guard.Reason) {
	t.Helper()
	var r *guard.Rejection
	if !errors.As(err, &r) || r.Reason() != want {
		t.Errorf("got %v, want a rejection for %v", err, want)
	}
}
