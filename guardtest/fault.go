package guardtest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// Refuse makes every later call of a key be refused for a reason, until Allow. The refusal is counted like a true one.
func (rt *Runtime) Refuse(key registry.Key, reason guard.Reason) {
	rt.tb.Helper()
	if !rt.valid("Refuse", key) {
		return
	}
	if !slices.Contains(guard.Reasons(), reason) {
		rt.tb.Errorf("guardtest: Refuse: reason %d of key %s must be one of guard.Reasons()", reason, key)
		return
	}
	rt.faults.setReason(key, reason)
}

// Allow takes a Refuse back.
func (rt *Runtime) Allow(key registry.Key) { rt.faults.setReason(key, guard.ReasonNone) }

// Inject makes fn run before every later call of a key, on the call's goroutine and with its place held. An error of fn is
// the call's own: what was to be called is not run, and the failure counts. fn should return when its context is done,
// which is context.Background() for calls without one. Nil takes an Inject back. See Latency and Fail.
func (rt *Runtime) Inject(key registry.Key, fn func(context.Context) error) {
	rt.tb.Helper()
	if rt.valid("Inject", key) {
		rt.faults.setInject(key, fn)
	}
}

// valid catches the key that no call can have.
func (rt *Runtime) valid(method string, key registry.Key) bool {
	rt.tb.Helper()
	if err := key.Validate(); err != nil {
		rt.tb.Errorf("guardtest: %s: %v", method, err)
		return false
	}
	return true
}

// Latency is a function for Inject that takes d, or fails with the error of the context when that is done first.
func Latency(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Fail is a function for Inject that fails with err.
func Fail(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}

// faults is the guard.Injector.
type faults struct {
	mu      sync.RWMutex // guards the maps; nobody's function is called under it
	reasons map[registry.Key]guard.Reason
	injects map[registry.Key]func(context.Context) error
}

// filling marks the context of calls that Fill makes, which no fault may touch.
type filling struct{}

func (f *faults) Refuse(ctx context.Context, key registry.Key) guard.Reason {
	if ctx != nil && ctx.Value(filling{}) != nil {
		return guard.ReasonNone
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.reasons[key]
}

func (f *faults) Inject(ctx context.Context, key registry.Key) error {
	if ctx != nil && ctx.Value(filling{}) != nil {
		return nil
	}
	f.mu.RLock()
	fn := f.injects[key]
	f.mu.RUnlock()
	if fn == nil {
		return nil
	}
	return fn(ctx)
}

func (f *faults) setReason(key registry.Key, reason guard.Reason) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reasons == nil {
		f.reasons = map[registry.Key]guard.Reason{}
	}
	f.reasons[key] = reason
}

func (f *faults) setInject(key registry.Key, fn func(context.Context) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.injects == nil {
		f.injects = map[registry.Key]func(context.Context) error{}
	}
	f.injects[key] = fn
}
