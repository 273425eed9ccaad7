package guard_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// contextOf returns the context that a call gets, by each way that has one.
var contextOf = []struct {
	name string
	of   func(ctx context.Context, g *guard.Guard, see func(context.Context)) error
}{
	{"DoContext", func(ctx context.Context, g *guard.Guard, see func(context.Context)) error {
		return g.DoContext(ctx, func(ctx context.Context) error { see(ctx); return nil })
	}},
	{"CallWith", func(ctx context.Context, g *guard.Guard, see func(context.Context)) error {
		_, err := guard.CallWith(ctx, g, func(ctx context.Context) (int, error) { see(ctx); return 0, nil })
		return err
	}},
	{"Enter", func(ctx context.Context, g *guard.Guard, see func(context.Context)) error {
		return seePass(see)(g.Enter(ctx))
	}},
	{"EnterN", func(ctx context.Context, g *guard.Guard, see func(context.Context)) error {
		return seePass(see)(g.EnterN(ctx, 2))
	}},
	{"EnterScoped", func(ctx context.Context, g *guard.Guard, see func(context.Context)) error {
		return seePass(see)(g.EnterScoped(ctx))
	}},
}

func seePass(see func(context.Context)) func(guard.Pass, error) error {
	return func(pass guard.Pass, err error) error {
		if err == nil {
			see(pass.Context())
			pass.Exit()
		}
		return err
	}
}

func TestTimeoutOnlyShortens(t *testing.T) {
	for _, way := range contextOf {
		synctest.Test(t, func(t *testing.T) {
			g := declared(t, newRuntime(t), "k", registry.Spec{Timeout: 100 * time.Millisecond})
			type key struct{}
			for _, c := range []struct{ inherited, want time.Duration }{
				{0, 100 * time.Millisecond},
				{time.Second, 100 * time.Millisecond},
				{100 * time.Millisecond, 100 * time.Millisecond},
				{30 * time.Millisecond, 30 * time.Millisecond},
			} {
				ctx := context.WithValue(context.Background(), key{}, "value")
				if c.inherited > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.inherited)
					defer cancel()
				}
				start := time.Now()
				var kept context.Context
				err := way.of(ctx, g, func(got context.Context) {
					kept = got //nolint:fatcontext // to look at it after the call
					if end, ok := got.Deadline(); !ok || end.Sub(start) != c.want {
						t.Errorf("%s: inherited %v, the call's deadline is in %v (%v), want %v", way.name, c.inherited, end.Sub(start), ok, c.want)
					}
					if got.Value(key{}) != "value" || got.Err() != nil {
						t.Errorf("%s: the context lost its value, or is done: %v", way.name, got.Err())
					}
					<-got.Done()
					if passed := time.Since(start); passed != c.want || !errors.Is(got.Err(), context.DeadlineExceeded) {
						t.Errorf("%s: it ended after %v with %v", way.name, passed, got.Err())
					}
				})
				if err != nil {
					t.Errorf("%s: %v", way.name, err)
				}
				if kept.Err() == nil {
					t.Errorf("%s: the context outlives the call", way.name)
				}
			}
		})
	}
}

// The timer is freed when the call ends, not when it would have fired; a context without a timeout is the caller's own.
func TestContextEndsWithTheCall(t *testing.T) {
	for _, way := range contextOf {
		synctest.Test(t, func(t *testing.T) {
			rt := newRuntime(t)
			timed := declared(t, rt, "timed", registry.Spec{Timeout: time.Hour})
			parent, cancel := context.WithCancel(context.Background())
			defer cancel()
			var inside context.Context
			keep := func(ctx context.Context) { inside = ctx } //nolint:fatcontext // to look at it after the call
			if err := way.of(parent, timed, keep); err != nil {
				t.Fatal(err)
			}
			if !errors.Is(inside.Err(), context.Canceled) {
				t.Errorf("%s: after the call its context says %v", way.name, inside.Err())
			}
			plain := declared(t, rt, "plain", registry.Spec{})
			if err := way.of(parent, plain, keep); err != nil {
				t.Fatal(err)
			}
			if inside != parent {
				t.Errorf("%s: without a timeout the context is another one", way.name)
			}
		})
	}
}

// However a call ends, the context that was derived for it is released.
func TestNoTimerIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		injector := &script{}
		rt := newRuntime(t, guard.WithInjector(injector))
		g := declared(t, rt, "k", registry.Spec{Timeout: time.Hour, Limit: 1})
		seen := &watchedContext{Context: context.Background(), done: make(chan struct{})}
		try := func(what string, f func()) {
			t.Helper()
			func() {
				defer func() { _ = recover() }()
				f()
			}()
			if seen.children != 0 {
				t.Errorf("%s: %d contexts of calls are not released", what, seen.children)
			}
		}
		ways := map[string]func(func(context.Context) error) error{
			"DoContext": func(fn func(context.Context) error) error { return g.DoContext(seen, fn) },
			"Enter": func(fn func(context.Context) error) error {
				pass, err := g.Enter(seen)
				if err != nil {
					return err
				}
				defer pass.Exit()
				return fn(pass.Context())
			},
		}
		for name, do := range ways {
			*injector = script{}
			try(name+": success", func() {
				_ = do(func(context.Context) error {
					if seen.children != 1 {
						t.Errorf("%d contexts are derived for a call", seen.children)
					}
					return nil
				})
			})
			try(name+": panic", func() { _ = do(func(context.Context) error { panic(1) }) })
			injector.inject = errWork
			try(name+": injected error", func() { _ = do(func(context.Context) error { return nil }) })
			injector.inject, injector.panics = nil, "injected"
			try(name+": injected panic", func() { _ = do(func(context.Context) error { return nil }) })
			*injector = script{refuse: guard.ReasonDenied}
			try(name+": refusal", func() { _ = do(func(context.Context) error { return nil }) })
		}
		wantIdle(t, g)
	})
}

// watchedContext counts the contexts that were derived from it and not cancelled, through the interface that package context
// offers to contexts of others.
type watchedContext struct {
	context.Context
	done     chan struct{}
	children int
}

func (c *watchedContext) Done() <-chan struct{} { return c.done }

func (c *watchedContext) AfterFunc(func()) (stop func() bool) {
	c.children++
	stopped := false
	return func() bool {
		if stopped {
			return false
		}
		stopped = true
		c.children--
		return true
	}
}

func TestDeadContextIsRefused(t *testing.T) {
	for _, path := range paths {
		for _, way := range contextOf {
			synctest.Test(t, func(t *testing.T) {
				g := declared(t, newRuntime(t), "k", path.spec)
				ran := func(context.Context) { t.Error("a call ran under a context that was done") }
				canceled, cancel := context.WithCancel(context.Background())
				cancel()
				err := way.of(canceled, g, ran)
				wantReason(t, err, guard.ReasonCanceled)
				if !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v", err)
				}
				late, cancel := context.WithTimeout(context.Background(), time.Millisecond)
				defer cancel()
				elapse(time.Millisecond)
				synctest.Wait()
				err = way.of(late, g, ran)
				wantReason(t, err, guard.ReasonDeadline)
				if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
					t.Errorf("%v", err)
				}
				caused, cancelCause := context.WithCancelCause(context.Background())
				cancelCause(context.DeadlineExceeded) // Err is what counts, not the cause
				wantReason(t, way.of(caused, g, ran), guard.ReasonCanceled)
				if s := g.Snapshot(); s.Refused[guard.ReasonCanceled] != 2 || s.Refused[guard.ReasonDeadline] != 1 || s.Admitted != 0 {
					t.Errorf("refused %v, admitted %d", s.Refused, s.Admitted)
				}
			})
		}
	}
}

func TestFloor(t *testing.T) {
	for _, way := range contextOf {
		synctest.Test(t, func(t *testing.T) {
			rt := newRuntime(t)
			for _, spec := range []registry.Spec{
				{Floor: 50 * time.Millisecond},
				{Floor: 50 * time.Millisecond, Timeout: time.Second},
				{Floor: 50 * time.Millisecond, Timeout: 50 * time.Millisecond},
			} {
				g := declared(t, rt, "k", spec)
				for _, c := range []struct {
					remaining time.Duration
					want      guard.Reason
				}{
					{0, guard.ReasonNone}, // no deadline at all
					{time.Hour, guard.ReasonNone},
					{50 * time.Millisecond, guard.ReasonNone},
					{50*time.Millisecond - 1, guard.ReasonDeadline},
					{time.Nanosecond, guard.ReasonDeadline},
				} {
					ctx, cancel := context.Background(), func() {}
					if c.remaining > 0 {
						ctx, cancel = context.WithTimeout(ctx, c.remaining)
					}
					ran := false
					err := way.of(ctx, g, func(context.Context) { ran = true })
					cancel()
					if ran != (c.want == guard.ReasonNone) {
						t.Errorf("%s, %v: with %v left it ran: %v (%v)", way.name, spec, c.remaining, ran, err)
					}
					if c.want != guard.ReasonNone {
						wantReason(t, err, c.want)
					}
				}
			}
		})
	}
}

// What a call waits is taken from its timeout; when it enters at last with less than the floor, it is not worth starting.
func TestWaitCountsIntoTheTimeout(t *testing.T) {
	for _, way := range contextOf {
		for _, c := range []struct {
			name                         string
			spec                         registry.Spec
			inherited, busy, left, after time.Duration
			want                         guard.Reason
		}{
			{
				"enough is left", registry.Spec{Wait: time.Minute, Timeout: 100 * time.Millisecond, Floor: 20 * time.Millisecond},
				0, 70 * time.Millisecond, 30 * time.Millisecond, 70 * time.Millisecond, guard.ReasonNone,
			},
			{
				"less than the floor of the timeout", registry.Spec{Wait: time.Minute, Timeout: 100 * time.Millisecond, Floor: 20 * time.Millisecond},
				0, 90 * time.Millisecond, 0, 90 * time.Millisecond, guard.ReasonDeadline,
			},
			{
				"less than the floor of the caller's deadline", registry.Spec{Wait: time.Minute, Floor: 20 * time.Millisecond},
				100 * time.Millisecond, 90 * time.Millisecond, 0, 90 * time.Millisecond, guard.ReasonDeadline,
			},
			{
				"the caller's deadline is the nearer", registry.Spec{Wait: time.Minute, Timeout: time.Second},
				100 * time.Millisecond, 90 * time.Millisecond, 10 * time.Millisecond, 90 * time.Millisecond, guard.ReasonNone,
			},
			{
				"the timeout ends the wait", registry.Spec{Wait: time.Minute, Timeout: 100 * time.Millisecond},
				0, time.Hour, 0, 100 * time.Millisecond, guard.ReasonFull,
			},
			{
				"the wait ends the wait", registry.Spec{Wait: 50 * time.Millisecond, Timeout: 100 * time.Millisecond},
				0, time.Hour, 0, 50 * time.Millisecond, guard.ReasonFull,
			},
			{
				"the caller's deadline ends the wait", registry.Spec{Wait: time.Minute},
				100 * time.Millisecond, time.Hour, 0, 100 * time.Millisecond, guard.ReasonDeadline,
			},
		} {
			if way.name == "EnterN" {
				continue // weighs 2
			}
			t.Run(way.name+"/"+c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c.spec.Limit, c.spec.Stale = 1, 24*time.Hour
					g := declared(t, newRuntime(t), "k", c.spec)
					h := block(g.Do)
					time.AfterFunc(c.busy, func() { close(h.leave) })
					ctx := context.Background()
					if c.inherited > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, c.inherited)
						defer cancel()
					}
					start := time.Now()
					err := way.of(ctx, g, func(ctx context.Context) {
						if c.want != guard.ReasonNone {
							t.Error("it ran")
						}
						if end, _ := ctx.Deadline(); time.Until(end) != c.left {
							t.Errorf("it has %v left, want %v", time.Until(end), c.left)
						}
					})
					if passed := time.Since(start); passed != c.after {
						t.Errorf("it took %v, want %v", passed, c.after)
					}
					if c.want != guard.ReasonNone {
						wantReason(t, err, c.want)
					} else if err != nil {
						t.Error(err)
					}
					if err := <-h.done; err != nil {
						t.Error(err)
					}
					wantIdle(t, g)
				})
			})
		}
	}
}

func TestCallerThatGoesWhileWaiting(t *testing.T) {
	for _, way := range contextOf {
		if way.name == "EnterN" {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			g := declared(t, newRuntime(t), "k", registry.Spec{Limit: 1, Wait: time.Minute})
			h := block(g.Do)
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(10*time.Millisecond, cancel)
			start := time.Now()
			err := way.of(ctx, g, func(context.Context) { t.Error("it ran") })
			wantReason(t, err, guard.ReasonCanceled)
			if time.Since(start) != 10*time.Millisecond || !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v after %v", way.name, err, time.Since(start))
			}
			// Gone and granted in the same instant: either way nothing is kept.
			ctx, cancel = context.WithCancel(context.Background())
			time.AfterFunc(10*time.Millisecond, cancel)
			time.AfterFunc(10*time.Millisecond, func() { close(h.leave) })
			if err := way.of(ctx, g, func(context.Context) {}); err != nil {
				wantReason(t, err, guard.ReasonCanceled)
			}
			if err := <-h.done; err != nil {
				t.Error(err)
			}
			wantIdle(t, g)
		})
	}
}

// In real time every call loses some microseconds on its way in: that is no wait.
func TestFloorAsHighAsTheTimeout(t *testing.T) {
	g := declared(t, newRuntime(t), "k", registry.Spec{Limit: 1, Wait: time.Minute, Timeout: time.Hour, Floor: time.Hour})
	for _, way := range contextOf {
		if way.name == "EnterN" {
			continue
		}
		ran := false
		if err := way.of(context.Background(), g, func(context.Context) { ran = true }); err != nil || !ran {
			t.Errorf("%s: %v", way.name, err)
		}
	}
}

// Do has no context to put a timeout on: it bounds the wait alone.
func TestTimeoutBoundsTheWaitOfDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := declared(t, newRuntime(t), "k", registry.Spec{
			Limit: 1, Wait: time.Minute, Timeout: 100 * time.Millisecond, Floor: 50 * time.Millisecond,
		})
		h := block(g.Do)
		start := time.Now()
		wantReason(t, g.Do(nothing), guard.ReasonFull)
		if time.Since(start) != 100*time.Millisecond {
			t.Errorf("it waited for %v", time.Since(start))
		}
		time.AfterFunc(90*time.Millisecond, func() { close(h.leave) })
		if err := g.Do(nothing); err != nil {
			t.Error(err)
		}
		if err := <-h.done; err != nil {
			t.Error(err)
		}
	})
}
