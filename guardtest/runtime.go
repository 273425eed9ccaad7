package guardtest

import (
	"context"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/spillway-go/spillway/guard"
)

// eventBuffer is how many events may come between two calls of Events.
const eventBuffer = 1024

// Runtime is a guard.Runtime for one test. The embedded runtime is what the code under test gets. All methods are safe
// for concurrent use, and report misuse and failed assertions to the test with Errorf.
type Runtime struct {
	*guard.Runtime

	tb     testing.TB
	faults *faults

	mu     sync.Mutex // guards the rest; nothing blocks under it
	filled map[*fill]struct{}
	sub    *guard.Subscription
	events []guard.Event
	missed uint64
}

// New returns a runtime with a registry of its own, without a logger, and blind to the machine that the test runs on: no bound grows,
// unless guard.WithPressure says how the machine is. It is closed when the test ends. Options are those of
// guard.NewRuntime, but for WithInjector, which has no effect: use Refuse and Inject. Specs go into Registry(); to
// test with those of another registry copy them:
//
//	rt.Registry().Replace(maps.Collect(reg.All()))
func New(tb testing.TB, opts ...guard.Option) *Runtime {
	tb.Helper()
	rt := &Runtime{tb: tb, faults: &faults{}, filled: map[*fill]struct{}{}}
	all := append([]guard.Option{guard.WithLogger(zerolog.Nop()), guard.WithPressure(nil), guard.WithoutWatchdog()}, opts...)
	inner, err := guard.NewRuntime(nil, append(all, guard.WithInjector(rt.faults))...)
	if err != nil {
		tb.Fatalf("guardtest: New: %v", err)
		return nil
	}
	rt.Runtime = inner
	rt.sub = inner.Subscribe(eventBuffer)
	tb.Cleanup(func() {
		rt.releaseAll()
		_ = inner.Close() // it has no error to report
	})
	return rt
}

// Events returns all events so far, oldest first. Replaced specs are told of at once. Lost and evicted calls come within 250 ms,
// refusals are summed up once a second, on the runtime's own goroutine: in a bubble sleep for that long, anywhere else
// call Close first, which tells of everything. More than 1024 events between two calls are too many: the oldest are lost,
// and the test fails.
func (rt *Runtime) Events() []guard.Event {
	rt.tb.Helper()
	rt.mu.Lock()
	defer rt.mu.Unlock()
	done, cancel := context.WithCancel(context.Background())
	cancel() // Next answers what is there, and does not wait
	for {
		e, err := rt.sub.Next(done)
		if err != nil {
			break
		}
		rt.events = append(rt.events, e)
	}
	if n := rt.sub.Dropped(); n > rt.missed {
		rt.tb.Errorf("guardtest: Events: %d events were lost since the last call, call it more often", n-rt.missed)
		rt.missed = n
	}
	return append([]guard.Event(nil), rt.events...)
}
