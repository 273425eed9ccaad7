package pool_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/bulkhead/pool"
	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// watched is a guard whose running tasks are counted.
type watched struct {
	*guard.Guard

	running, most atomic.Int64
}

// A million tasks on two pools, for keys of two runtimes, that return, fail, panic, end their goroutine, are cancelled, and are left by those who
// wait: at no instant run more than the bound of the key or the size of the pool, each accepted one ends once, as it should, and is
// run once or, cancelled before, not at all.
func TestMillionTasks(t *testing.T) {
	total := 1_000_000
	if testing.Short() {
		total = 50_000
	}
	quietly := func(registry.Key, *pool.PanicError) {}
	const size, queue = 3, 4
	pools := []*pool.Pool{newPool(t, pool.Config{OnPanic: quietly}), newPool(t, pool.Config{Size: size, Queue: queue, OnPanic: quietly})}
	var guards []*watched
	for range 2 {
		rt := newRuntime(t, guard.WithExpander(func(registry.Key) bulkhead.Expander { return doubling{} }))
		for key, spec := range map[registry.Key]registry.Spec{
			"one": {Limit: 1, Expand: 1}, "two": {Limit: 2, Expand: 1}, "six": {Limit: 6, Expand: 1}, "grows": {Limit: 1, Expand: 4},
			"waits": {Limit: 2, Expand: 1, Wait: 10 * time.Millisecond, Queue: 4},
		} {
			guards = append(guards, &watched{Guard: declared(t, rt, key, spec)})
		}
	}
	s := &stress{t: t, pools: pools, guards: guards, ran: make([]atomic.Uint32, total)}
	s.slots.Store(int64(total))
	var all sync.WaitGroup
	for seed := range uint64(8) {
		all.Go(func() { s.produce(rand.New(rand.NewPCG(seed, 7))) })
	}
	all.Wait()
	for _, g := range guards {
		snap := g.Snapshot()
		if snap.Bulkhead.InFlight != 0 || snap.Bulkhead.Waiting != 0 || g.running.Load() != 0 || snap.Lost != 0 {
			t.Errorf("%s: something is left: %d run, %+v", g.Key(), g.running.Load(), snap)
		}
		if g.most.Load() < 1 {
			t.Errorf("%s: no task ran", g.Key())
		}
	}
	for _, p := range pools {
		if snap := p.Snapshot(); snap.Running != 0 || snap.Queued != 0 || snap.Panicked == 0 || snap.Exited == 0 {
			t.Errorf("%+v", snap)
		}
	}
	if n := s.most.Load(); n > size {
		t.Errorf("%d tasks ran at once in a pool of size %d", n, size)
	}
	t.Logf("%d tasks, %d refused, %d not run, %d left", total, s.refused.Load(), s.unrun.Load(), s.leftEarly.Load())
}

type stress struct {
	t      testing.TB
	pools  []*pool.Pool
	guards []*watched
	slots  atomic.Int64    // tasks that are to come
	ran    []atomic.Uint32 // how often each did

	running, most             atomic.Int64 // in the pool with a size
	refused, unrun, leftEarly atomic.Int64
}

// job is an accepted task, and what is to become of it.
type job struct {
	*pool.Task

	id       int64
	want     error // nil: nil
	panics   bool
	canceled bool // possibly before it began
}

func (s *stress) produce(r *rand.Rand) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	var open []job
	for {
		id := s.slots.Add(-1)
		if id < 0 {
			break
		}
		for tries := 0; ; tries++ {
			j, ok := s.try(r, id)
			if ok {
				open = append(open, j)
				break
			}
			if len(open) > 0 && tries > 3 {
				s.judge(open[0])
				open = open[1:]
			}
			runtime.Gosched()
		}
		if j := open[r.IntN(len(open))]; r.IntN(4) == 0 && errors.Is(j.Wait(ended), context.Canceled) && !j.canceled {
			s.leftEarly.Add(1) // a waiter that leaves; another comes later
		}
		for len(open) > r.IntN(12) {
			s.judge(open[0])
			open = open[1:]
		}
	}
	for _, j := range open {
		s.judge(j)
	}
}

// try begins one task, if it is accepted.
func (s *stress) try(r *rand.Rand, id int64) (job, bool) {
	which := r.IntN(len(s.pools))
	p, g := s.pools[which], s.guards[r.IntN(len(s.guards))]
	j := job{id: id}
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	act := func(context.Context) error { return nil }
	switch n := r.IntN(100); {
	case n < 1:
		j.panics = true
		act = func(context.Context) error { panic(id) }
	case n < 2:
		j.want = pool.ErrGoexit
		act = func(context.Context) error { runtime.Goexit(); return nil }
	case n < 10:
		j.want = errOwn
		act = func(context.Context) error { return errOwn }
	case n < 20:
		j.canceled, j.want = true, context.Canceled
		ctx, cancel = context.WithCancel(ctx)
		act = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	case n < 60:
		act = yield
	}
	defer cancel()
	task, err := p.Go(ctx, g.Guard, func(ctx context.Context) error {
		defer s.enter(g, which == 1)()
		s.ran[id].Add(1)
		return act(ctx)
	})
	if err != nil {
		if !errors.Is(err, guard.ErrRejected) {
			s.t.Errorf("Go: %v", err)
		}
		s.refused.Add(1)
		return j, false
	}
	j.Task = task
	return j, true
}

// enter counts a running task, and compares with the bounds. That of a key only grows in this test, so it is read last.
func (s *stress) enter(g *watched, sized bool) (leave func()) {
	n := g.running.Add(1)
	if bound := int64(g.Snapshot().Bulkhead.Bound); n > bound {
		s.t.Errorf("%s: %d run, the bound is %d", g.Key(), n, bound)
	}
	raise(&g.most, n)
	if sized {
		raise(&s.most, s.running.Add(1))
	}
	return func() {
		if sized {
			s.running.Add(-1)
		}
		g.running.Add(-1)
	}
}

func yield(ctx context.Context) error { runtime.Gosched(); return ctx.Err() }

func raise(most *atomic.Int64, n int64) {
	for old := most.Load(); n > old && !most.CompareAndSwap(old, n); {
		old = most.Load()
	}
}

// judge waits for a task and looks at how it ended.
func (s *stress) judge(j job) {
	err := j.Wait(context.Background())
	var pe *pool.PanicError
	if j.panics {
		if !errors.As(err, &pe) || pe.Value != any(j.id) {
			s.t.Errorf("task %d panicked and ended with %v", j.id, err)
		}
	} else if !errors.Is(err, j.want) || err != nil && j.want == nil {
		s.t.Errorf("task %d ended with %v, want %v", j.id, err, j.want)
	}
	switch n := s.ran[j.id].Load(); {
	case n == 0 && j.canceled:
		s.unrun.Add(1)
	case n != 1:
		s.t.Errorf("task %d ran %d times", j.id, n)
	}
}
