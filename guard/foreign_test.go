package guard_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// foreign is somebody's context that misbehaves at its n-th call.
type foreign struct {
	context.Context
	calls, at atomic.Int64 // the context package calls it on timers' goroutines, too
	harm      func()
}

func (f *foreign) count() {
	if f.calls.Add(1) == f.at.Load() {
		f.harm()
	}
}

func (f *foreign) Done() <-chan struct{}       { f.count(); return f.Context.Done() }
func (f *foreign) Err() error                  { f.count(); return f.Context.Err() }
func (f *foreign) Deadline() (time.Time, bool) { f.count(); return f.Context.Deadline() }
func (f *foreign) Value(key any) any           { f.count(); return f.Context.Value(key) }

// Whatever a context does, at whichever of its calls, it costs no place, and nobody passes for nested afterwards.
func TestForeignContextsCostNoPlace(t *testing.T) {
	enters := map[string]func(g *guard.Guard, ctx context.Context){
		"Enter": func(g *guard.Guard, ctx context.Context) {
			p, _ := g.Enter(ctx)
			defer p.Exit()
		},
		"EnterN": func(g *guard.Guard, ctx context.Context) {
			p, _ := g.EnterN(ctx, 2)
			defer p.Exit()
		},
		"EnterScoped": func(g *guard.Guard, ctx context.Context) {
			p, _ := g.EnterScoped(ctx)
			defer p.Exit()
		},
		"DoContext": func(g *guard.Guard, ctx context.Context) {
			_ = g.DoContext(ctx, func(context.Context) error { return nil })
		},
	}
	kinds := map[string]registry.Spec{
		"plain":   {Limit: 2, Expand: 1},
		"timeout": {Limit: 2, Expand: 1, Timeout: time.Second, Floor: time.Millisecond},
		"wait":    {Limit: 2, Expand: 1, Wait: time.Second, Timeout: 2 * time.Second},
	}
	harms := map[string]func(){"panic": func() { panic("foreign") }, "goexit": runtime.Goexit}
	for kind, spec := range kinds {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := newRuntime(t)
				g := declared(t, rt, "k", spec)
				for name, enter := range enters {
					for harmName, harm := range harms {
						for at := 1; at <= 12; at++ {
							full := at%2 == 0 // every other time the call has to wait, where it may
							var held guard.Pass
							if full {
								held, _ = g.EnterN(t.Context(), 2)
							}
							done := make(chan struct{})
							go func() {
								defer close(done)
								func() {
									f := &foreign{Context: t.Context(), harm: harm}
									f.at.Store(int64(at))
									defer func() { f.at.Store(0); _ = recover() }()
									enter(g, f)
								}()
								nested := g.Snapshot().Nested
								_ = g.Do(func() error { return nil })
								if g.Snapshot().Nested != nested {
									t.Errorf("%s, %s at call %d: the goroutine passes for nested from then on", name, harmName, at)
								}
							}()
							elapse(10 * time.Millisecond)
							held.Exit()
							<-done
							elapse(3 * time.Second)
							if s := g.Snapshot().Bulkhead; s.InFlight != 0 || s.Waiting != 0 {
								t.Fatalf("%s, %s at call %d, full %v: in flight %d, waiting %d", name, harmName, at, full, s.InFlight, s.Waiting)
							}
						}
					}
				}
			})
		})
	}
}
