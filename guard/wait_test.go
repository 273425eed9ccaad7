package guard_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// queue starts calls one after the other that all have to wait, then lets them go, and returns the order in which they ran.
func queue(t *testing.T, g *guard.Guard, calls ...call) []string {
	t.Helper()
	h := block(g.Do)
	var mu sync.Mutex
	var order []string
	var wg sync.WaitGroup
	for i, c := range calls {
		wg.Go(func() {
			if c.do == nil {
				c.do = func(ctx context.Context, fn func()) error {
					return g.DoContext(ctx, func(context.Context) error { fn(); return nil })
				}
			}
			err := c.do(c.ctx, func() {
				mu.Lock()
				order = append(order, c.name)
				mu.Unlock()
			})
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		})
		synctest.Wait()
		if n := g.Snapshot().Bulkhead.Waiting; n != i+1 {
			t.Fatalf("%d calls wait, want %d", n, i+1)
		}
		elapse(time.Millisecond)
	}
	_ = h.end()
	wg.Wait()
	wantIdle(t, g)
	return order
}

type call struct {
	name string
	ctx  context.Context
	do   func(ctx context.Context, fn func()) error
}

func at(c registry.Criticality) context.Context {
	return guard.WithCriticality(context.Background(), c)
}

// The more important go first, the older first among equals; calls that carry no level have that of the spec.
func TestWaitingRoomHonoursCriticality(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t)
		spec := registry.Spec{Limit: 1, Wait: time.Minute, Queue: 20, Criticality: registry.SheddablePlus}
		g := declared(t, rt, "k", spec)
		through := func(enter func(context.Context) (guard.Pass, error)) func(context.Context, func()) error {
			return func(ctx context.Context, fn func()) error { return seePass(func(context.Context) { fn() })(enter(ctx)) }
		}
		got := queue(t, g,
			call{name: "4a", ctx: at(registry.Sheddable)},
			call{name: "3a", ctx: context.Background()},
			call{name: "3b", do: func(_ context.Context, fn func()) error { return g.Do(func() error { fn(); return nil }) }},
			call{name: "1a", ctx: at(registry.CriticalPlus), do: through(g.Enter)},
			call{name: "2a", ctx: at(registry.Critical), do: through(g.EnterScoped)},
			call{name: "4b", ctx: at(registry.Sheddable), do: through(func(ctx context.Context) (guard.Pass, error) { return g.EnterN(ctx, 1) })},
			call{name: "1b", ctx: at(registry.CriticalPlus)},
			call{name: "3c", ctx: at(registry.CriticalityUnset)},
			call{name: "2b", ctx: guard.WithCaller(at(registry.Critical), "alice")},
		)
		if want := []string{"1a", "1b", "2a", "2b", "3a", "3b", "3c", "4a", "4b"}; !slices.Equal(got, want) {
			t.Errorf("they ran in the order %v, want %v", got, want)
		}
		// The level of calls that carry none follows the spec.
		spec.Criticality = registry.CriticalPlus
		replace(t, rt, map[registry.Key]registry.Spec{"k": spec})
		got = queue(t, g, call{name: "2", ctx: at(registry.Critical)}, call{name: "none", ctx: context.Background()})
		if want := []string{"none", "2"}; !slices.Equal(got, want) {
			t.Errorf("they ran in the order %v, want %v", got, want)
		}
	})
}

// A full waiting room lets the less important go for the more important.
func TestFullWaitingRoomShedsTheLeastImportant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := declared(t, newRuntime(t), "k", registry.Spec{Limit: 1, Wait: time.Minute, Queue: 1})
		h := block(g.Do)
		results := make(chan error, 2)
		wait := func(c registry.Criticality) {
			go func() { results <- g.DoContext(at(c), func(context.Context) error { return nil }) }()
			synctest.Wait()
		}
		wait(registry.Sheddable)
		err := g.DoContext(at(registry.Sheddable), func(context.Context) error { return nil })
		wantReason(t, err, guard.ReasonFull)
		wait(registry.CriticalPlus)
		wantReason(t, <-results, guard.ReasonFull)
		_ = h.end()
		if err := <-results; err != nil {
			t.Errorf("the important one: %v", err)
		}
		if s := g.Snapshot(); s.Refused[guard.ReasonFull] != 2 || s.Admitted != 2 {
			t.Errorf("refused %v, admitted %d", s.Refused, s.Admitted)
		}
		wantIdle(t, g)
	})
}

func TestEveryWayWaitsAndIsAnsweredInTime(t *testing.T) {
	for _, path := range paths {
		for _, way := range ways {
			if path.spec.Wait == 0 {
				continue
			}
			t.Run(path.name+"/"+strings.ReplaceAll(way.name, " ", "_"), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					spec := path.spec
					spec.Limit = 1
					g := declared(t, newRuntime(t), "k", spec)
					h := block(g.Do)
					start := time.Now()
					wantReason(t, way.do(g, nothing), guard.ReasonFull)
					// Overload that stands for half a second is no burst: then nobody need wait to the end.
					if passed := time.Since(start); passed > spec.Wait || passed < spec.Wait/2 {
						t.Errorf("refused after %v, want %v at the most", passed, spec.Wait)
					}
					time.AfterFunc(spec.Wait/4, func() { close(h.leave) })
					start = time.Now()
					if err := way.do(g, nothing); err != nil {
						t.Error(err)
					}
					if passed := time.Since(start); passed != spec.Wait/4 {
						t.Errorf("in after %v, want %v", passed, spec.Wait/4)
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
