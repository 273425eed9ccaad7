package watchdog_test

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"runtime/pprof"
	"sync"
	"testing"

	"github.com/spillway-go/spillway/internal/goroutine"
	"github.com/spillway-go/spillway/watchdog"
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

func label(pairs ...string) {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(pairs...)))
}

func wantLabels(t *testing.T, where string, marked bool, pairs ...string) {
	t.Helper()
	want := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		want[pairs[i]] = pairs[i+1]
	}
	if got := watchdog.LabelsOf(); !maps.Equal(got, want) {
		t.Errorf("%s the user's labels are %v, want %v", where, got, want)
	}
	if got := watchdog.OwnLabel(); (got != "") != marked {
		t.Errorf("%s our label is %q", where, got)
	}
}

// A scope marks the goroutine while f runs.
type scope struct {
	name string
	run  func(f func())
}

func scopes() []scope {
	function, pass := watchdog.NewMark(), watchdog.NewMark()
	identity := uint64(0)
	return []scope{
		{"function", func(f func()) {
			_ = function.Run(goroutine.ID(), func() error { f(); return nil })
		}},
		{"pass", func(f func()) {
			identity++
			pass.EnterPass(goroutine.ID(), identity, watchdog.Here())
			f()
			pass.LeavePass(identity)
		}},
	}
}

func TestW5LabelsStay(t *testing.T) {
	watchdog.NeedsMarks(t)
	for _, s := range scopes() {
		t.Run(s.name, func(t *testing.T) {
			elsewhere(func() {
				wantLabels(t, "before", false)
				s.run(func() { wantLabels(t, "inside", true) })
				wantLabels(t, "after", false)

				label("route", "/buy")
				for range 2 { // made, then found again
					s.run(func() { wantLabels(t, "inside", true, "route", "/buy") })
					wantLabels(t, "after", false, "route", "/buy")
				}
				label("a", "1", "b", "2", "c", "3", "d", "4", "e", "5")
				s.run(func() { wantLabels(t, "inside", true, "a", "1", "b", "2", "c", "3", "d", "4", "e", "5") })
				wantLabels(t, "after", false, "a", "1", "b", "2", "c", "3", "d", "4", "e", "5")
			})
		})
	}
}

func TestW5NestedCalls(t *testing.T) {
	watchdog.NeedsMarks(t)
	for _, outer := range scopes() {
		for _, inner := range scopes() {
			t.Run(inner.name+" in "+outer.name, func(t *testing.T) {
				for _, pairs := range [][]string{nil, {"route", "/buy"}} {
					elsewhere(func() {
						label(pairs...)
						outer.run(func() {
							mine := watchdog.OwnLabel()
							inner.run(func() {
								wantLabels(t, "inside", true, pairs...)
								if watchdog.OwnLabel() == mine {
									t.Error("the inner call wears the outer's label")
								}
							})
							wantLabels(t, "between", true, pairs...)
							if watchdog.OwnLabel() != mine {
								t.Error("the outer call lost its label to the inner")
							}
						})
						wantLabels(t, "after", false, pairs...)
					})
				}
			})
		}
	}
}

// What the user's code sets inside stays set inside, and afterwards as it would without a mark.
func TestW5LabelsSetInside(t *testing.T) {
	watchdog.NeedsMarks(t)
	for _, s := range scopes() {
		t.Run(s.name, func(t *testing.T) {
			elsewhere(func() {
				label("route", "/buy")
				s.run(func() {
					label("step", "2")
					wantLabels(t, "inside", false, "step", "2")
				})
				wantLabels(t, "after", false, "step", "2")

				ctx := pprof.WithLabels(context.Background(), pprof.Labels("route", "/buy"))
				pprof.SetGoroutineLabels(ctx)
				s.run(func() {
					pprof.Do(ctx, pprof.Labels("step", "3"), func(context.Context) {
						wantLabels(t, "in pprof.Do", false, "route", "/buy", "step", "3")
					})
				})
				wantLabels(t, "after", false, "route", "/buy")

				s.run(replace)
				wantLabels(t, "after all were taken off", false)
			})
		})
	}
}

// A pass that ends on another goroutine changes nobody's labels.
func TestW5ExitElsewhere(t *testing.T) {
	watchdog.NeedsMarks(t)
	m := watchdog.NewMark()
	elsewhere(func() {
		label("route", "/buy")
		m.EnterPass(goroutine.ID(), 1, watchdog.Here())
		mine := watchdog.OwnLabel()
		var done sync.WaitGroup
		done.Go(func() { // inherits labels and mark
			m.LeavePass(1)
			wantLabels(t, "where it ended", true, "route", "/buy")
		})
		done.Wait()
		wantLabels(t, "where it began", true, "route", "/buy")

		// The next pass has the same label until a dump needs to tell them apart.
		m.EnterPass(goroutine.ID(), 2, watchdog.Here())
		m.LeavePass(2)
		watchdog.NewDumper(watchdog.NewLedger(1)).Dump()
		m.EnterPass(goroutine.ID(), 3, watchdog.Here())
		if watchdog.OwnLabel() == mine {
			t.Error("a label that is still worn elsewhere is used again")
		}
		m.LeavePass(3)
	})
}

// A goroutine that was started inside of a call gets rid of the call's label by its first own call.
func TestW5InheritedLabel(t *testing.T) {
	watchdog.NeedsMarks(t)
	for _, s := range scopes() {
		m := watchdog.NewMark()
		elsewhere(func() {
			label("route", "/buy")
			_ = m.RunContext(t.Context(), goroutine.ID(), func(context.Context) error {
				var done sync.WaitGroup
				done.Go(func() {
					wantLabels(t, "inherited", true, "route", "/buy")
					s.run(func() { wantLabels(t, "inside", true, "route", "/buy") })
					wantLabels(t, "after", false, "route", "/buy")
				})
				done.Wait()
				return nil
			})
		})
	}
}

// An Exit that comes twice, or late, does nothing to the next call of the place.
func TestLeavePassTwice(t *testing.T) {
	watchdog.NeedsMarks(t)
	m := watchdog.NewMark()
	elsewhere(func() {
		m.EnterPass(goroutine.ID(), 1, watchdog.Here())
		m.LeavePass(1)
		m.EnterPass(goroutine.ID(), 2, watchdog.Here())
		m.LeavePass(1)
		wantLabels(t, "after a late exit", true)
		m.LeavePass(2)
		m.LeavePass(2)
		wantLabels(t, "after both", false)
	})
}

func TestNoMark(t *testing.T) {
	var m *watchdog.Mark
	want := errors.New("its own")
	if err := m.Run(1, func() error { return want }); !errors.Is(err, want) {
		t.Error(err)
	}
	if err := m.RunContext(t.Context(), 1, func(context.Context) error { return want }); !errors.Is(err, want) {
		t.Error(err)
	}
	m.EnterPass(1, 1, watchdog.Site{})
	m.LeavePass(1)
}

func TestMarksAreFree(t *testing.T) {
	watchdog.NeedsMarks(t)
	for _, s := range scopes() {
		for _, pairs := range [][]string{nil, {"route", "/buy"}} {
			elsewhere(func() {
				label(pairs...)
				if n := testing.AllocsPerRun(100, func() { s.run(nop) }); n != 0 {
					t.Errorf("%s with labels %v: %v allocations a call", s.name, pairs, n)
				}
			})
		}
	}
}

// Marks of places that are gone are forgotten.
func TestMarksAreCollected(t *testing.T) {
	watchdog.NeedsMarks(t)
	before := watchdog.Marks()
	elsewhere(func() {
		for range 1000 {
			m := watchdog.NewMark()
			_ = m.Run(goroutine.ID(), nothing)
		}
	})
	for range 100 {
		runtime.GC()
		if watchdog.Marks() <= before+1 {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d marks are left of %d and 1,000", watchdog.Marks(), before)
}

// Here finds the same addresses as the runtime's own unwinder.
func TestHere(t *testing.T) {
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
	watchdog.Here() // there is no caller's caller
	close(ended)
}

//go:noinline
func whereNoted() (site, want [2]uintptr) { return noted() }

//go:noinline
func noted() (site, want [2]uintptr) {
	site = watchdog.Parts(watchdog.Here())
	runtime.Callers(2, want[:])
	return site, want
}

func names(pcs [2]uintptr) (list [2]string) {
	for i, pc := range pcs {
		if f := runtime.FuncForPC(pc - 1); f != nil {
			list[i] = f.Name()
		}
	}
	return list
}
