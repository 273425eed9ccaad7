package bulkhead

import (
	"context"
	"sync"
	"testing"
	"time"
)

func fill(t *testing.T, b *Bulkhead, n int) (held []Permit) {
	t.Helper()
	for range n {
		p, err := b.Enter(context.Background())
		if err != nil {
			t.Fatalf("entering with %d of %d in flight: %v", b.InFlight(), b.Bound(), err)
		}
		held = append(held, p)
	}
	return held
}

func TestWatchSeesEveryPeak(t *testing.T) {
	b, err := New(Config{Limit: 8})
	if err != nil {
		t.Fatal(err)
	}
	b.Watch(4)
	for _, p := range fill(t, b, 4) {
		p.Exit()
	}
	if b.Watch(4) {
		t.Error("4 at once exceeded 4")
	}
	for _, p := range fill(t, b, 5) { // for an instant only
		p.Exit()
	}
	if !b.Watch(4) {
		t.Error("5 at once did not exceed 4")
	}
	held := fill(t, b, 8)
	if _, err := b.Enter(context.Background()); err == nil {
		t.Error("the ninth of eight entered")
	}
	first, second := b.Watch(4), b.Watch(4)
	if !first || !second {
		t.Error("8 in flight while watching begins do not count as more than 4")
	}
	for _, p := range held {
		p.Exit()
	}
	b.Watch(4)
	if b.Watch(0) {
		t.Error("nothing was in flight since the last Watch")
	}
	heavy, err := b.EnterN(context.Background(), 7, 1)
	if err != nil {
		t.Fatal(err)
	}
	heavy.Exit()
	if b.Watch(3) {
		t.Error("Watch(0) did not stop watching")
	}
	heavy, err = b.EnterN(context.Background(), 7, 1)
	if err != nil {
		t.Fatal(err)
	}
	heavy.Exit()
	if !b.Watch(3) {
		t.Error("a weight of 7 did not exceed 3")
	}
}

// While a number below the bound is watched nobody is refused below the bound, and the Expander is not asked.
func TestWatchRefusesNobody(t *testing.T) {
	asked := expanderFunc(func(l Load) (int, time.Duration) {
		if l.InFlight < l.Bound {
			t.Errorf("asked to grow with %d of %d in flight", l.InFlight, l.Bound)
		}
		return 0, 0
	})
	b, err := New(Config{Limit: 16, Expander: asked})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var watcher, callers sync.WaitGroup
	watcher.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				b.Watch(4)
			}
		}
	})
	for range 16 {
		callers.Go(func() {
			for range 5000 {
				p, err := b.Enter(context.Background())
				if err != nil {
					t.Errorf("one of 16 callers was refused by a bound of 16: %v", err)
					return
				}
				p.Exit()
			}
		})
	}
	callers.Wait()
	close(stop)
	watcher.Wait()
}

type expanderFunc func(Load) (int, time.Duration)

func (f expanderFunc) Expand(l Load) (int, time.Duration) { return f(l) }
