package pool_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/bulkhead/pool"
	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

func TestConfig(t *testing.T) {
	for _, c := range []struct {
		cfg   pool.Config
		wants []string
	}{
		{pool.Config{}, nil},
		{pool.Config{Size: pool.MaxTasks, Queue: pool.MaxTasks, Idle: time.Hour}, nil},
		{pool.Config{Idle: 100 * time.Millisecond}, nil},
		{pool.Config{Size: -1, Queue: -2, Idle: -3}, []string{
			"pool: Size is -1, must be 0 to 1000000", "pool: Queue is -2, must be 0 to 1000000", "pool: Idle is -3ns, must be 100ms to 1h",
		}},
		{pool.Config{Size: pool.MaxTasks + 1}, []string{"pool: Size is 1000001, must be 0 to 1000000"}},
		{pool.Config{Queue: 7}, []string{"pool: Queue is 7, must be 0 without a Size"}},
		{pool.Config{Idle: time.Millisecond}, []string{"pool: Idle is 1ms, must be 100ms to 1h"}},
		{pool.Config{Idle: time.Hour + 1}, []string{"pool: Idle is 1h0m0.000000001s, must be 100ms to 1h"}},
	} {
		p, err := pool.New(c.cfg)
		if err == nil {
			shut(t, p)
		}
		text := ""
		if err != nil {
			text = err.Error()
		}
		if want := strings.Join(c.wants, "\n"); text != want {
			t.Errorf("%+v: %q, want %q", c.cfg, text, want)
		}
	}
}

func TestMisuse(t *testing.T) {
	p, g := newPool(t, pool.Config{}), newRuntime(t).For("a")
	nothing := func(context.Context) error { return nil }
	for _, err := range []error{
		second(p.Go(t.Context(), nil, nothing)),
		second(p.Go(t.Context(), g, nil)),
		second(pool.Go(t.Context(), nil, nothing)),
	} {
		if err == nil || err.Error() != "pool: Go got a nil guard or function" {
			t.Error(err)
		}
	}
}

func second(_ *pool.Task, err error) error { return err }

func TestRefusalAsksNoGoroutine(t *testing.T) {
	p := newPool(t, pool.Config{})
	g := declared(t, newRuntime(t), "a", registry.Spec{Limit: 1, Expand: 1})
	pass, err := g.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer pass.Exit()
	_, err = p.Go(t.Context(), g, func(context.Context) error { t.Error("ran"); return nil })
	wantReason(t, err, guard.ReasonFull)
	if s := p.Snapshot(); s != (pool.Snapshot{}) {
		t.Errorf("%+v", s)
	}
}

func TestQueue(t *testing.T) {
	p, g := newPool(t, pool.Config{Size: 2, Queue: 3}), newRuntime(t).For("a")
	release, order := make(chan struct{}), make(chan int, 5)
	var tasks []*pool.Task
	for i := range 5 {
		tasks = append(tasks, begin(t, p, g, func(context.Context) error { <-release; order <- i; return nil }))
	}
	_, err := p.Go(t.Context(), g, func(context.Context) error { return nil })
	if !errors.Is(err, pool.ErrFull) || !errors.Is(err, guard.ErrRejected) || errors.Is(err, pool.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if s := g.Snapshot(); s.Bulkhead.InFlight != 5 || s.Admitted != 5 || len(s.Refused) != 0 {
		t.Errorf("the guard saw %+v", s)
	}
	if s := p.Snapshot(); s.Running != 2 || s.Queued != 3 {
		t.Errorf("%+v", s)
	}
	release <- struct{}{}
	release <- struct{}{}
	close(release)
	for _, task := range tasks {
		wantErr(t, task, nil)
	}
	if s := p.Snapshot(); s.Running != 0 || s.Queued != 0 {
		t.Errorf("afterwards %+v", s)
	}
}

func TestQueueIsInOrder(t *testing.T) {
	p, g := newPool(t, pool.Config{Size: 1, Queue: 50, OnPanic: func(registry.Key, *pool.PanicError) {}}), wide(t)
	release := make(chan struct{})
	first := begin(t, p, g, func(context.Context) error { <-release; return nil })
	var order []int // one after the other
	var tasks []*pool.Task
	for i := range 50 {
		tasks = append(tasks, begin(t, p, g, func(context.Context) error {
			order = append(order, i)
			switch i % 5 {
			case 1:
				panic(i)
			case 2:
				runtime.Goexit()
			}
			return nil
		}))
	}
	close(release)
	<-first.Done()
	for _, task := range tasks {
		<-task.Done()
	}
	if len(order) != 50 || !slices.IsSorted(order) {
		t.Errorf("ran in the order %v", order)
	}
}

func TestCloseSettlesWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, g := newPool(t, pool.Config{Size: 1, Queue: 2}), newRuntime(t).For("a")
		running := begin(t, p, g, func(context.Context) error { elapse(time.Minute); return errOwn })
		synctest.Wait()
		never := func(context.Context) error { t.Error("ran after Close"); return nil }
		queued := []*pool.Task{begin(t, p, g, never), begin(t, p, g, never)}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close: %v", err)
		}
		for _, task := range queued {
			wantErr(t, task, pool.ErrClosed)
			wantErr(t, task, guard.ErrRejected)
		}
		if n := g.Snapshot().Bulkhead.InFlight; n != 1 {
			t.Errorf("%d in flight, want the one that runs", n)
		}
		_, err := p.Go(t.Context(), g, never)
		if !errors.Is(err, pool.ErrClosed) {
			t.Errorf("Go after Close: %v", err)
		}
		if err := p.Close(nil); err != nil { //nolint:staticcheck // nil is documented
			t.Error(err)
		}
		wantErr(t, running, errOwn)
		synctest.Wait()
		if s := p.Snapshot(); s != (pool.Snapshot{}) {
			t.Errorf("afterwards %+v", s)
		}
	})
}

// Go and Close meet in every way: each task that was accepted ends once, none runs after Close has returned, and nothing is left taken.
func TestCloseRacesWithGo(t *testing.T) {
	for i := range 300 {
		cfg := pool.Config{Size: i % 3, Queue: i % 3 * 2}
		p, err := pool.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		g := newRuntime(t, guard.WithoutWatchdog()).For("a")
		var closed atomic.Bool
		var all sync.WaitGroup
		var accepted, ran, unrun atomic.Int64
		for range 4 {
			all.Go(func() {
				for {
					task, err := p.Go(t.Context(), g, func(context.Context) error {
						if closed.Load() {
							t.Error("ran after Close")
						}
						ran.Add(1)
						return nil
					})
					switch {
					case errors.Is(err, pool.ErrClosed):
						return
					case errors.Is(err, pool.ErrFull):
						runtime.Gosched()
						continue
					case err != nil:
						t.Error(err)
						return
					}
					accepted.Add(1)
					if errors.Is(task.Wait(t.Context()), pool.ErrClosed) {
						unrun.Add(1)
					}
				}
			})
		}
		for range i % 7 {
			runtime.Gosched()
		}
		shut(t, p)
		closed.Store(true)
		all.Wait()
		if ran.Load()+unrun.Load() != accepted.Load() {
			t.Fatalf("accepted %d, ran %d, not run %d", accepted.Load(), ran.Load(), unrun.Load())
		}
		if n := g.Snapshot().Bulkhead.InFlight; n != 0 {
			t.Fatalf("%d in flight", n)
		}
		if s := p.Snapshot(); s.Running != 0 || s.Queued != 0 {
			t.Fatalf("%+v", s)
		}
	}
}

// doubling lets a bound grow whenever it is asked.
type doubling struct{}

func (doubling) Expand(now bulkhead.Load) (int, time.Duration) { return 2 * now.Bound, 0 }

func TestBoundIsFollowed(t *testing.T) {
	p := newPool(t, pool.Config{})
	rt := newRuntime(t, guard.WithExpander(func(registry.Key) bulkhead.Expander { return doubling{} }))
	g := declared(t, rt, "a", registry.Spec{Limit: 4})
	var running atomic.Int64
	release := make(chan struct{})
	fill := func() (tasks []*pool.Task) {
		for {
			task, err := p.Go(t.Context(), g, func(context.Context) error {
				running.Add(1)
				defer running.Add(-1)
				<-release
				return nil
			})
			if err != nil {
				wantReason(t, err, guard.ReasonFull)
				return tasks
			}
			tasks = append(tasks, task)
		}
	}
	drain := func(tasks []*pool.Task) {
		close(release)
		for _, task := range tasks {
			<-task.Done()
		}
		release = make(chan struct{})
	}
	tasks := fill()
	if n := len(tasks); n != 16 {
		t.Errorf("%d tasks of a key with 4 places that grows to 16", n)
	}
	drain(tasks)
	if err := rt.Registry().Replace(map[registry.Key]registry.Spec{"a": {Limit: 2, Expand: 1}}); err != nil {
		t.Fatal(err)
	}
	tasks = fill()
	if n := len(tasks); n != 2 {
		t.Errorf("%d tasks after the key got 2 places", n)
	}
	drain(tasks)
	if n := running.Load(); n != 0 {
		t.Errorf("%d run after all are done", n)
	}
}

func TestGuardsOfTwoRuntimes(t *testing.T) {
	p := newPool(t, pool.Config{})
	one, other := newRuntime(t), newRuntime(t)
	a := declared(t, one, "a", registry.Spec{Limit: 1, Expand: 1})
	b := declared(t, other, "a", registry.Spec{Limit: 1, Expand: 1})
	release := make(chan struct{})
	hang := func(context.Context) error { <-release; return nil }
	tasks := []*pool.Task{begin(t, p, a, hang), begin(t, p, b, hang)}
	for _, g := range []*guard.Guard{a, b} {
		wantReason(t, second(p.Go(t.Context(), g, hang)), guard.ReasonFull)
	}
	_ = one.Close() // what is in flight runs on
	wantReason(t, second(p.Go(t.Context(), a, hang)), guard.ReasonClosed)
	close(release)
	for _, task := range tasks {
		wantErr(t, task, nil)
	}
	wantErr(t, begin(t, p, b, hang), nil)
}

func TestGoWaitsWhereTheKeyDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, pool.Config{})
		g := declared(t, newRuntime(t), "a", registry.Spec{Limit: 1, Expand: 1, Wait: 2 * time.Second, Queue: 1})
		start := time.Now()
		first := begin(t, p, g, func(context.Context) error { elapse(10 * time.Millisecond); return nil })
		wantErr(t, begin(t, p, g, func(context.Context) error { return errOwn }), errOwn)
		if d := time.Since(start); d != 10*time.Millisecond {
			t.Errorf("waited %v", d)
		}
		wantErr(t, first, nil)
	})
}

// A context or an injector that panics in Go leaves nothing behind.
func TestPanicInGo(t *testing.T) {
	p, g := newPool(t, pool.Config{Size: 1}), newRuntime(t).For("a")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _ = p.Go(hostile{t.Context()}, g, func(context.Context) error { return nil })
	}()
	if s := p.Snapshot(); s != (pool.Snapshot{}) {
		t.Errorf("%+v", s)
	}
	wantErr(t, begin(t, p, g, func(context.Context) error { return nil }), nil)
}

type hostile struct{ context.Context }

func (hostile) Err() error { panic("no") }

func TestIdleGoroutinesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, rt := newPool(t, pool.Config{}), newRuntime(t)
		for range 3 {
			release := make(chan struct{})
			var tasks []*pool.Task
			for range 20 {
				tasks = append(tasks, begin(t, p, rt.For("a"), func(context.Context) error { <-release; return nil }))
			}
			close(release)
			for _, task := range tasks {
				wantErr(t, task, nil)
			}
			synctest.Wait()
			if n := p.Snapshot().Goroutines; n != 20 {
				t.Errorf("%d goroutines, want 20", n)
			}
			elapse(2*pool.DefaultIdle + time.Second)
			synctest.Wait()
			if n := p.Snapshot().Goroutines; n != 0 {
				t.Errorf("%d goroutines that had nothing to do for %v", n, 2*pool.DefaultIdle)
			}
		}
	})
}

// ants' own goroutines would keep a forgotten pool for ever.
func TestForgottenPoolEnds(t *testing.T) {
	g := newRuntime(t, guard.WithoutWatchdog()).For("a")
	before := runtime.NumGoroutine()
	func() {
		for range 50 {
			p, err := pool.New(pool.Config{})
			if err != nil {
				t.Fatal(err)
			}
			wantErr(t, begin(t, p, g, func(context.Context) error { return nil }), nil)
		}
	}()
	deadline := time.After(10 * time.Second)
	for runtime.NumGoroutine() > before {
		runtime.GC()
		select {
		case <-deadline:
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		case <-time.After(time.Millisecond):
		}
	}
}

// A pool that is forgotten with tasks in it runs them all.
func TestForgottenPoolRunsItsTasks(t *testing.T) {
	g := newRuntime(t, guard.WithoutWatchdog()).For("a")
	release := make(chan struct{})
	tasks := func() (tasks []*pool.Task) {
		p, err := pool.New(pool.Config{Size: 1, Queue: 10})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 11 {
			tasks = append(tasks, begin(t, p, g, func(context.Context) error {
				<-release
				if i%3 == 0 {
					runtime.Goexit()
				}
				return nil
			}))
		}
		return tasks
	}()
	for range 5 {
		runtime.GC()
	}
	close(release)
	for i, task := range tasks {
		want := error(nil)
		if i%3 == 0 {
			want = pool.ErrGoexit
		}
		wantErr(t, task, want)
	}
}

func TestPanicsAreLogged(t *testing.T) {
	text := logged(t, pool.Config{})
	if n := strings.Count(text, "\n"); n != 3 {
		t.Errorf("%d lines, want one a second", n)
	}
	for _, want := range []string{`"msg":"a task panicked","key":"shop.Make","panic":"its own"`, "pool_test.explode", `"skipped":3`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
}

func TestPanicsOfOnPanicAreLogged(t *testing.T) {
	text := logged(t, pool.Config{OnPanic: func(registry.Key, *pool.PanicError) { panic("too") }})
	if !strings.Contains(text, `"msg":"OnPanic panicked","key":"shop.Make","panic":"too"`) {
		t.Error(text)
	}
	text = logged(t, pool.Config{OnPanic: func(registry.Key, *pool.PanicError) { runtime.Goexit() }})
	if text != "" {
		t.Error(text)
	}
}

func TestLoggerThatPanics(t *testing.T) {
	old := slog.Default()
	slog.SetDefault(slog.New(badLogger{}))
	defer slog.SetDefault(old)
	p, g := newPool(t, pool.Config{Size: 1, Queue: 1}), newRuntime(t).For("a")
	for range 3 {
		<-begin(t, p, g, explode).Done()
	}
}

type badLogger struct{ slog.Handler }

func (badLogger) Enabled(context.Context, slog.Level) bool  { return true }
func (badLogger) Handle(context.Context, slog.Record) error { panic("no") }

// logged is what a pool writes when tasks panic, four of them in each of three seconds.
func logged(t *testing.T, cfg pool.Config) string {
	t.Helper()
	var out bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&out, nil)))
	defer slog.SetDefault(old)
	synctest.Test(t, func(t *testing.T) {
		p, g := newPool(t, cfg), newRuntime(t).For("shop.Make")
		for range 3 {
			for range 4 {
				<-begin(t, p, g, explode).Done()
				synctest.Wait() // told after Done
			}
			elapse(time.Second)
		}
	})
	return out.String()
}

func TestDefaultPool(t *testing.T) {
	task, err := pool.Go(t.Context(), newRuntime(t).For("a"), func(context.Context) error { return errOwn })
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, task, errOwn)
}
