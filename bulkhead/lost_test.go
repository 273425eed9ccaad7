package bulkhead

import (
	"context"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/spillway-go/spillway/internal/goroutine"
)

// forget takes n places of some weight and loses the permits.
//
//go:noinline
func forget(t testing.TB, b *Bulkhead, n, weight int) {
	t.Helper()
	for range n {
		if _, err := b.EnterN(context.Background(), weight, 0); err != nil {
			t.Fatal(err)
		}
	}
}

func lostIs(b *Bulkhead, n uint64) func() bool {
	return func() bool { return b.Snapshot().Lost == n }
}

// TestB4LostPlacesComeBack: each of a thousand permits that one living goroutine drops is found, counted nowhere afterwards, and
// reported.
func TestB4LostPlacesComeBack(t *testing.T) {
	var reported atomic.Bool
	b := mustNew(t, Config{Limit: 1000, Owner: "the key", Reported: &reported})
	kept := enter(t, b)
	forget(t, b, 999, 1)
	collectUntil(t, "999 lost", lostIs(b, 999))
	check(t, b, 1, 0, 0)
	if e := b.Entries(); len(e) != 1 {
		t.Errorf("%d entries after the loss of all but one", len(e))
	}
	if !reported.Load() {
		t.Error("Reported is not set")
	}
	list, dropped := b.Reports()
	if len(list)+int(dropped) != 999 || len(list) != maxReports {
		t.Errorf("%d reports and %d dropped, want 999 in all", len(list), dropped)
	}
	for _, r := range list {
		if r.Kind != Lost || r.Goroutine != goroutine.ID() || r.Weight != 1 || r.Owner != "the key" || r.Age < 0 || r.Age > time.Minute {
			t.Fatalf("report %+v", r)
		}
	}
	if list, dropped := b.Reports(); len(list) != 0 || dropped != 0 {
		t.Errorf("reported twice: %d, %d dropped", len(list), dropped)
	}

	forget(t, b, 999, 1) // the same slots again, with new tokens
	collectUntil(t, "twice 999 lost", lostIs(b, 2*999))
	exits(t, kept, true, false)
	check(t, b, 0, 0, 0)
}

// TestB4WhatIsGivenBackIsNotLost, nor what is still held, nor a scoped place, which no Permit holds.
func TestB4WhatIsGivenBackIsNotLost(t *testing.T) {
	b := mustNew(t, Config{Limit: 10})
	held := enter(t, b)
	elsewhere := make(chan Permit, 1)
	elsewhere <- enter(t, b)
	onGoroutine(func() {
		if _, out := scopedTicket(b); !out.Admitted() {
			t.Error(out)
		}
	})
	for range 5_000 {
		p, err := b.Enter(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		p.Exit()
	}
	for range 10 {
		runtime.GC()
	}
	check(t, b, 3, 0, 0)
	if s := b.Snapshot(); s.Lost != 0 {
		t.Errorf("%d lost, want none", s.Lost)
	}
	exits(t, held, true)
	exits(t, <-elsewhere, true)
}

// TestB4ACopyKeepsAPlace: a permit is lost with its last copy.
func TestB4ACopyKeepsAPlace(t *testing.T) {
	b := mustNew(t, Config{Limit: 1})
	box := make([]Permit, 1)
	func() {
		p, err := b.Enter(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		box[0] = p
	}()
	for range 5 {
		runtime.GC()
	}
	check(t, b, 1, 0, 0)
	box[0] = Permit{}
	collectUntil(t, "lost", lostIs(b, 1))
	check(t, b, 0, 0, 0)
	runtime.KeepAlive(box)
}

func TestB4LostHeavyCalls(t *testing.T) {
	b := mustNew(t, Config{Limit: 20})
	forget(t, b, 1, 3)
	forget(t, b, 1, 17)
	check(t, b, 20, 0, 0)
	collectUntil(t, "both lost", lostIs(b, 2))
	check(t, b, 0, 0, 0)
	list, _ := b.Reports()
	if len(list) != 2 || list[0].Weight+list[1].Weight != 20 {
		t.Errorf("reports %+v", list)
	}
}

// TestB4TheSiteOfALoss: it is known where permits are taken, from the first on.
func TestB4TheSiteOfALoss(t *testing.T) {
	b := mustNew(t, Config{Limit: 3})
	for n := range uint64(2) {
		forget(t, b, 1, 1)
		collectUntil(t, "lost", lostIs(b, n+1))
	}
	list, _ := b.Reports()
	if len(list) != 2 {
		t.Fatalf("reports %+v", list)
	}
	for _, r := range list {
		f, _ := runtime.CallersFrames(r.Site).Next()
		if !strings.HasSuffix(f.Function, "bulkhead.forget") || !strings.HasSuffix(f.File, "lost_test.go") {
			t.Errorf("the site of the loss is %s in %s, not the function that took the permit", f.Function, f.File)
		}
	}
}

// TestB4LostAfterEviction: what a detached call held comes back too, for newcomers that the wall refused.
func TestB4LostAfterEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 2, Expand: 2, Stale: time.Second})
		percent := debug.SetGCPercent(-1) // they are to be evicted before the collector finds them
		forget(t, b, 2, 1)
		pass(time.Second)
		collected.Store(now())
		stuck := enterAll(t, b)
		debug.SetGCPercent(percent)
		if n := b.Snapshot().Evicted; n != 2 {
			t.Fatalf("%d evicted, want 2", n)
		}
		check(t, b, 2, 2, 0)
		pass(time.Second)
		refused(t, b, "at the wall")
		if !b.quiet.Load() {
			t.Error("the test wants a bulkhead that refuses at once")
		}
		collectUntil(t, "both lost", func() bool { return b.lost.Load() == 2 && !b.quiet.Load() })
		if s := b.Snapshot(); s.Detached != 0 || s.InFlight != 2 {
			t.Fatalf("after the loss: %+v", s)
		}
		enterAll(t, b) // evicts the next two
		check(t, b, 2, 2, 0)
		for _, p := range stuck {
			exits(t, p, true)
		}
		list, _ := b.Reports()
		kinds := map[ReportKind]int{}
		for _, r := range list {
			kinds[r.Kind]++
		}
		if kinds[Evicted] != 4 || kinds[Lost] != 2 {
			t.Errorf("reports by kind: %v", kinds)
		}
	})
}

// TestB4AWaitingCallGetsALostPlace though the collector cannot wake anybody.
func TestB4AWaitingCallGetsALostPlace(t *testing.T) {
	for name, evicted := range map[string]bool{"live": false, "detached": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := mustNew(t, Config{Limit: 1, Expand: 2, Stale: time.Second, Wait: time.Minute})
				if forget(t, b, 1, 1); evicted {
					pass(time.Second)
					enter(t, b)
					b.SetBound(2)
				}
				c := enterLater(t, b, 1, 0)
				synctest.Wait()
				collectUntil(t, "lost", func() bool { return b.lost.Load() == 1 })
				pass(pollEvery)
				if !c.in() {
					t.Errorf("not admitted %v after the loss", pollEvery)
				}
			})
		})
	}
}

// TestB4AFullKeyAsksForACollection, when it holds permits that may be lost, at most every ten seconds.
func TestB4AFullKeyAsksForACollection(t *testing.T) {
	asked := func(t *testing.T, b *Bulkhead) (seconds []int) {
		collected.Store(0)
		last := int64(0)
		for i := range 31 {
			refused(t, b, "full")
			if c := collected.Load(); c != last {
				seconds = append(seconds, i)
				last = c
			}
			pass(time.Second)
		}
		return seconds
	}
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 2, Stale: 3 * time.Second, Expand: 1})
		enter(t, b)
		onGoroutine(func() { scopedTicket(b) })
		if got := asked(t, b); !slices.Equal(got, []int{10, 20, 30}) {
			t.Errorf("asked after %v seconds, want 10, 20 and 30", got)
		}
		b = mustNew(t, Config{Limit: 1})
		onGoroutine(func() { scopedTicket(b) })
		if got := asked(t, b); len(got) != 0 {
			t.Errorf("asked after %v seconds for a call that cannot be lost", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		collected.Store(0)
		b := mustNew(t, Config{Limit: 1})
		forget(t, b, 1, 1)
		pass(2 * time.Second)
		for i := 0; b.lost.Load() == 0; i++ {
			if i == 1_000_000 {
				t.Fatal("a full key does not find its lost permit")
			}
			if p, err := b.Enter(t.Context()); err == nil {
				p.Exit()
			}
			runtime.Gosched()
		}
		enter(t, b)
	})
}

// TestB4LossAgainstEverything: the collector at work, evictions, exits and losses of the same slots at the same time. The sums
// must be right to the last call.
func TestB4LossAgainstEverything(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 30
	}
	b := mustNew(t, Config{Limit: 8, Expand: 4, Stale: time.Microsecond})
	var admitted, exited, forgotten atomic.Uint64
	stop := make(chan struct{})
	var collector, workers sync.WaitGroup
	collector.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
				if s := b.Snapshot(); s.InFlight+s.Detached > s.Max || s.Detached < 0 {
					t.Errorf("in flight %d, detached %d, at most %d", s.InFlight, s.Detached, s.Max)
				}
			}
		}
	})
	for w := range 4 {
		workers.Go(func() {
			for i := range rounds * 20 {
				p, err := b.EnterN(context.Background(), 1+(w+i)%3, 0)
				if err != nil {
					runtime.Gosched()
					continue
				}
				admitted.Add(1)
				if (w+i)%4 == 0 {
					forgotten.Add(1)
					continue
				}
				runtime.Gosched() // old enough to be evicted
				if p.Exit() {
					exited.Add(1)
				}
			}
		})
	}
	workers.Wait()
	close(stop)
	collector.Wait()
	collectUntil(t, "every forgotten permit found", lostIs(b, forgotten.Load()))
	check(t, b, 0, 0, 0)
	s := b.Snapshot()
	if s.Admitted != admitted.Load() || exited.Load()+forgotten.Load() != admitted.Load() {
		t.Errorf("admitted %d (the test counts %d) = exited %d + forgotten %d", s.Admitted, admitted.Load(), exited.Load(), forgotten.Load())
	}
	list, dropped := b.Reports()
	if got := uint64(len(list)) + dropped; got != s.Lost+s.Evicted {
		t.Errorf("%d reports, dropped ones included, for %d lost and %d evicted", got, s.Lost, s.Evicted)
	}
	t.Logf("admitted %d, evicted %d, lost %d", s.Admitted, s.Evicted, s.Lost)
}

// TestABulkheadIsCollectable: nothing of ours keeps one that nobody holds: no token, cleanup, weak pointer or timer.
func TestABulkheadIsCollectable(t *testing.T) {
	for name, use := range map[string]func(b *Bulkhead){
		"never used":     func(*Bulkhead) {},
		"given back":     func(b *Bulkhead) { enter2(b).Exit() },
		"scoped":         func(b *Bulkhead) { tk, _ := b.Take(); b.Hold(tk, Site{}, false).Exit() },
		"never given":    func(b *Bulkhead) { b.Take() },
		"lost":           func(b *Bulkhead) { enter2(b) },
		"lost and found": func(b *Bulkhead) { enter2(b); runtime.GC(); runtime.GC() },
		"many tables": func(b *Bulkhead) {
			for i := range 500 {
				if p := enter2(b); i%2 == 0 {
					p.Exit()
				}
			}
		},
		"somebody waited": func(b *Bulkhead) {
			b.SetBound(1)
			p := enter2(b)
			done := make(chan struct{})
			go func() { enter2(b).Exit(); close(done) }()
			for b.Waiting() == 0 {
				runtime.Gosched()
			}
			p.Exit()
			<-done
		},
		"closed": func(b *Bulkhead) { enter2(b); b.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			gone := dropped(t, Config{Limit: 1000, Wait: time.Minute}, use)
			collectUntil(t, "the bulkhead is gone", func() bool { return gone.Value() == nil })
		})
	}
	t.Run("quiet", func(t *testing.T) { // here a timer holds it for a while
		synctest.Test(t, func(t *testing.T) {
			gone := dropped(t, Config{Limit: 1, Expand: 1}, func(b *Bulkhead) {
				enter2(b)
				if _, err := b.Enter(context.Background()); err == nil || !b.quiet.Load() {
					t.Error("the test wants a quiet bulkhead")
				}
			})
			pass(collectEvery)
			collectUntil(t, "the bulkhead is gone", func() bool { return gone.Value() == nil })
		})
	})
}

func enter2(b *Bulkhead) Permit {
	p, _ := b.Enter(context.Background())
	return p
}

//go:noinline
func dropped(t *testing.T, cfg Config, use func(b *Bulkhead)) weak.Pointer[Bulkhead] {
	t.Helper()
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	use(b)
	return weak.Make(b)
}

// TestAHeldPermitHoldsItsBulkhead: it can be given back after everybody else has dropped the bulkhead.
func TestAHeldPermitHoldsItsBulkhead(t *testing.T) {
	var p Permit
	held := dropped(t, Config{Limit: 1}, func(b *Bulkhead) { p = enter2(b) })
	for range 5 {
		runtime.GC()
	}
	b := held.Value()
	if b == nil {
		t.Fatal("the bulkhead is gone")
	}
	exits(t, p, true, false)
	check(t, b, 0, 0, 0)
}
