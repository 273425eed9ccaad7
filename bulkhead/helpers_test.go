package bulkhead

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	_ "unsafe" // for the linkname below

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fast is the other package's word on whether goid is right in this build.
//
//go:linkname fast github.com/spillway-go/spillway/internal/goroutine.fast
var fast bool

// withoutFastPath makes this build one in which goid was found to be wrong.
func withoutFastPath(t *testing.T) {
	t.Helper()
	mustNew(t, Config{Limit: 1}) // after this nobody verifies any more
	fast = false
	t.Cleanup(func() { fast = true })
}

func mustNew(t testing.TB, cfg Config) *Bulkhead {
	t.Helper()
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// keep holds a permit until the test has ended: dropped, it would be lost, and its place free again.
func keep(t testing.TB, p Permit) Permit {
	t.Cleanup(func() { runtime.KeepAlive(p) })
	return p
}

// enter takes a place that must be there.
func enter(t testing.TB, b *Bulkhead) Permit {
	t.Helper()
	return enterN(t, b, 1)
}

func enterN(t testing.TB, b *Bulkhead, weight int) Permit {
	t.Helper()
	p, err := b.EnterN(context.Background(), weight, 0)
	if err != nil {
		t.Fatalf("weight %d is refused: %v", weight, err)
	}
	return keep(t, p)
}

// enterSome takes n places.
func enterSome(t testing.TB, b *Bulkhead, n int) (list []Permit) {
	t.Helper()
	for range n {
		list = append(list, enter(t, b))
	}
	return list
}

// enterAll takes all the places that are left of a bulkhead in which no call waits.
func enterAll(t testing.TB, b *Bulkhead) (list []Permit) {
	t.Helper()
	for {
		p, err := b.Enter(context.Background())
		if err != nil {
			return list
		}
		list = append(list, keep(t, p))
	}
}

// scopedTicket takes a place the way that guard.Do does.
func scopedTicket(b *Bulkhead) (Ticket, Outcome) {
	t, out := b.Take()
	if out == Unsure {
		return b.TakeSlow(context.Background(), &Demand{Weight: 1, Scoped: true})
	}
	return t, out
}

// pass lets time go by in a bubble, and everything happen that it brings about.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// check compares the figures that matter most, after every step of a test.
func check(t testing.TB, b *Bulkhead, live, detached, waiting int) {
	t.Helper()
	s := b.Snapshot()
	if s.InFlight != live || s.Detached != detached || s.Waiting != waiting {
		t.Fatalf("in flight, detached, waiting: %d, %d, %d; want %d, %d, %d",
			s.InFlight, s.Detached, s.Waiting, live, detached, waiting)
	}
}

// collectUntil collects garbage until something is so, which one or two rounds bring about.
func collectUntil(t testing.TB, what string, so func() bool) {
	t.Helper()
	for range 500 {
		if so() {
			return
		}
		runtime.GC()
		for range 10 {
			runtime.Gosched() // the cleanups run on a goroutine of the runtime's
		}
	}
	t.Fatalf("after 500 garbage collections still not: %s", what)
}

// call is an EnterN on a goroutine of its own.
type call struct {
	permit Permit
	err    error
	took   time.Duration
	cancel context.CancelFunc
	done   atomic.Bool
}

// enterLater starts a call that may have to wait; in a bubble, synctest.Wait lets it come to rest.
func enterLater(t testing.TB, b *Bulkhead, weight, level int) *call {
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{cancel: cancel}
	t.Cleanup(func() { runtime.KeepAlive(c) })
	began := time.Now()
	go func() {
		c.permit, c.err = b.EnterN(ctx, weight, level)
		c.took = time.Since(began)
		c.done.Store(true)
	}()
	return c
}

// in says that a call was admitted.
func (c *call) in() bool { return c.done.Load() && c.err == nil }

// gauge is a MemoryGauge.
type gauge struct{ tight atomic.Bool }

func (g *gauge) MemoryTight() bool { return g.tight.Load() }

// expander is an Expander that says what it is told to. mu is for tests in which waiting calls ask it.
type expander struct {
	mu           sync.Mutex
	bound, asked int
	pause        time.Duration
	seen         Load
}

func (e *expander) Expand(l Load) (int, time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked++
	e.seen = l
	return e.bound, e.pause
}
