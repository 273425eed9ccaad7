package guard_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
	"github.com/spillway-go/spillway/watchdog"
)

// stuckIn is where the late calls of these tests stand.
//
//go:noinline
func stuckIn(leave chan struct{}) error {
	<-leave
	return nil
}

// The ways to make a call, each in a function of its own, as a program has them.
var stuckWays = map[string]func(g *guard.Guard, leave chan struct{}) error{
	"Do": func(g *guard.Guard, leave chan struct{}) error { return g.Do(func() error { return stuckIn(leave) }) },
	"DoContext": func(g *guard.Guard, leave chan struct{}) error {
		return g.DoContext(context.Background(), func(context.Context) error { return stuckIn(leave) })
	},
	"Call": func(g *guard.Guard, leave chan struct{}) error {
		_, err := guard.CallWith(context.Background(), g, func(context.Context) (int, error) { return 1, stuckIn(leave) })
		return err
	},
	"Enter":       inPass((*guard.Guard).Enter),
	"EnterScoped": inPass((*guard.Guard).EnterScoped),
	"EnterN":      inPassN((*guard.Guard).EnterN),
	"DoN": func(g *guard.Guard, leave chan struct{}) error {
		return g.DoN(context.Background(), 2, func(context.Context) error { return stuckIn(leave) })
	},
}

func inPass(enter func(*guard.Guard, context.Context) (guard.Pass, error)) func(*guard.Guard, chan struct{}) error {
	return func(g *guard.Guard, leave chan struct{}) error {
		pass, err := enter(g, context.Background())
		if err != nil {
			return err
		}
		defer pass.Exit()
		err = stuckIn(leave)
		pass.Record(err)
		return err
	}
}

func inPassN(enter func(*guard.Guard, context.Context, int) (guard.Pass, error)) func(*guard.Guard, chan struct{}) error {
	return func(g *guard.Guard, leave chan struct{}) error {
		pass, err := enter(g, context.Background(), 2)
		if err != nil {
			return err
		}
		defer pass.Exit()
		return stuckIn(leave)
	}
}

// watched returns a runtime in the bubble whose late calls are told of.
func watched(t *testing.T, opts ...guard.Option) (*guard.Runtime, *guard.Subscription) {
	t.Helper()
	rt := newRuntime(t, append([]guard.Option{guard.WithWatchdog(watchdog.Config{})}, opts...)...)
	return rt, rt.Subscribe(1000)
}

// ofKind picks events.
func ofKind(list []guard.Event, kind guard.EventKind) (picked []guard.Event) {
	for _, e := range list {
		if e.Kind == kind {
			picked = append(picked, e)
		}
	}
	return picked
}

// Every way to make a call, through every plan: the late one is told with the stack where it stands, then again, then that it has ended.
func TestW1EveryCallShowsWhereItStands(t *testing.T) {
	for _, path := range paths {
		for name, way := range stuckWays {
			t.Run(path.name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					rt, events := watched(t)
					spec := path.spec
					spec.Slow, spec.Limit = time.Second, 20
					g := declared(t, rt, "k", spec)
					leave := make(chan struct{})
					var calls sync.WaitGroup
					for range 3 {
						calls.Go(func() {
							if err := way(g, leave); err != nil {
								t.Error(err)
							}
						})
					}
					elapse(1500 * time.Millisecond)
					slow := ofKind(drain(t, events), guard.EventSlow)
					told := 0
					for _, e := range slow {
						told += e.Report.Count
						stack := strings.Join(e.Report.Stack, "\n")
						if e.Key != "k" || !strings.Contains(stack, "guard_test.stuckIn ") || strings.Contains(stack, "spillway/guard.") {
							t.Errorf("%v: %q %s", e, e.Report.Stack, e.Report.NoStack)
						}
					}
					if told != 3 {
						t.Errorf("%d calls are told of in %v, want 3", told, slow)
					}
					elapse(time.Second)
					if still := ofKind(drain(t, events), guard.EventStillSlow); len(still) == 0 {
						t.Error("nothing is told at twice the age")
					}
					close(leave)
					calls.Wait()
					elapse(time.Second)
					ended := ofKind(drain(t, events), guard.EventSlowEnded)
					if len(ended) != 1 || ended[0].Report.Count != 3 {
						t.Errorf("the end is told as %v", ended)
					}
					wantIdle(t, g)
				})
			})
		}
	}
}

// A call of one key inside another's, and a key of a group: each is told under its own name.
func TestW1NestedAndGroupedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, events := watched(t)
		replace(t, rt, map[registry.Key]registry.Spec{
			"outer": {Limit: 2, Slow: time.Second},
			"inner": {Limit: 2, Slow: time.Second, Group: "g"},
			"other": {Limit: 2, Slow: time.Hour, Group: "g"},
		})
		leave := make(chan struct{})
		var calls sync.WaitGroup
		calls.Go(func() {
			_ = stuckWays["EnterScoped"](rt.For("other"), leave)
		})
		calls.Go(func() {
			_ = rt.For("outer").Do(func() error { return stuckWays["EnterScoped"](rt.For("inner"), leave) })
		})
		elapse(1500 * time.Millisecond)
		keys := map[registry.Key]bool{}
		for _, e := range ofKind(drain(t, events), guard.EventSlow) {
			keys[e.Key] = true
			if !strings.Contains(strings.Join(e.Report.Stack, " "), "stuckIn") {
				t.Errorf("%v: %q %s", e, e.Report.Stack, e.Report.NoStack)
			}
		}
		if len(keys) != 2 || !keys["outer"] || !keys["inner"] {
			t.Errorf("told of %v, want outer and inner", keys)
		}
		close(leave)
		calls.Wait()
	})
}

// A stream's age says nothing.
func TestPinnedPassIsNotSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, events := watched(t)
		pass, err := rt.For("k").Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		pass.Pin()
		elapse(time.Hour)
		if list := drain(t, events); len(list) != 0 {
			t.Errorf("told: %v", list)
		}
		pass.Exit()
	})
}

// The log has a line for each group of lost passes, the subscribers an event for each; and one line for slow calls in both forms.
func TestLateCallsInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		rt, events := watched(t, guard.WithLogger(zerolog.New(&log)))
		g := rt.For("k")
		var site string
		for range 3 {
			lose(g, &site)
		}
		leave := make(chan struct{})
		done := make(chan error)
		go func() { done <- stuckWays["Do"](g, leave) }()
		elapse(time.Second)
		for range 3 {
			runtime.GC()
		}
		elapse(5 * time.Second)
		close(leave)
		if err := <-done; err != nil {
			t.Error(err)
		}
		elapse(time.Second)
		if n := len(ofKind(drain(t, events), guard.EventLost)); n != 3 {
			t.Errorf("%d events of lost passes, want 3", n)
		}
		_ = rt.Close()
		for want, n := range map[string]int{
			`"event":"lost","key":"k","count":3,`:      1,
			`"site":"event_test.go:`:                   1,
			`"event":"slow","key":"k","count":1,`:      1,
			`guard_test.stuckIn`:                       1,
			`"event":"slow_ended","key":"k","count":1`: 1,
		} {
			if got := strings.Count(log.String(), want); got != n {
				t.Errorf("%d lines with %s, want %d:\n%s", got, want, n, log.String())
			}
		}
	})
}

// The user's function gets every report; a Log of the user's own takes the place of the runtime's.
func TestOnSlowAndLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told, logged := make(chan watchdog.Report, 10), make(chan watchdog.Report, 10)
		rt := newRuntime(t, guard.WithWatchdog(watchdog.Config{
			OnSlow: func(r watchdog.Report) { told <- r },
			Log:    func(r watchdog.Report) { logged <- r },
		}))
		events := rt.Subscribe(10)
		leave := make(chan struct{})
		done := make(chan error)
		go func() { done <- stuckWays["Do"](rt.For("k"), leave) }()
		elapse(6 * time.Second)
		close(leave)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if r := <-told; r.Kind != watchdog.Slow || r.Key != "k" {
			t.Errorf("OnSlow got %v", r)
		}
		if r := <-logged; r.Kind != watchdog.Slow || r.Key != "k" {
			t.Errorf("Log got %v", r)
		}
		if list := drain(t, events); len(list) != 0 {
			t.Errorf("events although Log is the user's: %v", list)
		}
	})
}

func TestWatchdogConfigIsChecked(t *testing.T) {
	_, err := guard.NewRuntime(nil, guard.WithWatchdog(watchdog.Config{Period: time.Hour}))
	if !errors.Is(err, watchdog.ErrConfig) || !strings.Contains(err.Error(), "Period is 1h0m0s, must be 10ms to 10s") {
		t.Errorf("got %v", err)
	}
}

// Exit twice, or on another goroutine, takes nobody's label off.
func TestW5ExitOfAPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, events := watched(t)
		g := declared(t, rt, "k", registry.Spec{Limit: 10, Slow: time.Second})
		leave := make(chan struct{})
		var calls sync.WaitGroup
		calls.Go(func() {
			first, err := g.Enter(context.Background())
			if err != nil {
				t.Error(err)
			}
			first.Exit()
			_ = g.Do(func() error {
				first.Exit()
				var elsewhere sync.WaitGroup
				second, err := rt.For("other").Enter(context.Background())
				if err != nil {
					t.Error(err)
				}
				elsewhere.Go(second.Exit)
				elsewhere.Wait()
				return stuckIn(leave)
			})
		})
		elapse(1500 * time.Millisecond)
		slow := ofKind(drain(t, events), guard.EventSlow)
		if len(slow) != 1 || len(slow[0].Report.Stack) == 0 {
			t.Errorf("told: %v, %+v", slow, slow[0].Report)
		}
		close(leave)
		calls.Wait()
	})
}

// One slow call among ten thousand goroutines, some of which look much like it.
func TestW1OneSlowCallAmongTenThousandGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, events := watched(t)
		g := declared(t, rt, "k", registry.Spec{Limit: 100, Slow: time.Second})
		other := declared(t, rt, "other", registry.Spec{Limit: 10_000, Slow: time.Hour})
		leave := make(chan struct{})
		var all sync.WaitGroup
		for i := range 10_000 {
			all.Go(func() {
				if i%10 == 0 {
					_ = stuckWays["EnterScoped"](other, leave)
					return
				}
				_ = stuckIn(leave)
			})
		}
		began := time.Now()
		all.Go(func() { _ = g.Do(func() error { return standHere(leave) }) })
		e, err := events.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 1500*time.Millisecond {
			t.Errorf("it was told after %v", took)
		}
		if e.Kind != guard.EventSlow || e.Key != "k" || !strings.Contains(strings.Join(e.Report.Stack, "\n"), "guard_test.standHere ") {
			t.Errorf("%v: %q %s", e, e.Report.Stack, e.Report.NoStack)
		}
		close(leave)
		all.Wait()
	})
}

//go:noinline
func standHere(leave chan struct{}) error {
	<-leave
	return nil
}
