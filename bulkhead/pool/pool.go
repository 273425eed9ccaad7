package pool

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/panjf2000/ants/v2"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/internal/goroutine"
)

// Pool is a set of goroutines for the tasks of any number of keys and runtimes. All its methods are safe for concurrent use. Make it
// with New, and Close it; one that is forgotten unclosed ends its goroutines after a garbage collection that finds it without tasks.
type Pool struct {
	cfg     Config
	workers *ants.PoolWithFuncGeneric[*Task]
	cleanup runtime.Cleanup
	drained chan struct{} // closed when nothing runs and nothing will

	panics  atomic.Uint64
	goexits atomic.Uint64
	told    teller

	mu       sync.Mutex // guards the rest; nothing blocks under it, and nobody's code runs under it
	closed   bool
	reserved int   // by calls of Go, until they are refused or their task has ended
	active   int   // tasks that were handed to a goroutine and have not ended
	first    *Task // of the queue
	last     *Task
}

// New returns a pool without tasks.
func New(cfg Config) (*Pool, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	// Without a bound of its own: who may run is known before ants is asked, which so never has to make anybody wait.
	workers, err := ants.NewPoolWithFuncGeneric(-1, work, ants.WithExpiryDuration(cfg.Idle), ants.WithNonblocking(true))
	if err != nil {
		return nil, err
	}
	p := &Pool{cfg: cfg, workers: workers, drained: make(chan struct{})}
	p.cleanup = runtime.AddCleanup(p, func(w *ants.PoolWithFuncGeneric[*Task]) { w.Release() }, workers)
	return p, nil
}

var standard = sync.OnceValue(func() *Pool {
	p, err := New(Config{})
	if err != nil {
		panic(err) // not reached: there is no setting to be wrong
	}
	return p
})

// Default is the pool of the package's function Go. It is made on first use and lasts as long as the process.
func Default() *Pool { return standard() }

// Go is Default().Go(ctx, g, fn).
func Go(ctx context.Context, g *guard.Guard, fn func(context.Context) error) (*Task, error) {
	return standard().Go(ctx, g, fn)
}

// Go takes a place of g's key and has fn run in it on a goroutine of the pool. It returns without waiting for that; but where the key
// waits for places, so does Go, for as long. The error is ErrFull or ErrClosed of the pool, or the guard's *Rejection;
// then fn does not run.
//
// The context that fn gets is ctx with the key's timeout, which counts from here on. It ends with ctx, and not because waiters leave: a
// task that is to outlive a request needs context.WithoutCancel. If it has ended before fn begins, fn does not run, and the task has
// the context's error.
//
// A call of the same key from inside fn passes through, as inside of DoContext.
func (p *Pool) Go(ctx context.Context, g *guard.Guard, fn func(context.Context) error) (*Task, error) {
	if g == nil || fn == nil {
		return nil, errors.New("pool: Go got a nil guard or function")
	}
	if err := p.reserve(); err != nil {
		return nil, err
	}
	entered := false
	defer func() {
		if !entered { // refused, or by a panic of the context or the injector
			p.unreserve()
		}
	}()
	pass, err := enter(ctx, g)
	if err != nil {
		return nil, err
	}
	entered = true
	t := &Task{done: make(chan struct{}), pool: p, key: g.Key(), fn: fn, pass: pass}
	start, err := p.accept(t)
	if err != nil {
		t.pass.Record(err)
		t.end()
		p.unreserve()
		return nil, err
	}
	if start {
		p.start(t)
	}
	return t, nil
}

// enter takes a place for another goroutine, so that this one keeps no sign of being in a call.
func enter(ctx context.Context, g *guard.Guard) (guard.Pass, error) {
	inCall := goroutine.Worn() == goroutine.ID()
	pass, err := g.Enter(ctx)
	if err == nil && !inCall {
		goroutine.TakeOff()
	}
	return pass, err
}

// Close has no task begin any more, and waits until those that run have ended, or ctx has, whose error it returns then. Tasks that
// wait in the queue end with ErrClosed. A nil ctx does not end. Close may be called more than once, and not by a task with a context that
// does not end: it would wait for itself.
func (p *Pool) Close(ctx context.Context) error {
	p.shut()
	var left <-chan struct{}
	if ctx != nil {
		left = ctx.Done()
	}
	select {
	case <-p.drained:
		return nil
	case <-left:
		return ctx.Err()
	}
}

func (p *Pool) shut() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.closed = true
	t := p.first
	p.first, p.last = nil, nil
	p.quit()
	p.mu.Unlock()
	for t != nil {
		next := t.next
		t.next = nil
		t.pass.Record(ErrClosed)
		t.end()
		p.unreserve()
		t.settle(ErrClosed)
		t = next
	}
	p.cleanup.Stop()
	p.workers.Release()
}

// Snapshot is a pool at one moment.
type Snapshot struct {
	// Running tasks have a goroutine, Queued ones wait for one. Both hold places of their keys.
	Running, Queued int
	// Goroutines there are, with the idle ones.
	Goroutines int
	// Panicked and Exited count the tasks that ended so, since the pool was made. Exited means runtime.Goexit.
	Panicked, Exited uint64
}

// Snapshot returns the pool's figures. Queued includes calls of Go that wait for a place of their key.
func (p *Pool) Snapshot() Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Snapshot{
		Running: p.active, Queued: p.reserved - p.active, Goroutines: p.workers.Running(),
		Panicked: p.panics.Load(), Exited: p.goexits.Load(),
	}
}
