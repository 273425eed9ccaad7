package guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"
	"github.com/spillway-go/spillway/autoscale"
	"github.com/spillway-go/spillway/breaker"
	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/pressure"
	"github.com/spillway-go/spillway/registry"
	"github.com/spillway-go/spillway/watchdog"
)

// Runtime is an isolated set of guards, with its registry, its events and its background work. All its methods are safe for
// concurrent use.
type Runtime struct {
	reg   *registry.Registry
	opts  options
	table table
	hub   hub

	pressure Pressure
	sampler  *pressure.Sampler  // our own, or nil
	scaler   *autoscale.Scaler  // nil where no bound grows
	watchdog *watchdog.Watchdog // or nil

	ticked   atomic.Int64 // package clock's reading at the housekeeper's last tick
	refusing atomic.Bool  // somebody was refused since the housekeeper looked
	reported atomic.Bool  // some bulkhead has reports
	started  sync.Once
	unwatch  func()
	stop     chan struct{}
	done     sync.WaitGroup
	closing  sync.Once
	closed   atomic.Bool
}

type options struct {
	loggers  []logger
	stderr   io.Writer // where a logger's panic is told
	injector Injector
	maxKeys  int
	expander func(registry.Key) bulkhead.Expander
	memory   bulkhead.MemoryGauge
	pressure func() (Pressure, *pressure.Sampler, error)
	watchdog *watchdog.Config // nil: none
	judge    func(registry.Key, error) breaker.Outcome
}

// Option changes what NewRuntime makes.
type Option func(*options) error

// WithLogger writes events to l: refusals when they begin and end, lost and stuck calls, and replaced specs. Without
// WithLogger and WithSlog a runtime writes warnings to standard error; zerolog.Nop() keeps it silent. Rotation and
// files are the application's.
//
// Loggers run on a goroutine of their own. A panic of one is contained: the event is lost to it and to no other, and it gets the next
// one. The first panic of each is told on standard error, with its stack; their number follows when the runtime is closed.
// One that ends its goroutine (runtime.Goexit) ends the log.
func WithLogger(l zerolog.Logger) Option {
	return func(o *options) error { o.loggers = append(o.loggers, zerologLogger(l)); return nil }
}

// WithSlog writes events to l, as WithLogger does.
func WithSlog(l *slog.Logger) Option {
	return func(o *options) error {
		if l == nil {
			return errors.New("guard: WithSlog got a nil logger")
		}
		o.loggers = append(o.loggers, slogLogger(l))
		return nil
	}
}

// WithInjector puts an Injector into the path of every call. Nil stands for none; a nil pointer or function inside the interface is
// an error.
func WithInjector(i Injector) Option {
	return func(o *options) error { o.injector = i; return notHollow("WithInjector", i) }
}

// DefaultMaxKeys is how many guards of undeclared keys a runtime holds unless WithMaxKeys says otherwise.
const DefaultMaxKeys = 10_000

// WithMaxKeys bounds the guards of undeclared keys, 1 or more. When there are too many, idle ones go, oldest first; when all are
// busy newcomers share one guard. Declared keys are not counted.
func WithMaxKeys(n int) Option {
	return func(o *options) error {
		if n < 1 {
			return fmt.Errorf("guard: WithMaxKeys got %d, must be 1 or more", n)
		}
		o.maxKeys = n
		return nil
	}
}

// WithExpander gives every key what decides whether its bound may grow. f is called once for each key, or group, whose name
// it gets then, by the first call that finds no place; nil means that this one does not grow. Without the option package autoscale
// decides; with a nil f no bound grows.
func WithExpander(f func(registry.Key) bulkhead.Expander) Option {
	if f == nil {
		f = func(registry.Key) bulkhead.Expander { return nil }
	}
	return func(o *options) error { o.expander = f; return nil }
}

// WithMemoryGauge forbids the eviction of stuck calls while m says that memory is tight. Without the option, or with nil, WithPressure's
// argument says so; a nil pointer or function inside the interface is an error.
func WithMemoryGauge(m bulkhead.MemoryGauge) Option {
	return func(o *options) error { o.memory = m; return notHollow("WithMemoryGauge", m) }
}

// WithPressure tells the runtime how the machine is doing, instead of a sampler of its own: a bound grows only while p says that all is
// well, and stuck calls are not evicted while it says that memory is tight. With nil no bound grows, and memory is never tight; a nil
// pointer or function inside the interface is an error.
func WithPressure(p Pressure) Option {
	return func(o *options) error {
		o.pressure = func() (Pressure, *pressure.Sampler, error) { return p, nil, nil }
		return notHollow("WithPressure", p)
	}
}

// notHollow refuses an interface with a nil pointer or function inside: somebody forgot to make it, and its methods would panic, in
// the calls or on the housekeeper's goroutine.
func notHollow(option string, v any) error {
	r := reflect.ValueOf(v)
	if k := r.Kind(); (k == reflect.Pointer || k == reflect.Func) && r.IsNil() {
		return fmt.Errorf("guard: %s got a nil %T, must be one that was made, or plain nil", option, v)
	}
	return nil
}

// ownSampler is the default of WithPressure.
func ownSampler() (Pressure, *pressure.Sampler, error) {
	s, err := pressure.New(pressure.Config{})
	return s, s, err
}

// NewRuntime returns a runtime with specs from reg; nil stands for a fresh registry. Its background work starts with its first
// guard and ends with Close.
func NewRuntime(reg *registry.Registry, opts ...Option) (*Runtime, error) {
	if reg == nil {
		reg = registry.New()
	}
	rt := &Runtime{reg: reg, stop: make(chan struct{})}
	rt.opts = options{maxKeys: DefaultMaxKeys, pressure: ownSampler, watchdog: new(watchdog.Config), stderr: os.Stderr}
	for i, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("guard: NewRuntime got a nil option, number %d of %d", i+1, len(opts))
		}
		if err := o(&rt.opts); err != nil {
			return nil, err
		}
	}
	if len(rt.opts.loggers) == 0 {
		rt.opts.loggers = []logger{defaultLogger()}
	}
	if err := rt.feel(); err != nil {
		return nil, err
	}
	if err := rt.guardDog(); err != nil {
		return nil, err
	}
	rt.table.init(rt)
	rt.unwatch = reg.Watch(rt.respec)
	return rt, nil
}

// feel connects the runtime with the machine.
func (rt *Runtime) feel() error {
	p, own, err := rt.opts.pressure()
	if err != nil || p == nil {
		return err
	}
	rt.pressure, rt.sampler = p, own
	if rt.opts.memory == nil {
		rt.opts.memory = p
	}
	if rt.opts.expander == nil {
		rt.scaler, err = autoscale.New(autoscale.Config{Pressure: p, OnStep: rt.stepped})
	}
	return err
}

var defaultRuntime = sync.OnceValue(func() *Runtime {
	rt, err := NewRuntime(nil)
	if err != nil {
		panic(err) // not reached: there is no option to be wrong
	}
	standard.Store(rt)
	return rt
})

// standard is what defaultRuntime returned, for the fast path.
var standard atomic.Pointer[Runtime]

// Default is the runtime that the package's functions use. It is made on first use.
func Default() *Runtime {
	if rt := standard.Load(); rt != nil {
		return rt
	}
	return defaultRuntime()
}

// For returns the guard of a key in the default runtime. Resolve it once and keep it where the call is hot.
func For(key registry.Key) *Guard { return Default().For(key) }

// For returns the guard of a key, the same one for as long as anybody holds it.
func (rt *Runtime) For(key registry.Key) *Guard { return rt.table.get(key) }

// Do is For(key).Do(fn).
func (rt *Runtime) Do(key registry.Key, fn func() error) error { return rt.For(key).Do(fn) }

// DoContext is For(key).DoContext(ctx, fn).
func (rt *Runtime) DoContext(ctx context.Context, key registry.Key, fn func(context.Context) error) error {
	return rt.For(key).DoContext(ctx, fn)
}

// Registry is where the runtime's specs are declared and replaced.
func (rt *Runtime) Registry() *registry.Registry { return rt.reg }

// Subscribe delivers the events from now on, in a buffer for as many: 1 to MaxBuffer, the nearest of them for any other number.
func (rt *Runtime) Subscribe(buffer int) *Subscription {
	rt.start()
	return rt.hub.subscribe(buffer)
}

// Close refuses all later calls with ReasonClosed, answers those that wait with it, delivers the last events and ends the
// background work, for which it waits until the loggers have written what is left. Calls in flight run on. It may be called more
// than once, and not from a logger, the watchdog's functions or the Pressure of the runtime.
func (rt *Runtime) Close() error {
	rt.closing.Do(func() {
		rt.unwatch()
		rt.table.close()
		rt.started.Do(func() {}) // what has not started will not
		close(rt.stop)
		rt.done.Wait()
		if rt.watchdog != nil {
			rt.watchdog.Close()
		}
		rt.hub.close()
		if rt.sampler != nil {
			rt.sampler.Close()
		}
	})
	return nil
}
