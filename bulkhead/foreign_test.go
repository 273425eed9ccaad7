package bulkhead

import (
	"context"
	"errors"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// foreign is a context, Expander and MemoryGauge of somebody else, which misbehaves at its n-th call.
type foreign struct {
	context.Context
	calls, at int
	harm      func()
}

func (f *foreign) count() {
	if f.calls++; f.calls == f.at {
		f.harm()
	}
}

func (f *foreign) Done() <-chan struct{}              { f.count(); return f.Context.Done() }
func (f *foreign) Err() error                         { f.count(); return f.Context.Err() }
func (f *foreign) Deadline() (time.Time, bool)        { f.count(); return f.Context.Deadline() }
func (f *foreign) Value(key any) any                  { f.count(); return f.Context.Value(key) }
func (f *foreign) MemoryTight() bool                  { f.count(); return false }
func (f *foreign) Expand(l Load) (int, time.Duration) { f.count(); return l.Bound, 0 }

// Whatever foreign code does, at whichever of its calls, it costs no place: it panics or ends the goroutine while a call enters,
// waits, is answered or leaves.
func TestForeignCodeCostsNoPlace(t *testing.T) {
	harms := map[string]func(){"panic": func() { panic("foreign") }, "goexit": runtime.Goexit}
	for name, harm := range harms {
		for _, waits := range []time.Duration{0, time.Second} {
			for _, frees := range []bool{false, true} {
				for at := 1; at <= 12; at++ {
					synctest.Test(t, func(t *testing.T) {
						f := &foreign{Context: t.Context(), at: at, harm: harm}
						b, err := New(Config{Limit: 1, Expand: 2, Wait: waits, Expander: f, Memory: f})
						if err != nil {
							t.Fatal(err)
						}
						first, err := b.Enter(context.Background())
						if err != nil {
							t.Fatal(err)
						}
						done := make(chan struct{})
						go func() {
							defer close(done)
							defer func() { _ = recover() }()
							if p, err := b.Enter(f); err == nil {
								p.Exit()
							}
						}()
						<-time.After(600 * time.Millisecond)
						if frees {
							first.Exit()
						}
						<-done
						first.Exit()
						synctest.Wait()
						if s := b.Snapshot(); s.InFlight != 0 || s.Waiting != 0 || s.Detached != 0 {
							t.Errorf("%s at call %d, wait %v, freed meanwhile %v: %+v", name, at, waits, frees, s)
						}
						f.at = 0
						p, err := b.Enter(context.Background())
						if err != nil {
							t.Fatalf("%s at call %d, wait %v, freed meanwhile %v: then %v", name, at, waits, frees, err)
						}
						p.Exit()
					})
				}
			}
		}
	}
}

// A call that waits asks for a larger bound itself: nobody else may come to do so.
func TestWaitingCallsGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		grow := expanderFunc(func(l Load) (int, time.Duration) {
			if time.Since(start) < 100*time.Millisecond {
				return 0, 100 * time.Millisecond
			}
			return 2 * l.Bound, 100 * time.Millisecond
		})
		b, err := New(Config{Limit: 1, Wait: 3 * time.Second, Expander: grow})
		if err != nil {
			t.Fatal(err)
		}
		p, err := b.EnterN(context.Background(), 4, 1)
		if err != nil {
			t.Fatalf("a call of weight 4 on an idle bulkhead that may grow to 4: %v", err)
		}
		p.Exit()
		if d := time.Since(start); d > 250*time.Millisecond {
			t.Errorf("it waited %v for two steps, 100 ms apart", d)
		}
	})
}

// While Watch keeps the gate below the bound, a refusal of a heavy call does not make light ones be refused below the bound.
func TestHeavyRefusalUnderWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := New(Config{Limit: 10, Expand: 1})
		if err != nil {
			t.Fatal(err)
		}
		b.Watch(5)
		held := fill(t, b, 5)
		if _, err := b.EnterN(context.Background(), 6, 1); !errors.Is(err, ErrFull) {
			t.Fatalf("a weight of 6 with 5 of 10 in flight: %v", err)
		}
		for _, p := range append(held, fill(t, b, 5)...) {
			p.Exit()
		}
	})
}

func TestAnEndlessPauseStopsNoEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := expanderFunc(func(Load) (int, time.Duration) { return 0, math.MaxInt64 })
		b, err := New(Config{Limit: 1, Stale: time.Second, Expander: never})
		if err != nil {
			t.Fatal(err)
		}
		stuck := fill(t, b, 1)
		if _, err := b.Enter(context.Background()); !errors.Is(err, ErrFull) {
			t.Fatalf("entering a full bulkhead: %v", err)
		}
		<-time.After(2 * time.Second)
		p, err := b.Enter(context.Background())
		if err != nil {
			t.Fatalf("the stuck call kept its place: %v", err)
		}
		p.Exit()
		stuck[0].Exit()
	})
}

// A MemoryGauge or Expander that enters the bulkhead it is asked by gets an answer, and no recursion without end.
func TestForeignCodeThatCallsBack(t *testing.T) {
	var b *Bulkhead
	depth := 0
	back := func() {
		if depth++; depth > 10 {
			t.Fatal("asked again and again from inside")
		}
		if _, err := b.Enter(context.Background()); !errors.Is(err, ErrFull) {
			t.Errorf("from inside: %v", err)
		}
		depth--
	}
	f := &foreign{at: -1}
	var err error
	b, err = New(Config{Limit: 1, Expander: expanderFunc(func(Load) (int, time.Duration) { back(); return 0, 0 }), Memory: gaugeFunc(func() bool { back(); return false })})
	if err != nil {
		t.Fatal(err)
	}
	f.Context = context.Background()
	held := fill(t, b, 1)
	if _, err := b.Enter(f); !errors.Is(err, ErrFull) {
		t.Errorf("entering a full bulkhead: %v", err)
	}
	held[0].Exit()
}

type gaugeFunc func() bool

func (f gaugeFunc) MemoryTight() bool { return f() }

// doneForNoReason is a context that is done although nothing ended it.
type doneForNoReason struct{ context.Context }

func (doneForNoReason) Done() <-chan struct{} { c := make(chan struct{}); close(c); return c }

func TestEndedIsAlwaysAnError(t *testing.T) {
	b, err := New(Config{Limit: 1, Wait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	held := fill(t, b, 1)
	if _, err := b.Enter(doneForNoReason{context.Background()}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	held[0].Exit()
}

func TestLateCountsPlacesByTheirOwnersMeasure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := New(Config{Limit: 100, Owner: "own"})
		if err != nil {
			t.Fatal(err)
		}
		heavy, err := b.EnterN(t.Context(), 90, 1)
		if err != nil {
			t.Fatal(err)
		}
		var other any = "other"
		ticket, out := b.TakeSlow(t.Context(), &Demand{Weight: 3, Owner: &other})
		if !out.Admitted() {
			t.Fatalf("outcome %v", out)
		}
		patient := b.Hold(ticket, Site{}, false)
		<-time.After(5 * time.Second)
		light := fill(t, b, 5)
		slow := func(owner any) time.Duration {
			if owner == "other" {
				return time.Minute
			}
			return time.Second
		}
		if late, all := b.Late(slow); late != 90 || all != 98 {
			t.Errorf("%d of %d places are late, want 90 of 98", late, all)
		}
		for _, p := range append(light, heavy, patient) {
			p.Exit()
		}
	})
}
