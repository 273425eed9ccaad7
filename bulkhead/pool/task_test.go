package pool_test

import (
	"context"
	"errors"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/bulkhead/pool"
	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/internal/goroutine"
	"github.com/spillway-go/spillway/registry"
)

var errOwn = errors.New("its own")

func TestTaskIsWaitedForByMany(t *testing.T) {
	p, g := newPool(t, pool.Config{}), newRuntime(t).For("a")
	release := make(chan struct{})
	task := begin(t, p, g, func(context.Context) error { <-release; return errOwn })
	if err := task.Err(); err != nil {
		t.Errorf("Err is %v while the task runs", err)
	}
	var waiters sync.WaitGroup
	for range 100 {
		waiters.Go(func() {
			if err := task.Wait(t.Context()); err != errOwn { //nolint:errorlint // untouched
				t.Errorf("Wait: %v", err)
			}
		})
	}
	close(release)
	waiters.Wait()
	<-task.Done()
	wantErr(t, task, errOwn)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // the result counts, also for somebody who is late
		if err := task.Wait(ended); !errors.Is(err, errOwn) {
			t.Fatalf("Wait with a context that has ended: %v", err)
		}
	}
	if err := task.Wait(nil); !errors.Is(err, errOwn) { //nolint:staticcheck // nil is documented
		t.Errorf("Wait without a context: %v", err)
	}
}

func TestPlaceStaysTakenWhenTheWaiterLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, pool.Config{})
		g := declared(t, newRuntime(t), "a", registry.Spec{Limit: 1, Expand: 1})
		task := begin(t, p, g, func(ctx context.Context) error {
			elapse(time.Minute)
			return ctx.Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := task.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait: %v", err)
		}
		for range 59 {
			_, err := p.Go(t.Context(), g, func(context.Context) error { t.Error("ran beside the first"); return nil })
			wantReason(t, err, guard.ReasonFull)
			elapse(time.Second - time.Millisecond)
		}
		wantErr(t, task, nil)
		wantErr(t, begin(t, p, g, func(context.Context) error { return nil }), nil)
	})
}

func TestPlaceIsFreeOnceTheTaskIsDone(t *testing.T) {
	g := declared(t, newRuntime(t), "a", registry.Spec{Limit: 1, Expand: 1})
	p := newPool(t, pool.Config{Size: 1, OnPanic: func(registry.Key, *pool.PanicError) {}})
	for i := range 20_000 {
		task, err := p.Go(t.Context(), g, func(context.Context) error {
			switch i % 50 {
			case 0:
				panic(errOwn)
			case 1:
				runtime.Goexit()
			}
			return nil
		})
		if err != nil {
			t.Fatalf("number %d: %v", i, err)
		}
		for done := false; !done; { // seen as soon as it can be
			select {
			case <-task.Done():
				done = true
			default:
				runtime.Gosched()
			}
		}
	}
}

func TestContextOfATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, rt := newPool(t, pool.Config{Size: 1, Queue: 2}), newRuntime(t)
		g := declared(t, rt, "a", registry.Spec{Limit: 4, Timeout: time.Second})

		type key struct{}
		task, err := p.Go(context.WithValue(t.Context(), key{}, 7), g, func(ctx context.Context) error {
			if ctx.Value(key{}) != 7 {
				t.Error("another context")
			}
			<-ctx.Done()
			elapse(time.Millisecond)
			return ctx.Err()
		})
		if err != nil {
			t.Fatal(err)
		}
		// These wait behind it, for longer than they have, and never begin.
		never := func(context.Context) error { t.Error("began too late"); return nil }
		late := begin(t, p, g, never)
		ctx, cancel := context.WithCancel(t.Context())
		canceled, err := p.Go(ctx, g, never)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		wantErr(t, task, context.DeadlineExceeded)
		wantErr(t, late, context.DeadlineExceeded)
		wantErr(t, canceled, context.Canceled)
		if n := g.Snapshot().Bulkhead.InFlight; n != 0 {
			t.Errorf("%d in flight", n)
		}
		if task, err := p.Go(nil, rt.For("b"), func(ctx context.Context) error { return ctx.Err() }); err != nil { //nolint:staticcheck // as the guard
			t.Error(err)
		} else {
			wantErr(t, task, nil)
		}
	})
}

func TestPanicReachesTheWaiter(t *testing.T) {
	type told struct {
		key registry.Key
		err *pool.PanicError
	}
	reports := make(chan told, 10)
	p := newPool(t, pool.Config{Size: 1, Queue: 10, OnPanic: func(key registry.Key, err *pool.PanicError) {
		reports <- told{key, err}
		panic("in OnPanic, too")
	}})
	g := newRuntime(t).For("shop.Make")
	var tasks []*pool.Task
	for range 5 {
		tasks = append(tasks, begin(t, p, g, explode))
	}
	wantErr(t, begin(t, p, g, func(context.Context) error { return nil }), nil)
	for _, task := range tasks {
		err := task.Err()
		var pe *pool.PanicError
		if !errors.As(err, &pe) || pe.Value != any(errOwn) || !strings.Contains(string(pe.Stack), "pool_test.explode") {
			t.Fatalf("%v, want a PanicError with the stack of explode", err)
		}
		if !errors.Is(err, errOwn) || !strings.Contains(err.Error(), "panicked: its own") {
			t.Errorf("%v does not say what it was", err)
		}
	}
	for range 5 {
		if r := <-reports; r.key != "shop.Make" || !errors.Is(r.err, errOwn) {
			t.Errorf("told of %q, %v", r.key, r.err)
		}
	}
	if s := g.Snapshot(); s.Unrecorded != 5 || s.Failed != 0 || s.Bulkhead.InFlight != 0 {
		t.Errorf("the guard counts %+v", s)
	}
	if s := p.Snapshot(); s.Panicked != 5 || s.Exited != 0 {
		t.Errorf("the pool counts %+v", s)
	}
	if err := (&pool.PanicError{Value: 7}); err.Unwrap() != nil || err.Error() != "pool: the task panicked: 7" {
		t.Error(err)
	}
}

func explode(context.Context) error { panic(errOwn) }

func TestNilPanic(t *testing.T) {
	p, g := newPool(t, pool.Config{OnPanic: func(registry.Key, *pool.PanicError) {}}), newRuntime(t).For("a")
	task := begin(t, p, g, func(context.Context) error { panic(nil) }) //nolint:govet // on purpose
	var nilPanic *runtime.PanicNilError
	if err := task.Wait(t.Context()); !errors.As(err, &nilPanic) {
		t.Error(err)
	}
}

func TestGoexitIsSettled(t *testing.T) {
	p, g := newPool(t, pool.Config{Size: 2, Queue: 100}), wide(t)
	var ran atomic.Int64
	var tasks []*pool.Task
	for range 50 {
		tasks = append(tasks, begin(t, p, g, func(context.Context) error { ran.Add(1); runtime.Goexit(); return nil }))
	}
	for _, task := range tasks {
		wantErr(t, task, pool.ErrGoexit)
	}
	if s := p.Snapshot(); s.Exited != 50 || ran.Load() != 50 {
		t.Errorf("%d ran, the pool counts %+v", ran.Load(), s)
	}
	if s := g.Snapshot(); s.Unrecorded != 50 || s.Bulkhead.InFlight != 0 {
		t.Errorf("the guard counts %+v", s)
	}
}

// labelsHere is the part of a goroutine profile that has the labels of goroutines in this function.
//
//go:noinline
func labelsHere() string {
	var profile strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&profile, 1)
	for part := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(part, "labelsHere") {
			return part
		}
	}
	return ""
}

// Whoever starts a task is in no call afterwards, and the task has the labels of its context, not those of the goroutine's last task.
func TestLabels(t *testing.T) {
	p, rt := newPool(t, pool.Config{Size: 1, Queue: 1}), newRuntime(t)
	g := rt.For("a")
	ctx := pprof.WithLabels(t.Context(), pprof.Labels("route", "/buy"))
	var route, left string
	task, err := p.Go(ctx, g, func(ctx context.Context) error {
		if n := goroutine.Worn(); n != 0 && n != goroutine.ID() {
			t.Error("wears somebody else's badge")
		}
		if strings.Contains(labelsHere(), `"route":"/buy"`) {
			route = "/buy"
		}
		pprof.SetGoroutineLabels(pprof.WithLabels(ctx, pprof.Labels("left", "behind")))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := goroutine.Worn(); n != 0 {
		t.Errorf("after Go the caller wears the badge of %d", n)
	}
	wantErr(t, task, nil)
	if route != "/buy" {
		t.Errorf("the task's route is %q", route)
	}
	wantErr(t, begin(t, p, g, func(context.Context) error { left = labelsHere(); return nil }), nil)
	if strings.Contains(left, "behind") {
		t.Errorf("a task has labels of the one before: %s", left)
	}
	err = rt.Do("outer", func() error {
		wantErr(t, begin(t, p, g, func(context.Context) error { return nil }), nil)
		if goroutine.Worn() != goroutine.ID() {
			t.Error("Go inside a call took the call's badge off")
		}
		return nil
	})
	if err != nil || goroutine.Worn() != 0 {
		t.Errorf("%v, badge %d", err, goroutine.Worn())
	}
}
