package goroutine

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"testing"
)

// elsewhere runs f on a goroutine of its own, whose labels nobody else has.
func elsewhere(f func()) {
	var done sync.WaitGroup
	done.Go(func() {
		pprof.SetGoroutineLabels(context.Background())
		f()
	})
	done.Wait()
}

func wearLabels(pairs ...string) {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(pairs...)))
}

// worn lists the labels of the calling goroutine.
func worn() map[string]string {
	found := map[string]string{}
	if set := getLabels(); set != nil {
		for _, l := range (*labels)(set).list {
			found[l.key] = l.value
		}
	}
	return found
}

// want checks the user's labels, and that the goroutine wears a badge of the given number, 0 for none.
func want(t *testing.T, where string, badge uint64, pairs ...string) {
	t.Helper()
	wanted := map[string]string{}
	if badge != 0 {
		wanted[BadgeLabel] = strconv.FormatUint(badge, 10)
	}
	for i := 0; i < len(pairs); i += 2 {
		wanted[pairs[i]] = pairs[i+1]
	}
	if got := worn(); !maps.Equal(got, wanted) {
		t.Errorf("%s the labels are %v, want %v", where, got, wanted)
	}
	if got := Worn(); got != badge {
		t.Errorf("%s the badge is %d, want %d", where, got, badge)
	}
}

// within runs f as a call does.
func within(f func()) {
	b := Wear(ID())
	defer b.Off()
	_ = Run(func() error { f(); return nil })
}

func TestW5LabelsStay(t *testing.T) {
	elsewhere(func() {
		me := ID()
		want(t, "before", 0)
		within(func() { want(t, "inside", me) })
		want(t, "after", 0)

		wearLabels("route", "/buy")
		for range 2 { // made, then found again
			within(func() { want(t, "inside", me, "route", "/buy") })
			want(t, "after", 0, "route", "/buy")
		}
		wearLabels("a", "1", "b", "2", "c", "3", "d", "4", "e", "5")
		within(func() { want(t, "inside", me, "a", "1", "b", "2", "c", "3", "d", "4", "e", "5") })
		want(t, "after", 0, "a", "1", "b", "2", "c", "3", "d", "4", "e", "5")
	})
}

func TestW5NestedCalls(t *testing.T) {
	for _, pairs := range [][]string{nil, {"route", "/buy"}} {
		elsewhere(func() {
			me := ID()
			wearLabels(pairs...)
			within(func() {
				within(func() { want(t, "inside", me, pairs...) })
				want(t, "between", me, pairs...)
			})
			want(t, "after", 0, pairs...)
		})
	}
}

// What the user's code sets inside stays set inside, and afterwards as it would without a badge.
func TestW5LabelsSetInside(t *testing.T) {
	elsewhere(func() {
		me := ID()
		wearLabels("route", "/buy")
		within(func() {
			wearLabels("step", "2")
			want(t, "inside", 0, "step", "2")
			within(func() { want(t, "in a call of its own", me, "step", "2") })
		})
		want(t, "after", 0, "step", "2")

		ctx := pprof.WithLabels(context.Background(), pprof.Labels("route", "/buy"))
		pprof.SetGoroutineLabels(ctx)
		within(func() {
			pprof.Do(ctx, pprof.Labels("step", "3"), func(context.Context) {
				want(t, "in pprof.Do", 0, "route", "/buy", "step", "3")
			})
		})
		want(t, "after", 0, "route", "/buy")

		within(func() { pprof.SetGoroutineLabels(context.Background()) })
		want(t, "after all were taken off", 0)
	})
}

// A call that ends on another goroutine changes nobody's labels.
func TestW5ExitElsewhere(t *testing.T) {
	elsewhere(func() {
		me := ID()
		wearLabels("route", "/buy")
		b := Wear(me)
		elsewhereInherited(func() {
			TakeOff()
			want(t, "where it ended", me, "route", "/buy")
		})
		want(t, "where it began", me, "route", "/buy")
		elsewhere(b.Off)
		want(t, "where it began", me, "route", "/buy")
		TakeOff()
		want(t, "after", 0, "route", "/buy")
		TakeOff()
		b.Off()
		want(t, "after once more", 0, "route", "/buy")
	})
}

// elsewhereInherited runs f on a goroutine that inherits labels.
func elsewhereInherited(f func()) {
	var done sync.WaitGroup
	done.Go(f)
	done.Wait()
}

// A goroutine that was started inside of a call wears that one's badge until its own first call, and never again.
func TestW5InheritedBadge(t *testing.T) {
	elsewhere(func() {
		parent := ID()
		wearLabels("route", "/buy")
		within(func() {
			elsewhereInherited(func() {
				me := ID()
				want(t, "inherited", parent, "route", "/buy")
				within(func() { want(t, "inside", me, "route", "/buy") })
				want(t, "after", 0, "route", "/buy")
			})
		})
	})
}

func TestRunPassesErrorsOn(t *testing.T) {
	no := errors.New("its own")
	if err := Run(func() error { return no }); !errors.Is(err, no) {
		t.Error(err)
	}
	ctx := t.Context()
	if err := RunContext(ctx, func(got context.Context) error {
		if got != ctx {
			t.Error("another context")
		}
		return no
	}); !errors.Is(err, no) {
		t.Error(err)
	}
}

func TestBadgesAreFree(t *testing.T) {
	for _, pairs := range [][]string{nil, {"route", "/buy"}} {
		elsewhere(func() {
			wearLabels(pairs...)
			me := ID()
			if n := testing.AllocsPerRun(100, func() { Wear(me).Off() }); n != 0 {
				t.Errorf("with labels %v: %v allocations a call", pairs, n)
			}
		})
	}
}

// Goroutines whose numbers meet in the table of badges do not take each other's.
func TestBadgesThatMeet(t *testing.T) {
	elsewhere(func() {
		me := ID()
		other := me + 1
		for home(other) != home(me) {
			other++
		}
		outer := Wear(me)
		home(me).Store(newBadge(other, nil))
		if b := Wear(me); b != nil {
			t.Error("it wears its badge already")
		}
		want(t, "inside", me)
		outer.Off()
		within(func() { want(t, "with a new one", me) })
		want(t, "after", 0)
	})
}

// Goroutines start goroutines, inside of calls and outside, set labels and enter: who has once entered wears no other's badge.
func TestNobodyWearsAnothersBadge(t *testing.T) {
	var all sync.WaitGroup
	var act func(r *rand.Rand, depth int)
	act = func(r *rand.Rand, depth int) {
		me, entered := ID(), false
		for range 20 {
			switch n := r.IntN(6); {
			case n == 0 && depth > 0:
				child := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
				all.Go(func() { act(child, depth-1) })
			case n == 1:
				wearLabels("a", strconv.Itoa(r.IntN(3)))
			case n == 2:
				pprof.SetGoroutineLabels(context.Background())
			case n == 3:
				Wear(me) // lost
				entered = true
			case n == 4:
				TakeOff()
			default:
				entered = true
				within(func() {
					if got := Worn(); got != me {
						t.Errorf("inside a call goroutine %d wears the badge of %d", me, got)
					}
					if depth > 0 {
						child := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
						all.Go(func() { act(child, depth-1) })
					}
				})
			}
			if got := Worn(); entered && got != 0 && got != me {
				t.Errorf("goroutine %d, which has entered, wears the badge of %d", me, got)
			}
		}
	}
	for seed := range uint64(20) {
		all.Go(func() { act(rand.New(rand.NewPCG(seed, 1)), 3) })
	}
	all.Wait()
}

// Here finds the same addresses as the runtime's own unwinder.
func TestHere(t *testing.T) {
	if !SitesRight() {
		t.Error("Here is wrong in this build")
	}
	site, want := whereNoted()
	if site != want {
		t.Errorf("Here says %v, runtime.Callers %v", names(site), names(want))
	}
	var done sync.WaitGroup
	done.Go(func() {
		if site, want := noted(); site != want {
			t.Errorf("on a goroutine's outermost functions Here says %v, runtime.Callers %v", names(site), names(want))
		}
	})
	done.Wait()
	ended := make(chan struct{})
	go outermost(ended)
	<-ended
}

//go:noinline
func outermost(ended chan struct{}) {
	Here() // there is no caller's caller
	close(ended)
}

//go:noinline
func whereNoted() (site, want [2]uintptr) { return noted() }

//go:noinline
func noted() (site, want [2]uintptr) {
	here := Here()
	runtime.Callers(2, want[:])
	return [2]uintptr{here.PC, here.Outer}, want
}

func names(pcs [2]uintptr) (list [2]string) {
	for i, pc := range pcs {
		if f := runtime.FuncForPC(pc - 1); f != nil {
			list[i] = f.Name()
		}
	}
	return list
}
