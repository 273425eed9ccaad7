package pool

import (
	"context"
	"runtime/pprof"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// Task is a call that was accepted. Any number of goroutines may use it at the same time; nobody has to.
type Task struct {
	done chan struct{}
	err  error // written before done is closed

	// The rest belongs to whoever holds the task: Go, the queue, and then the goroutine that runs it, which lets go of it.
	pool *Pool
	key  registry.Key
	fn   func(context.Context) error
	pass guard.Pass
	next *Task // in the queue
}

// Wait returns the task's error once it has ended, or that of ctx if this ends first. Leaving changes nothing about the task, which keeps
// its place until its function has returned: to end it, end the context that Go got. A nil ctx does not end.
func (t *Task) Wait(ctx context.Context) error {
	var left <-chan struct{}
	if ctx != nil {
		left = ctx.Done()
	}
	select {
	case <-t.done:
		return t.err
	case <-left:
	}
	select {
	case <-t.done: // both at once: the result counts
		return t.err
	default:
		return ctx.Err()
	}
}

// Done is closed when the task has ended and its place is free again.
func (t *Task) Done() <-chan struct{} { return t.done }

// Err is nil until Done is closed, and then the task's error: that of its function, untouched; *PanicError; ErrGoexit; or, of a
// task that did not begin, ErrClosed or the error of its context.
func (t *Task) Err() error {
	select {
	case <-t.done:
		return t.err
	default:
		return nil
	}
}

// call runs the function unless it is too late for it.
func (t *Task) call() error {
	ctx := t.pass.Context()
	if err := ctx.Err(); err != nil {
		return err
	}
	if t.pool.isClosed() {
		return ErrClosed
	}
	// The goroutine wears what its last task left, or whoever started it.
	pprof.SetGoroutineLabels(ctx)
	return t.pass.Run(t.fn)
}

// end gives the place back, but does not tell the waiters yet.
func (t *Task) end() {
	t.pass.Exit()
	t.pass, t.fn, t.pool = guard.Pass{}, nil, nil // for a task that is kept long
}

// settle tells the waiters.
func (t *Task) settle(err error) {
	t.err = err
	close(t.done)
}
