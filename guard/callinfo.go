package guard

import (
	"context"

	"github.com/spillway-go/spillway/registry"
)

// callInfo is all that travels with a call, one value under one context key: it is read at most once a call, and only
// when a stage needs it.
type callInfo struct {
	caller      string
	attempt     int
	criticality registry.Criticality
}

type callInfoKey struct{}

// with returns a context that carries info. A nil parent counts as context.Background.
func with(parent context.Context, info callInfo) context.Context {
	if parent == nil {
		parent = context.Background()
	}
	return context.WithValue(parent, callInfoKey{}, info)
}

func infoFrom(ctx context.Context) callInfo {
	if ctx == nil {
		return callInfo{}
	}
	info, _ := ctx.Value(callInfoKey{}).(callInfo)
	return info
}

// WithCriticality says how important the calls under this context are. When places are scarce the more important
// go first. A value that is not a level is ignored.
func WithCriticality(ctx context.Context, c registry.Criticality) context.Context {
	info := infoFrom(ctx)
	if c <= registry.Sheddable {
		info.criticality = c
	}
	return with(ctx, info)
}

// CriticalityFrom is the level that WithCriticality set, or registry.CriticalityUnset.
func CriticalityFrom(ctx context.Context) registry.Criticality { return infoFrom(ctx).criticality }

// WithCaller names the user or service on whose behalf the calls under this context are made.
func WithCaller(ctx context.Context, caller string) context.Context {
	info := infoFrom(ctx)
	info.caller = caller
	return with(ctx, info)
}

// CallerFrom is the name that WithCaller set, or "".
func CallerFrom(ctx context.Context) string { return infoFrom(ctx).caller }

// WithAttempt numbers the tries of one call: 1 is the first, 2 the first retry. Numbers below 0 count as 0, unknown.
func WithAttempt(ctx context.Context, n int) context.Context {
	info := infoFrom(ctx)
	info.attempt = max(0, n)
	return with(ctx, info)
}

// AttemptFrom is the number that WithAttempt set, or 0.
func AttemptFrom(ctx context.Context) int { return infoFrom(ctx).attempt }
