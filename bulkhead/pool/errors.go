package pool

import (
	"errors"
	"fmt"

	"github.com/spillway-go/spillway/guard"
)

// What Go returns, and tasks end with, when a function was not run for the pool's sake. Like the guard's rejections both are
// guard.ErrRejected.
var (
	// ErrFull means that Size tasks ran and Queue tasks waited.
	ErrFull error = refusal("pool: all goroutines are busy and the queue is full")
	// ErrClosed means that the pool was closed before the task began.
	ErrClosed error = refusal("pool: closed")
)

// ErrGoexit is the error of a task whose function ended its goroutine, with runtime.Goexit or what calls it, such as testing's FailNow.
var ErrGoexit = errors.New("pool: the task ended its goroutine with runtime.Goexit")

type refusal string

func (r refusal) Error() string { return string(r) }

// Is reports that a refusal is one, however it is spelled.
func (r refusal) Is(target error) bool { return target == guard.ErrRejected }

// PanicError is the error of a task that panicked.
type PanicError struct {
	Value any    // what panic was called with
	Stack []byte // of the task's goroutine, as in a traceback, ending where the task was begun
}

// Error has the value but not the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("pool: the task panicked: %v", e.Value) }

// Unwrap is the value, if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
