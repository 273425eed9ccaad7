package guard_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/spillway-go/spillway/breaker"
	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// A call of every way, that does what fn does.
var throughs = map[string]func(g *guard.Guard, fn func() error) error{
	"Do": func(g *guard.Guard, fn func() error) error { return g.Do(fn) },
	"DoContext": func(g *guard.Guard, fn func() error) error {
		return g.DoContext(context.Background(), func(context.Context) error { return fn() })
	},
	"DoN": func(g *guard.Guard, fn func() error) error {
		return g.DoN(context.Background(), 2, func(context.Context) error { return fn() })
	},
	"Enter": passThrough((*guard.Guard).Enter), "EnterScoped": passThrough((*guard.Guard).EnterScoped),
}

func passThrough(enter func(*guard.Guard, context.Context) (guard.Pass, error)) func(*guard.Guard, func() error) error {
	return func(g *guard.Guard, fn func() error) error {
		pass, err := enter(g, context.Background())
		if err != nil {
			return err
		}
		defer pass.Exit()
		err = fn()
		pass.Record(err)
		return err
	}
}

func broken() error { return errWork }

// breakable are the plans with a breaker that four failures open for a second, and one probe closes.
func breakable() map[string]registry.Spec {
	list := map[string]registry.Spec{}
	for _, path := range paths {
		s := path.spec
		s.Limit = 10
		s.Breaker = registry.Breaker{Min: 4, Open: time.Second, Probes: 1}
		list[path.name] = s
	}
	return list
}

// Failures open the breaker, whatever way they come; it refuses, lets a probe through, and closes.
func TestBreakerInTheGuard(t *testing.T) {
	for plan, spec := range breakable() {
		for way, through := range throughs {
			t.Run(plan+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					rt := newRuntime(t)
					g := declared(t, rt, "k", spec)
					events := rt.Subscribe(100)
					for range 4 {
						if err := through(g, broken); !errors.Is(err, errWork) {
							t.Fatal(err)
						}
					}
					r := rejectionOf(t, through(g, nothing), guard.ReasonOpen)
					if !errors.Is(r, breaker.ErrOpen) || r.RetryAfter() != time.Second {
						t.Errorf("%v, again after %v", r, r.RetryAfter())
					}
					if s := g.Snapshot(); s.Breaker.State != breaker.Open || s.Refused[guard.ReasonOpen] != 1 || s.Failed != 4 {
						t.Errorf("%+v, breaker %+v", s, s.Breaker)
					}
					elapse(time.Second + time.Millisecond)
					if err := through(g, broken); !errors.Is(err, errWork) { // a probe that fails
						t.Error(err)
					}
					wantReason(t, through(g, nothing), guard.ReasonOpen)
					elapse(time.Second + time.Millisecond)
					for range 5 {
						if err := through(g, nothing); err != nil {
							t.Error(err)
						}
					}
					if s := g.Snapshot(); s.Breaker.State != breaker.Closed || s.Admitted != 10 && spec.Group == "" {
						t.Errorf("%d admitted, breaker %+v", s.Admitted, s.Breaker)
					}
					elapse(time.Second)
					var told []string
					for _, e := range ofKind(drain(t, events), guard.EventBreaker) {
						told = append(told, e.Cause)
					}
					if got := strings.Join(told, " "); got != "open half_open open half_open closed" {
						t.Errorf("told: %s", got)
					}
					wantIdle(t, g)
				})
			})
		}
	}
}

// K1 through the guard: probes that panic, exit, hang or are lost do not wedge it.
func TestK1ProbesInTheGuard(t *testing.T) {
	for name, probe := range map[string]func(g *guard.Guard, leave chan struct{}){
		"panic": func(g *guard.Guard, _ chan struct{}) {
			defer func() { _ = recover() }()
			_ = g.Do(func() error { panic("no") })
		},
		"Goexit":    func(g *guard.Guard, _ chan struct{}) { _ = g.Do(func() error { runtime.Goexit(); return nil }) },
		"hang":      func(g *guard.Guard, leave chan struct{}) { _ = g.Do(func() error { <-leave; return nil }) },
		"lost":      func(g *guard.Guard, _ chan struct{}) { _, _ = g.Enter(context.Background()) },
		"no Record": func(g *guard.Guard, _ chan struct{}) { p, _ := g.Enter(context.Background()); p.Exit() },
		"double Exit": func(g *guard.Guard, _ chan struct{}) {
			p, _ := g.Enter(context.Background())
			p.Record(errWork)
			p.Exit()
			p.Record(nil)
			p.Exit()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := declared(t, newRuntime(t), "k", breakable()["direct"])
				for range 4 {
					_ = g.Do(broken)
				}
				elapse(time.Second + time.Millisecond)
				leave := make(chan struct{})
				var calls sync.WaitGroup
				calls.Go(func() { probe(g, leave) })
				synctest.Wait()
				wantReason(t, g.Do(nothing), guard.ReasonOpen)
				elapse(time.Second + time.Millisecond) // the lease
				if g.Do(nothing) != nil {
					elapse(time.Second + time.Millisecond)
					if err := g.Do(nothing); err != nil {
						t.Error(err)
					}
				}
				if s := g.Snapshot().Breaker; s.State != breaker.Closed {
					t.Errorf("%+v", s)
				}
				close(leave)
				calls.Wait()
			})
		})
	}
}

// A refusal counts for no earlier stage: neither a full bulkhead nor a caller that gave up opens the breaker, and a probe that finds no
// place is given back.
func TestRefusalsAreNoFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t)
		spec := breakable()["direct"]
		spec.Limit = 1
		g := declared(t, rt, "k", spec)
		h := block(g.Do)
		for range 20 {
			wantReason(t, g.Do(nothing), guard.ReasonFull)
		}
		close(h.leave)
		<-h.done
		full := declared(t, rt, "full", registry.Spec{Limit: 1})
		inner := block(full.Do)
		for range 20 {
			_ = g.Do(func() error { return fmt.Errorf("reading: %w", context.Canceled) })
			_ = g.Do(func() error { return full.Do(nothing) })
		}
		close(inner.leave)
		<-inner.done
		if s := g.Snapshot(); s.Breaker.State != breaker.Closed || s.Breaker.Failures != 0 || s.Breaker.Calls != 1 || s.Failed != 40 {
			t.Errorf("failed %d, breaker %+v", s.Failed, s.Breaker)
		}
		for range 4 {
			_ = g.Do(broken)
		}
		wantReason(t, g.Do(nothing), guard.ReasonOpen)
		elapse(time.Second + time.Millisecond)
		h = block(g.Do) // the probe
		wantReason(t, g.Do(nothing), guard.ReasonOpen)
		close(h.leave)
		if err := <-h.done; err != nil {
			t.Error(err)
		}
		if err := g.Do(nothing); err != nil {
			t.Error(err)
		}
	})
}

// K2 through the guard: a call of before the trip does not count after it.
func TestK2LateFailuresInTheGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec := breakable()["direct"]
		spec.Breaker.Min = 1
		g := declared(t, newRuntime(t), "k", spec)
		leave := make(chan struct{})
		var late sync.WaitGroup
		for range 4 {
			late.Go(func() { _ = g.Do(func() error { <-leave; return errWork }) })
		}
		synctest.Wait()
		elapse(time.Millisecond)
		for range 6 {
			_ = g.Do(broken)
		}
		elapse(time.Second + time.Millisecond)
		if err := g.Do(nothing); err != nil { // the probe
			t.Error(err)
		}
		close(leave)
		late.Wait()
		if s := g.Snapshot().Breaker; s.State != breaker.Closed || s.Failures != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// Calls slower than the breaker's slow are failures.
func TestSlowCallsInTheGuard(t *testing.T) {
	for way, through := range throughs {
		synctest.Test(t, func(t *testing.T) {
			spec := breakable()["direct"]
			spec.Breaker.Slow = 100 * time.Millisecond
			g := declared(t, newRuntime(t), "k", spec)
			slow := func() error { <-time.After(101 * time.Millisecond); return nil }
			for range 4 {
				if err := through(g, slow); err != nil {
					t.Fatal(err)
				}
			}
			wantReason(t, through(g, nothing), guard.ReasonOpen)
			elapse(time.Second + time.Millisecond)
			if err := through(g, slow); err != nil { // a probe
				t.Error(err)
			}
			if s := g.Snapshot(); s.Breaker.State != breaker.Open || s.Failed != 0 {
				t.Errorf("%s: failed %d, %+v", way, s.Failed, s.Breaker)
			}
		})
	}
}

// Successes of the direct path count, although nobody tells the breaker of them.
func TestRatioOfTheDirectPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := declared(t, newRuntime(t), "k", registry.Spec{Limit: 10, Breaker: registry.Breaker{Ratio: 0.5}})
		for range 30 { // a third fails, for a minute
			for range 20 {
				_, _, _ = g.Do(nothing), g.Do(nothing), g.Do(broken)
			}
			elapse(2 * time.Second)
		}
		if s := g.Snapshot().Breaker; s.State != breaker.Closed || s.Calls < 240 || s.Calls > 360 || s.Failures*3 != s.Calls {
			t.Errorf("%+v", s)
		}
		for range 400 { // now all fail
			_ = g.Do(broken)
		}
		if s := g.Snapshot().Breaker; s.State != breaker.Open {
			t.Errorf("%+v", s)
		}
	})
}

// A breaker keeps its state when another part of the spec changes, and is new when its own does.
func TestBreakerAndNewSpecs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t)
		spec := breakable()["direct"]
		g := declared(t, rt, "k", spec)
		for range 4 {
			_ = g.Do(broken)
		}
		spec.Limit = 20
		replace(t, rt, map[registry.Key]registry.Spec{"k": spec})
		wantReason(t, g.Do(nothing), guard.ReasonOpen)
		spec.Breaker.Min = 5
		replace(t, rt, map[registry.Key]registry.Spec{"k": spec})
		if err := g.Do(nothing); err != nil {
			t.Error(err)
		}
		if err := g.SetBreaker(breaker.ForceOpen); err != nil {
			t.Error(err)
		}
		wantReason(t, g.Do(nothing), guard.ReasonOpen)
		spec.Breaker = registry.Breaker{}
		replace(t, rt, map[registry.Key]registry.Spec{"k": spec})
		if err := g.Do(nothing); err != nil || g.Snapshot().Breaker != nil {
			t.Error(err)
		}
		if err := g.SetBreaker(breaker.ForceOpen); err == nil || err.Error() != "guard: the key has no breaker" {
			t.Error(err)
		}
	})
}

// The user says what a failure is.
func TestJudge(t *testing.T) {
	notFound := errors.New("not found")
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t, guard.WithJudge(func(key registry.Key, err error) breaker.Outcome {
			if key == "k" && errors.Is(err, notFound) {
				return breaker.Success
			}
			return breaker.Judge(err)
		}))
		g := declared(t, rt, "k", breakable()["direct"])
		for range 50 {
			_ = g.Do(func() error { return notFound })
		}
		if s := g.Snapshot().Breaker; s.State != breaker.Closed {
			t.Errorf("%+v", s)
		}
	})
}

// A key whose breaker is not closed does not grow.
func TestA5NoGrowthWhileTheBreakerIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t, guard.WithPressure(newWeather()))
		events := rt.Subscribe(100)
		spec := breakable()["direct"]
		spec.Limit, spec.Breaker.Min = 2, 1
		g := declared(t, rt, "k", spec)
		leave := make(chan struct{})
		pile(g, 2, leave)
		_ = g.SetBreaker(breaker.Normal)
		elapse(time.Second)
		g.EnterN(context.Background(), 1) // grows, all is well
		if b := g.Snapshot().Bulkhead.Bound; b != 4 {
			t.Errorf("the bound is %d", b)
		}
		for range 3 {
			_ = g.Do(broken)
		}
		elapse(time.Second + time.Millisecond) // half-open soon: probes ask for places
		pile(g, 1, leave)
		pile(g, 3, leave)
		elapse(time.Second)
		if b := g.Snapshot().Bulkhead.Bound; b > 4 {
			t.Errorf("the bound is %d: %v", b, drain(t, events))
		}
		close(leave)
		synctest.Wait()
	})
}

// The throttle refuses at the source, by criticality, and lets go when the other side is well again.
func TestThrottleInTheGuard(t *testing.T) {
	for plan, spec := range breakable() {
		spec.Breaker, spec.Throttle = registry.Breaker{}, registry.Throttle{On: true}
		t.Run(plan, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := newRuntime(t)
				g := declared(t, rt, "k", spec)
				call := func(fn func() error) bool {
					<-time.After(5 * time.Millisecond)
					err := g.Do(fn)
					if errors.Is(err, breaker.ErrThrottled) {
						wantReason(t, err, guard.ReasonThrottled)
						return false
					}
					return true
				}
				for range 500 {
					if !call(nothing) {
						t.Fatal("throttled while all is well")
					}
				}
				sent := 0
				for range 6000 { // half a minute of outage
					if call(broken) {
						sent++
					}
				}
				if sent > 1500 {
					t.Errorf("%d of 6000 calls were sent into the outage", sent)
				}
				start := time.Now()
				for refused := 0; ; refused = 0 {
					for range 100 {
						if !call(nothing) {
							refused++
						}
					}
					if refused == 0 {
						break
					}
				}
				if took := time.Since(start); took > 10*time.Second {
					t.Errorf("full traffic is back after %v", took)
				}
				if s := g.Snapshot(); s.Throttle == nil || s.Throttle.Throttled != s.Refused[guard.ReasonThrottled] {
					t.Errorf("%+v, refused %v", s.Throttle, s.Refused)
				}
			})
		})
	}
}

func TestBreakerInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		rt := newRuntime(t, guard.WithLogger(zerolog.New(&log)))
		g := declared(t, rt, "k", breakable()["direct"])
		for range 4 {
			_ = g.Do(broken)
		}
		_ = rt.Close()
		if want := `{"level":"warn","event":"breaker","key":"k","state":"open","why":"4 of 4 calls failed in 10s","message":"k: breaker open: 4 of 4 calls failed in 10s"}`; !strings.Contains(log.String(), want) {
			t.Errorf("the log is\n%s", log.String())
		}
	})
}
