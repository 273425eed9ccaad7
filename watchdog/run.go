package watchdog

import (
	"context"
	"reflect"
	"runtime"
)

// Run calls fn as the call that holds the place, on the goroutine whose number it gets, and returns fn's error. The goroutine is marked
// meanwhile; the user's labels stay visible beside the mark. The pair of both is made anew (150 ns, one allocation) only when the labels are not
// those of the place's last labelled call. A panic goes on up with its own stack.
func (m *Mark) Run(goroutine uint64, fn func() error) error {
	if m == nil {
		return fn()
	}
	before := m.enter(goroutine)
	defer m.leave(before)
	return run(fn)
}

// RunContext is Run for a function that takes a context.
func (m *Mark) RunContext(ctx context.Context, goroutine uint64, fn func(context.Context) error) error {
	if m == nil {
		return fn(ctx)
	}
	before := m.enter(goroutine)
	defer m.leave(before)
	return runContext(ctx, fn)
}

// run and runContext put a frame on the stack that is there only while the goroutine is in a call that it entered: one that merely inherited
// the label does not have it. Nothing else may call them.
//
//go:noinline
func run(fn func() error) error { return fn() }

//go:noinline
func runContext(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }

var runNames = [2]string{nameOf(run), nameOf(runContext)}

func nameOf(fn any) string { return runtime.FuncForPC(reflect.ValueOf(fn).Pointer()).Name() }
