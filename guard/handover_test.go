package guard_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// A pass that runs on another goroutine is a call of that one: one place, counted once, nested calls pass through, whatever way it ends.
func TestRunOfAPassElsewhere(t *testing.T) {
	for _, path := range paths {
		for _, weight := range []int{1, 3} {
			t.Run(path.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					spec := path.spec
					spec.Limit = 3
					spec.Expand = 1
					g := declared(t, newRuntime(t), "k", spec)
					elsewhere := func(fn func(context.Context) error) (err error) {
						pass, err := g.EnterN(context.Background(), weight)
						if err != nil {
							t.Fatal(err)
						}
						var done sync.WaitGroup
						done.Go(func() {
							defer func() { _ = recover() }()
							err = pass.Run(fn)
						})
						done.Wait()
						pass.Exit() // there is nothing to give any more
						return err
					}
					inside := func(context.Context) error {
						if n := g.Snapshot().Bulkhead.InFlight; n != weight {
							t.Errorf("%d places are taken inside, want %d", n, weight)
						}
						return g.Do(func() error { return errWork })
					}
					if err := elsewhere(inside); !errors.Is(err, errWork) {
						t.Error(err)
					}
					_ = elsewhere(func(context.Context) error { panic("no") })
					_ = elsewhere(func(context.Context) error { runtime.Goexit(); return nil })
					if err := elsewhere(func(context.Context) error { return nil }); err != nil {
						t.Error(err)
					}
					s := g.Snapshot()
					// The inner call passed through, or took a place where one was free.
					own := 1 - s.Nested
					if s.Failed != 1+own || s.Unrecorded != 2 || own > 1 || own == 1 && weight == 3 || spec.Group == "" && s.Admitted != 4+own {
						t.Errorf("failed %d, unrecorded %d, nested %d, admitted %d", s.Failed, s.Unrecorded, s.Nested, s.Admitted)
					}
					wantIdle(t, g)
				})
			})
		}
	}
}

// What Run cannot hand over keeps being what it was: a scoped pass, one that was evicted, the zero pass.
func TestRunOfOtherPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t)
		g := declared(t, rt, "k", registry.Spec{Limit: 1, Expand: 2, Stale: time.Second})
		fn := func(context.Context) error { return errWork }
		scoped, err := g.EnterScoped(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := scoped.Run(fn); !errors.Is(err, errWork) {
			t.Error(err)
		}
		stuck, err := g.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		elapse(2 * time.Second)
		newcomer, err := g.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stuck.Run(fn); !errors.Is(err, errWork) {
			t.Error(err)
		}
		newcomer.Exit()
		var zero guard.Pass
		if err := zero.Run(fn); !errors.Is(err, errWork) {
			t.Error(err)
		}
		if s := g.Snapshot(); s.Failed != 2 || s.Unrecorded != 1 {
			t.Errorf("%+v", s)
		}
		wantIdle(t, g)
	})
}

// Handed over, lost, evicted and given back at the same time: nothing is given back twice.
func TestRunRaces(t *testing.T) {
	g := declared(t, newRuntime(t), "k", registry.Spec{Limit: 8, Expand: 2, Stale: 10 * time.Millisecond})
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for range 2000 {
				pass, err := g.Enter(context.Background())
				if err != nil {
					continue
				}
				var other sync.WaitGroup
				twin := pass
				other.Go(func() { twin.Exit() })
				_ = pass.Run(func(context.Context) error { return nil })
				other.Wait()
			}
		})
	}
	workers.Wait()
	wantIdle(t, g)
}
