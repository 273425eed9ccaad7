package guard

import (
	"context"

	"github.com/spillway-go/spillway/registry"
)

// Do runs fn under the key's guard in the default runtime. See Guard.Do.
func Do(key registry.Key, fn func() error) error { return For(key).Do(fn) }

// DoContext runs fn under the key's guard in the default runtime. See Guard.DoContext.
func DoContext(ctx context.Context, key registry.Key, fn func(context.Context) error) error {
	return For(key).DoContext(ctx, fn)
}

// Call is DoContext for a function with a result, in the default runtime. On a refusal the result is the zero value.
func Call[T any](ctx context.Context, key registry.Key, fn func(context.Context) (T, error)) (T, error) {
	return CallWith(ctx, For(key), fn)
}

// CallOr is Call with a fallback for when the call was refused or failed: it gets the caller's context and the error, and its
// answer is the answer. It runs outside of the guard. A panic of fn goes on up without it.
func CallOr[T any](ctx context.Context, key registry.Key, fn func(context.Context) (T, error),
	fallback func(context.Context, error) (T, error),
) (T, error) {
	return CallOrWith(ctx, For(key), fn, fallback)
}

// CallWith is Call on a guard that the caller holds.
func CallWith[T any](ctx context.Context, g *Guard, fn func(context.Context) (T, error)) (T, error) {
	var v T
	err := g.DoContext(ctx, func(ctx context.Context) (err error) {
		v, err = fn(ctx)
		return err
	})
	return v, err
}

// CallOrWith is CallOr on a guard that the caller holds.
func CallOrWith[T any](ctx context.Context, g *Guard, fn func(context.Context) (T, error),
	fallback func(context.Context, error) (T, error),
) (T, error) {
	ran := false
	v, err := CallWith(ctx, g, func(ctx context.Context) (T, error) {
		ran = true
		return fn(ctx)
	})
	if err == nil {
		return v, nil
	}
	if _, refused := err.(*Rejection); refused && !ran { //nolint:errorlint // one that is wrapped is an injector's
		g.shed.Add(1)
	} else {
		g.mended.Add(1)
	}
	return fallback(ctx, err)
}
