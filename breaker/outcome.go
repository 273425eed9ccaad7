package breaker

import (
	"context"
	"errors"
	"sync/atomic"
	"unsafe"
)

// Outcome is what a call says of the other side.
type Outcome uint8

// The outcomes.
const (
	Failure Outcome = iota // also of a call that panicked or ended its goroutine
	Success
	Ignored // says nothing: the caller gave up, or the call never reached the other side
)

// Unreached is what errors implement that mean that the other side was never asked, such as the refusals of package guard.
type Unreached interface {
	error
	Unreached() bool
}

// plainError reports whether an error is only itself, so that errors.Is would find nothing else in it. The type says so; most failures in a row
// are of one.
func plainError(err error) bool {
	table := (*[2]uintptr)(unsafe.Pointer(&err))[0] // of the type's methods
	if plainType.Load() == table {
		return true
	}
	switch any(err).(type) {
	case interface{ Unwrap() error }, interface{ Unwrap() []error }, interface{ Is(target error) bool }, interface{ As(target any) bool }, Unreached:
		return false
	}
	plainType.Store(table)
	return true
}

var plainType atomic.Uintptr

// Judge is the default meaning of an error: nil is a success; context.Canceled, and a refusal of this package or of package guard, say
// nothing; everything else is a failure, a deadline that passed included.
func Judge(err error) Outcome {
	if err == nil {
		return Success
	}
	if plainError(err) {
		if err == context.Canceled || err == ErrOpen || err == ErrThrottled { //nolint:errorlint // there is nothing else in it
			return Ignored
		}
		return Failure
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, ErrOpen) || errors.Is(err, ErrThrottled) {
		return Ignored
	}
	if u, ok := errors.AsType[Unreached](err); ok && u.Unreached() {
		return Ignored
	}
	return Failure
}
