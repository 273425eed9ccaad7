package watchdog

import (
	"context"
	"reflect"
	"runtime"
)

// Run calls fn. Between Mark.Enter and Mark.Leave it puts a frame on the stack that is there only while the mark is: a goroutine that
// merely inherited the mark's label does not have it.
//
//go:noinline
func Run(fn func() error) error { return fn() }

// RunContext is Run for a function that takes a context.
//
//go:noinline
func RunContext(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }

var runNames = [2]string{nameOf(Run), nameOf(RunContext)}

func nameOf(fn any) string { return runtime.FuncForPC(reflect.ValueOf(fn).Pointer()).Name() }
