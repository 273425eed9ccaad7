package pool_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/spillway-go/spillway/bulkhead/pool"
	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// program is what a run of the model does.
type program struct {
	size, queue int
	limits      []int
	steps       []step
}

type step struct {
	op  int // 0..5 begin a task, 6..9 end one, 10 and 11 cancel one, 12 close
	n   int // of the key, or of the task among those that can be meant
	how int // it ends: nil, an error, a panic, Goexit
}

func programs() *rapid.Generator[program] {
	return rapid.Custom(func(t *rapid.T) program {
		p := program{size: rapid.IntRange(0, 4).Draw(t, "size")}
		if p.size > 0 {
			p.queue = rapid.IntRange(0, 4).Draw(t, "queue")
		}
		p.limits = rapid.SliceOfN(rapid.IntRange(1, 5), 1, 3).Draw(t, "limits")
		p.steps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			return step{rapid.IntRange(0, 12).Draw(t, "op"), rapid.IntRange(0, 100).Draw(t, "n"), rapid.IntRange(0, 3).Draw(t, "how")}
		}), 0, 60).Draw(t, "steps")
		return p
	})
}

// modelTask is a task as the model sees it, with what drives the real one.
type modelTask struct {
	key      int
	canceled bool
	running  bool
	done     bool
	err      error

	task   *pool.Task
	cancel context.CancelFunc
	end    chan int // how
	began  bool     // the real one; read after synctest.Wait only
}

type model struct {
	program

	closed bool
	tasks  []*modelTask // accepted, in order
}

func (m *model) count(f func(*modelTask) bool) (n int) {
	for _, t := range m.tasks {
		if f(t) {
			n++
		}
	}
	return n
}

func (m *model) inFlight(key int) int {
	return m.count(func(t *modelTask) bool { return !t.done && (key < 0 || t.key == key) })
}

func (m *model) running() int { return m.count(func(t *modelTask) bool { return t.running }) }

// answer is what Go says, nil if it accepts.
func (m *model) answer(key int) error {
	switch {
	case m.closed:
		return pool.ErrClosed
	case m.size > 0 && m.inFlight(-1) >= m.size+m.queue:
		return pool.ErrFull
	case m.inFlight(key) >= m.limits[key]:
		return guard.ErrRejected
	default:
		return nil
	}
}

// advance begins what may begin.
func (m *model) advance() {
	for _, t := range m.tasks {
		switch {
		case t.done || t.running || m.size > 0 && m.running() >= m.size:
		case m.closed:
			t.done, t.err = true, pool.ErrClosed
		case t.canceled:
			t.done, t.err = true, context.Canceled
		default:
			t.running = true
		}
	}
}

func (m *model) close() {
	m.closed = true
	for _, t := range m.tasks {
		if !t.done && !t.running {
			t.done, t.err = true, pool.ErrClosed
		}
	}
}

// pick is the n-th of the tasks that f says yes to, nil if there is none.
func (m *model) pick(n int, f func(*modelTask) bool) *modelTask {
	list := slices.DeleteFunc(slices.Clone(m.tasks), func(t *modelTask) bool { return !f(t) })
	if len(list) == 0 {
		return nil
	}
	return list[n%len(list)]
}

var ends = []error{nil, errOwn, &pool.PanicError{}, pool.ErrGoexit}

// play runs a program in the pool and in the model, inside a bubble.
func (m *model) play() error {
	rt, err := guard.NewRuntime(nil, guard.WithLogger(zerolog.Nop()), guard.WithPressure(nil), guard.WithoutWatchdog())
	if err != nil {
		return err
	}
	defer rt.Close()
	var guards []*guard.Guard
	for i, n := range m.limits {
		key := registry.Key(fmt.Sprint("k", i))
		if err = rt.Registry().Declare(key, registry.Spec{Limit: n, Expand: 1}); err != nil {
			return err
		}
		guards = append(guards, rt.For(key))
	}
	p, err := pool.New(pool.Config{Size: m.size, Queue: m.queue, OnPanic: func(registry.Key, *pool.PanicError) {}})
	if err != nil {
		return err
	}
	defer func() {
		m.closeBoth(p)
		for _, t := range m.tasks {
			close(t.end)
			t.cancel()
		}
		_ = p.Close(context.Background())
	}()
	for i, s := range m.steps {
		if err = m.do(p, guards, s); err == nil {
			synctest.Wait()
			m.advance()
			err = m.compare(p, guards)
		}
		if err != nil {
			return fmt.Errorf("step %d, %+v: %w", i, s, err)
		}
	}
	return nil
}

func (m *model) closeBoth(p *pool.Pool) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = p.Close(ended)
	m.close()
}

func (m *model) do(p *pool.Pool, guards []*guard.Guard, s step) error {
	switch {
	case s.op < 6:
		return m.begin(p, guards, s.n%len(guards))
	case s.op < 10:
		if t := m.pick(s.n, func(t *modelTask) bool { return t.running }); t != nil {
			t.end <- s.how
			t.running, t.done, t.err = false, true, ends[s.how]
		}
	case s.op < 12:
		if t := m.pick(s.n, func(t *modelTask) bool { return !t.done && !t.canceled }); t != nil {
			t.canceled = true
			t.cancel()
		}
	case s.how == 0:
		m.closeBoth(p)
	}
	return nil
}

func (m *model) begin(p *pool.Pool, guards []*guard.Guard, key int) error {
	t := &modelTask{key: key, end: make(chan int)}
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	task, err := p.Go(ctx, guards[key], func(context.Context) error {
		t.began = true
		switch <-t.end {
		case 1:
			return errOwn
		case 2:
			panic(errOwn)
		case 3:
			runtime.Goexit()
		}
		return nil
	})
	if want := m.answer(key); !errors.Is(err, want) || (err == nil) != (want == nil) {
		cancel()
		return fmt.Errorf("go said %w, want %w", err, want)
	}
	if task == nil {
		cancel()
		return nil
	}
	t.task = task
	m.tasks = append(m.tasks, t)
	return nil
}

func (m *model) compare(p *pool.Pool, guards []*guard.Guard) error {
	for i, t := range m.tasks {
		done := false
		select {
		case <-t.task.Done():
			done = true
		default:
		}
		if done != t.done {
			return fmt.Errorf("task %d: done %v, want %v", i, done, t.done)
		}
		err := t.task.Err()
		var pe *pool.PanicError
		if want := t.err; errors.As(want, &pe) {
			if !errors.As(err, &pe) {
				return fmt.Errorf("task %d ended with %w, want a panic", i, err)
			}
		} else if !errors.Is(err, want) || (err == nil) != (want == nil) {
			return fmt.Errorf("task %d ended with %w, want %w", i, err, want)
		}
		unrun := t.done && (errors.Is(t.err, pool.ErrClosed) || errors.Is(t.err, context.Canceled))
		if want := (t.running || t.done) && !unrun; t.began != want {
			return fmt.Errorf("task %d: began %v, want %v", i, t.began, want)
		}
	}
	for i, g := range guards {
		if n, want := g.Snapshot().Bulkhead.InFlight, m.inFlight(i); n != want {
			return fmt.Errorf("key %d: %d in flight, want %d", i, n, want)
		}
	}
	if s := p.Snapshot(); s.Running != m.running() || s.Queued != m.inFlight(-1)-m.running() {
		return fmt.Errorf("%+v, want %d running of %d", s, m.running(), m.inFlight(-1))
	}
	return nil
}

func TestModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := &model{program: programs().Draw(r, "program")}
		var err error
		synctest.Test(t, func(*testing.T) { err = m.play() })
		if err != nil {
			r.Fatal(err)
		}
	})
}
