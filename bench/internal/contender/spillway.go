package contender

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"github.com/spillway-go/spillway/breaker"
	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

const ours = "github.com/spillway-go/spillway"

// Names of our other rows that are held to allocate nothing.
const (
	Scoped      = "spillway: g.EnterScoped, Exit"
	Loose       = "spillway: g.Enter, Exit"
	HandleDoCtx = "spillway: g.DoContext"
	HandleCall  = "spillway: guard.CallWith"

	HandleUnwatched = "spillway: g.Do, no watchdog"
	KeyUnwatched    = "spillway: rt.Do by key, no watchdog"

	Everything        = "spillway: guard.Do by key, everything on"
	EverythingFailing = "spillway: the same, every second call fails"
	EverythingOpen    = "spillway: the same, breaker open"
)

var (
	roomy = registry.Spec{Limit: limit, Expand: 1} // whether the bound grows is the machine's to say, not the table's
	// The full key keeps its bound, and nobody who holds a place in it is ever late.
	equipped = registry.Spec{Limit: limit, Expand: 1, Breaker: registry.Breaker{On: true}, Throttle: registry.Throttle{On: true}}
	// One failure in two trips neither of these.
	lenient = registry.Spec{Limit: limit, Expand: 1, Breaker: registry.Breaker{Ratio: 1, Min: 1_000_000}, Throttle: registry.Throttle{K: 100}}
	tight   = registry.Spec{Limit: full, Expand: 1, Stale: 24 * time.Hour, Slow: time.Hour}
)

var spillway = []Contender{
	{
		Name: HandleDo, Module: ours, Does: "Do of a handle from For; bound, entry with its age, counters, latency histogram, label for the watchdog",
		Setup: func(cleanup func(func())) Loop { return doLoop(handle(roomy, cleanup)) },
	},
	{
		Name: KeyDo, Module: ours, Does: "the same through the package, which finds the guard by its key",
		Setup: func(cleanup func(func())) Loop {
			return keyLoop(declare(defaultRuntime(), roomy, cleanup))
		},
	},
	{
		Name: HandleUnwatched, Module: ours, Does: "Do of a handle whose goroutine gets no label: late calls are not looked for",
		Setup: func(cleanup func(func())) Loop {
			return doLoop(unwatchedRuntime().For(declare(unwatchedRuntime(), roomy, cleanup)))
		},
	},
	{
		Name: KeyUnwatched, Module: ours, Does: "the same by key",
		Setup: func(cleanup func(func())) Loop {
			rt := unwatchedRuntime()
			key := declare(rt, roomy, cleanup)
			return func(n int, body func() error) (admitted int) {
				for range n {
					if rt.Do(key, body) == nil {
						admitted++
					}
				}
				return admitted
			}
		},
	},
	{
		Name: Everything, Module: ours, Does: "by key, with a breaker and a throttle: bound, entry, counters, latency, watchdog, pressure",
		Setup: func(cleanup func(func())) Loop { return keyLoop(declare(defaultRuntime(), equipped, cleanup)) },
	},
	{
		Name: EverythingFailing, Module: ours, Does: "every second call returns an error, which breaker and throttle count",
		Setup: func(cleanup func(func())) Loop {
			key := declare(defaultRuntime(), lenient, cleanup)
			return func(n int, body func() error) (admitted int) {
				fail := true // the first succeeds
				fn := func() error {
					if err := body(); err != nil {
						return err
					}
					if fail = !fail; fail {
						return errCallee
					}
					return nil
				}
				for range n {
					if err := guard.Do(key, fn); err == nil || err == errCallee { //nolint:errorlint // it is that one itself
						admitted++
					}
				}
				return admitted
			}
		},
	},
	{
		Name: Scoped, Module: ours, Does: "EnterScoped, defer Exit, call, Record: a pass that stays in its function",
		Setup: func(cleanup func(func())) Loop {
			g := handle(roomy, cleanup)
			return func(n int, body func() error) (admitted int) {
				for range n {
					if scoped(context.Background(), g, body) == nil {
						admitted++
					}
				}
				return admitted
			}
		},
	},
	{
		Name: Loose, Module: ours, Does: "Enter, defer Exit, call, Record: a pass that may be handed on, and is found again when lost",
		Setup: func(cleanup func(func())) Loop {
			g := handle(roomy, cleanup)
			return func(n int, body func() error) (admitted int) {
				for range n {
					if loose(context.Background(), g, body) == nil {
						admitted++
					}
				}
				return admitted
			}
		},
	},
	{
		Name: HandleDoCtx, Module: ours, Does: "DoContext of a handle, on a context without a deadline",
		Setup: func(cleanup func(func())) Loop { return contextLoop(handle(roomy, cleanup)) },
	},
	{
		Name: HandleCall, Module: ours, Does: "a call with a result, on a handle",
		Setup: func(cleanup func(func())) Loop {
			g := handle(roomy, cleanup)
			return func(n int, body func() error) (admitted int) {
				fn := func(context.Context) (int, error) { return 1, body() }
				for range n {
					if one, err := guard.CallWith(context.Background(), g, fn); err == nil {
						admitted += one
					}
				}
				return admitted
			}
		},
	},
	{
		Name: "spillway: g.DoContext, timeout", Module: ours, Does: "the same for a key with a timeout: a context with a deadline is made for every call",
		Setup: func(cleanup func(func())) Loop {
			return contextLoop(handle(registry.Spec{Limit: limit, Expand: 1, Timeout: time.Minute}, cleanup))
		},
	},
	{
		Name: HandleRefused, Module: ours, Does: "Do of a handle, every place taken", Refuses: true,
		Setup: func(cleanup func(func())) Loop {
			g := handle(tight, cleanup)
			fill(g, cleanup)
			return doLoop(g)
		},
	},
	{
		Name: EverythingOpen, Module: ours, Does: "by key, the breaker forced open", Refuses: true,
		Setup: func(cleanup func(func())) Loop {
			key := declare(defaultRuntime(), equipped, cleanup)
			must(guard.For(key).SetBreaker(breaker.ForceOpen))
			return keyLoop(key)
		},
	},
	{
		Name: KeyRefused, Module: ours, Does: "the same through the package, by key", Refuses: true,
		Setup: func(cleanup func(func())) Loop {
			key := declare(defaultRuntime(), tight, cleanup)
			fill(guard.For(key), cleanup)
			return keyLoop(key)
		},
	},
}

// newKey returns a key that is not in use, of the length that a type and a method have in earnest: finding a guard
// hashes it.
func newKey() registry.Key {
	return registry.Key(fmt.Sprintf("github.com/acme/orders.Store%03d.Get", keys.Add(1)))
}

var keys atomic.Int64

// handle returns a guard of a silent runtime.
func handle(spec registry.Spec, cleanup func(func())) *guard.Guard {
	return silentRuntime().For(declare(silentRuntime(), spec, cleanup))
}

// declare gives a new key of rt its spec.
func declare(rt *guard.Runtime, spec registry.Spec, cleanup func(func())) registry.Key {
	key := newKey()
	must(rt.Registry().Declare(key, spec))
	cleanup(func() { rt.Registry().Remove(key) })
	return key
}

var silentRuntime = sync.OnceValue(func() *guard.Runtime {
	rt, err := guard.NewRuntime(nil, guard.WithLogger(zerolog.Nop()))
	must(err)
	return rt
})

var unwatchedRuntime = sync.OnceValue(func() *guard.Runtime {
	rt, err := guard.NewRuntime(nil, guard.WithLogger(zerolog.Nop()), guard.WithoutWatchdog())
	must(err)
	return rt
})

// defaultRuntime is the one that the package's functions use. It warns on standard error of keys that refuse, and would
// for each of ours: standard error is somewhere else while it is made.
var defaultRuntime = sync.OnceValue(func() *guard.Runtime {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	must(err)
	defer func(stderr *os.File) { os.Stderr = stderr }(os.Stderr)
	os.Stderr = null
	return guard.Default()
})

// fill takes every place of g, each on a goroutine of its own as in earnest: a second Enter further down one call would
// be recursion.
func fill(g *guard.Guard, cleanup func(func())) {
	var entered, left sync.WaitGroup
	release := make(chan struct{})
	for range full {
		entered.Add(1)
		left.Go(func() {
			pass, err := g.Enter(context.Background())
			must(err)
			defer pass.Exit()
			entered.Done()
			<-release
			pass.Record(nil)
		})
	}
	entered.Wait()
	cleanup(func() { close(release); left.Wait() })
}

func doLoop(g *guard.Guard) Loop {
	return func(n int, body func() error) (admitted int) {
		for range n {
			if g.Do(body) == nil {
				admitted++
			}
		}
		return admitted
	}
}

func keyLoop(key registry.Key) Loop {
	return func(n int, body func() error) (admitted int) {
		for range n {
			if guard.Do(key, body) == nil {
				admitted++
			}
		}
		return admitted
	}
}

func contextLoop(g *guard.Guard) Loop {
	return func(n int, body func() error) (admitted int) {
		fn := func(context.Context) error { return body() }
		for range n {
			if g.DoContext(context.Background(), fn) == nil {
				admitted++
			}
		}
		return admitted
	}
}

//go:noinline
func scoped(ctx context.Context, g *guard.Guard, body func() error) error {
	pass, err := g.EnterScoped(ctx)
	if err != nil {
		return err
	}
	defer pass.Exit()
	err = body()
	pass.Record(err)
	return err
}

//go:noinline
func loose(ctx context.Context, g *guard.Guard, body func() error) error {
	pass, err := g.Enter(ctx)
	if err != nil {
		return err
	}
	defer pass.Exit()
	err = body()
	pass.Record(err)
	return err
}

var errCallee = errors.New("bench: the callee failed")

// must ends the program: a setup that fails is a mistake in this file, and without it there is nothing to measure.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("bench: %v", err))
	}
}
