package guard_test

import (
	"errors"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(closingDefault{m}) }

// closingDefault runs the tests and ends the default runtime, which in a program lives as long as the process.
type closingDefault struct{ m *testing.M }

func (c closingDefault) Run() int {
	code := c.m.Run()
	_ = guard.Default().Close()
	return code
}

// newRuntime returns a silent runtime that ends with the test.
func newRuntime(t *testing.T, opts ...guard.Option) *guard.Runtime {
	t.Helper()
	rt, err := guard.NewRuntime(nil, append([]guard.Option{guard.WithLogger(zerolog.Nop()), guard.WithPressure(nil), guard.WithoutWatchdog()}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close() })
	return rt
}

// declared returns the guard of a key with a spec of its own.
func declared(t *testing.T, rt *guard.Runtime, key registry.Key, s registry.Spec) *guard.Guard {
	t.Helper()
	replace(t, rt, map[registry.Key]registry.Spec{key: s})
	return rt.For(key)
}

func replace(t *testing.T, rt *guard.Runtime, specs map[registry.Key]registry.Spec) {
	t.Helper()
	if err := rt.Registry().Replace(specs); err != nil {
		t.Fatal(err)
	}
}

// elapse lets time pass; only inside a bubble.
func elapse(d time.Duration) { <-time.After(d) }

// wantReason checks that err is a refusal for a reason.
func wantReason(t *testing.T, err error, want guard.Reason) {
	t.Helper()
	_ = rejectionOf(t, err, want)
}

// rejectionOf checks that err is a refusal for a reason, and returns it.
func rejectionOf(t *testing.T, err error, want guard.Reason) *guard.Rejection {
	t.Helper()
	var r *guard.Rejection
	if !errors.As(err, &r) {
		t.Fatalf("got %v, want a refusal as %q", err, want)
	}
	if r.Reason() != want {
		t.Fatalf("refused as %q, want %q: %v", r.Reason(), want, err)
	}
	return r
}

// wantIdle checks that nothing is in flight, detached or waiting.
func wantIdle(t *testing.T, g *guard.Guard) {
	t.Helper()
	if b := g.Snapshot().Bulkhead; b.InFlight != 0 || b.Detached != 0 || b.Waiting != 0 {
		t.Errorf("%s: %d in flight, %d detached, %d waiting; want none", g.Key(), b.InFlight, b.Detached, b.Waiting)
	}
}

var errWork = errors.New("work failed")

func nothing() error { return nil }

// blocked is a call in flight on a goroutine of its own.
type blocked struct {
	leave chan struct{}
	done  chan error
}

// block starts a call through do and returns when its function runs.
func block(do func(func() error) error) *blocked {
	b := &blocked{make(chan struct{}), make(chan error, 1)}
	in := make(chan struct{})
	go func() {
		b.done <- do(func() error {
			close(in)
			<-b.leave
			return nil
		})
	}()
	<-in
	return b
}

// end lets the call return, and waits for it.
func (b *blocked) end() error {
	close(b.leave)
	return <-b.done
}
