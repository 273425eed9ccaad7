package bulkhead

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/internal/goroutine"
)

// crowdHome makes the slot that this goroutine's scoped calls would take unusable, as another goroutine's call does.
func crowdHome(b *Bulkhead) {
	b.table.Load().at(goroutine.ID(), 0).state.Store(kindClaimed)
}

// TestNestedCallTakesNoPlace, and is never refused for want of one: a scoped call of a goroutine that holds a scoped place.
func TestNestedCallTakesNoPlace(t *testing.T) {
	var own any = "owner"
	outer := map[string]Demand{
		"plain":         {Weight: 1, Scoped: true},
		"heavy":         {Weight: 2, Scoped: true},
		"with an owner": {Weight: 1, Scoped: true, Owner: &own},
	}
	for name, d := range outer {
		t.Run(name, func(t *testing.T) {
			b := mustNew(t, Config{Limit: 2})
			tk, out := b.TakeSlow(context.Background(), &d)
			if !out.Admitted() {
				t.Fatal(out)
			}
			fill := enterAll(t, b) // so that there is no place for a nested call that wants one
			for range 3 {
				if _, out := scopedTicket(b); out != Nested {
					t.Fatalf("a call inside a call: %v, want Nested", out)
				}
				heavy := Demand{Weight: 2, Scoped: true}
				if _, out := b.TakeSlow(context.Background(), &heavy); out != Nested {
					t.Fatalf("a heavy call inside a call: %v, want Nested", out)
				}
			}
			check(t, b, 2, 0, 0)
			if !b.Give(tk) {
				t.Fatal("the outer call lost its place")
			}
			for _, p := range fill {
				p.Exit()
			}
			tk, out = scopedTicket(b)
			if !out.Admitted() {
				t.Fatalf("after the outer call has left: %v, want Taken", out)
			}
			b.Give(tk)
			check(t, b, 0, 0, 0)
		})
	}
}

func TestNestedInSpiteOf(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, b *Bulkhead){
		"a full bulkhead that refuses at once": func(t *testing.T, b *Bulkhead) {
			enterAll(t, b)
			if !b.quiet.Load() {
				t.Error("the test wants a bulkhead that refuses without a look at the clock")
			}
		},
		"a bound below what runs": func(t *testing.T, b *Bulkhead) {
			enterAll(t, b)
			b.SetBound(1)
		},
		"others that wait": func(t *testing.T, b *Bulkhead) {
			enterAll(t, b)
			if err := b.Configure(Config{Limit: 3, Wait: time.Minute, Stale: time.Second}); err != nil {
				t.Error(err)
			}
			enterLater(t, b, 1, 0)
			synctest.Wait()
			check(t, b, 3, 0, 1)
		},
		"Close": func(t *testing.T, b *Bulkhead) { b.Close() },
		"an eviction of the outer call": func(t *testing.T, b *Bulkhead) {
			pass(2 * time.Second)
			enterAll(t, b)
			check(t, b, 3, 1, 0)
		},
		"a larger table": func(t *testing.T, b *Bulkhead) {
			b.Configure(Config{Limit: 2000, Stale: time.Second})
			enterAll(t, b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, displaced := range []bool{false, true} {
					b := mustNew(t, Config{Limit: 3, Stale: time.Second})
					if displaced {
						crowdHome(b)
					}
					tk, out := scopedTicket(b)
					if !out.Admitted() {
						t.Fatal(out)
					}
					spoil(t, b)
					live := b.InFlight()
					for range 3 {
						if in, out := scopedTicket(b); out != Nested {
							t.Errorf("displaced %v: a call inside a call: %v (held: %v), want Nested", displaced, out, in.Held())
						}
					}
					if got := b.InFlight(); got != live {
						t.Errorf("displaced %v: nested calls change the number in flight from %d to %d", displaced, live, got)
					}
					if !b.Give(tk) {
						t.Error("the outer call lost its place")
					}
					b.Close()
				}
			})
		})
	}
}

// TestNestedWithFreePlaces: a nested call may take a place where the outer one was displaced, and gives it back.
func TestNestedWithFreePlaces(t *testing.T) {
	b := mustNew(t, Config{Limit: 5})
	crowdHome(b)
	outer, _ := scopedTicket(b)
	inner, out := scopedTicket(b)
	if !out.Admitted() && out != Nested {
		t.Fatalf("the inner call: %v", out)
	}
	if b.Give(inner) != out.Admitted() || !b.Give(outer) {
		t.Error("a place is lost")
	}
	check(t, b, 0, 0, 0)
}

// TestDispatcherIsNotNested: a goroutine that enters in a loop and hands its permits to workers takes a place for each.
func TestDispatcherIsNotNested(t *testing.T) {
	b := mustNew(t, Config{Limit: 50})
	permits := enterAll(t, b)
	if len(permits) != 50 {
		t.Fatalf("%d permits of 50", len(permits))
	}
	if _, out := scopedTicket(b); out != Full {
		t.Errorf("a scoped call of the dispatcher: %v, want Full", out)
	}
	permits[7].Exit()
	tk, out := scopedTicket(b)
	if !out.Admitted() {
		t.Fatalf("a scoped call of the dispatcher: %v, want Taken", out)
	}
	if _, err := b.Enter(context.Background()); err == nil {
		t.Error("a loose call inside a scoped one passes through")
	}
	b.Give(tk)
	permits[7] = enter(t, b)
	for _, p := range permits {
		exits(t, p, true)
	}
	check(t, b, 0, 0, 0)
}

// TestNobodyIsNestedInAnother: goroutines that share slots, on the smallest table. Each knows whether it holds a place.
func TestNobodyIsNestedInAnother(t *testing.T) {
	rounds := 4_000
	if testing.Short() {
		rounds = 400
	}
	b := mustNew(t, Config{Limit: 4, Expand: 1})
	var wrong, taken, nested, running atomic.Int64
	var call func(depth int)
	call = func(depth int) {
		tk, out := scopedTicket(b)
		switch {
		case out == Nested && depth == 0:
			wrong.Add(1)
		case out == Full && depth > 0:
			wrong.Add(1)
		case out.Admitted():
			taken.Add(1)
			if running.Add(1) > 4 {
				wrong.Add(1)
			}
		case out == Nested:
			nested.Add(1)
		}
		if out != Full && depth < 2 {
			call(depth + 1)
		}
		if out.Admitted() {
			running.Add(-1)
			if !b.Give(tk) {
				wrong.Add(1)
			}
		}
	}
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range rounds {
				call(0)
			}
		})
	}
	wg.Wait()
	if wrong.Load() != 0 {
		t.Errorf("%d calls passed through without a place of their own, or were refused inside one", wrong.Load())
	}
	if taken.Load() == 0 || nested.Load() == 0 {
		t.Errorf("%d taken, %d nested: the test shows nothing", taken.Load(), nested.Load())
	}
	check(t, b, 0, 0, 0)
}
