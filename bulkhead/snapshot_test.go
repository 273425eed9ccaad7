package bulkhead

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/internal/goroutine"
)

func TestSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 4, Expand: 3, Stale: time.Second, Wait: time.Minute, Queue: 5})
		if s := b.Snapshot(); s != (Snapshot{Limit: 4, Bound: 4, Max: 12}) {
			t.Errorf("of an empty bulkhead: %+v", s)
		}
		if idle, since := b.Idle(); !idle || since < 50*24*time.Hour {
			t.Errorf("never used: idle %v, for %v", idle, since)
		}
		enterN(t, b, 3)
		pass(time.Second)
		stream := enter(t, b)
		stream.Pin()
		b.SetBound(5)
		c := enterLater(t, b, 2, 0) // the head goes, for 3 places
		pass(500 * ms)
		last := enterLater(t, b, 4, 0)
		pass(ms)
		if !c.in() || last.done.Load() {
			t.Fatal("the test wants one in and one waiting")
		}
		got := b.Snapshot()
		want := Snapshot{Limit: 4, Bound: 5, Max: 12, InFlight: 3, Detached: 3, Waiting: 1, Oldest: got.Oldest, Admitted: 3, Evicted: 1}
		if d := got.Oldest - 501*ms; got != want || d < -256 || d > 256 {
			t.Errorf("%+v, want %+v with Oldest about 501ms", got, want)
		}
		list := b.Entries()
		if len(list) != 3 {
			t.Fatalf("entries %+v", list)
		}
		for i, e := range []Entry{{Weight: 3, Detached: true}, {Weight: 1, Pinned: true}, {Weight: 2}} {
			e.Age, e.Goroutine = list[i].Age, list[i].Goroutine
			if list[i] != e || i < 2 && e.Goroutine != goroutine.ID() {
				t.Errorf("entry %d: %+v, want %+v", i, list[i], e)
			}
		}
		if idle, since := b.Idle(); idle || since > 502*ms {
			t.Errorf("idle %v, for %v", idle, since)
		}
		b.Close()
	})
}

// TestAdmittedNeverGoesBack, also when a place that was granted turns out to be of no use.
func TestAdmittedNeverGoesBack(t *testing.T) {
	b := mustNew(t, Config{Limit: 2})
	b.admit(1) // to a call that was cancelled at the same instant
	seen := b.Snapshot().Admitted
	b.release(1)
	if now := b.Snapshot().Admitted; now < seen {
		t.Errorf("admitted %d after %d", now, seen)
	}
	enter(t, b)
	if now := b.Snapshot().Admitted; now != 1 {
		t.Errorf("admitted %d, want 1", now)
	}
}

func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 1, Expand: 2, Stale: time.Second})
		p := enter(t, b)
		if idle, _ := b.Idle(); idle {
			t.Error("idle with a call in flight")
		}
		pass(time.Second)
		q := enter(t, b)
		q.Exit()
		if idle, _ := b.Idle(); idle {
			t.Error("idle with a detached call that still runs")
		}
		pass(time.Hour)
		p.Exit()
		if idle, since := b.Idle(); !idle || since < time.Hour-256 || since > time.Hour+256 {
			t.Errorf("idle %v, the last call began %v ago; want true, 1h", idle, since)
		}
	})
}

// TestSnapshotsAmongCalls: what is read while everything moves is true of some moment. Settings stay, so that InFlight + Detached
// never exceed Max, InFlight never exceeds Bound, and no counter goes back.
func TestSnapshotsAmongCalls(t *testing.T) {
	rounds := 3_000
	if testing.Short() {
		rounds = 300
	}
	b := mustNew(t, Config{Limit: 6, Expand: 3, Stale: time.Microsecond, Wait: 5 * ms, Queue: 8})
	stop := make(chan struct{})
	var readers, callers sync.WaitGroup
	readers.Go(func() {
		var last Snapshot
		for reads := 0; ; reads++ {
			select {
			case <-stop:
				t.Logf("%d snapshots, at last %+v", reads, last)
				return
			default:
			}
			s := b.Snapshot()
			if s.InFlight+s.Detached > s.Max || s.InFlight > s.Bound || s.InFlight < 0 || s.Detached < 0 || s.Waiting > 8 {
				t.Errorf("impossible: %+v", s)
			}
			if s.Admitted < last.Admitted || s.Evicted < last.Evicted || s.Lost < last.Lost {
				t.Errorf("a counter goes back: %+v after %+v", s, last)
			}
			last = s
			b.Idle()
		}
	})
	for w := range 16 {
		callers.Go(func() {
			for range rounds {
				switch rand.IntN(3) {
				case 0:
					if tk, out := scopedTicket(b); out.Admitted() {
						runtime.Gosched()
						b.Give(tk)
					}
				case 1:
					if p, err := b.EnterN(context.Background(), 1+w%3, w%Levels); err == nil {
						runtime.Gosched()
						p.Exit()
					}
				default:
					ctx, cancel := context.WithCancel(context.Background())
					go cancel()
					if p, err := b.Enter(ctx); err == nil {
						p.Exit()
					}
				}
			}
		})
	}
	callers.Wait()
	close(stop)
	readers.Wait()
	check(t, b, 0, 0, 0)
	if idle, _ := b.Idle(); !idle {
		t.Error("not idle at the end")
	}
}

// TestEntriesShowOnlyWhoIsIn: each goroutine counts its ways in and out; one whose count says "out" and does not move while the entries
// are read must not be among them.
func TestEntriesShowOnlyWhoIsIn(t *testing.T) {
	reads := 3_000
	if testing.Short() {
		reads = 300
	}
	const workers = 24
	b := mustNew(t, Config{Limit: 8, Expand: 4, Stale: time.Microsecond})
	var steps [workers]atomic.Uint64 // even: out
	var owners [workers]any
	for w := range owners {
		owners[w] = w
	}
	ids := map[uint64]int{}
	var mu sync.Mutex
	var ready, done sync.WaitGroup
	stop := make(chan struct{})
	ready.Add(workers)
	for w := range workers {
		done.Go(func() {
			mu.Lock()
			ids[goroutine.ID()] = w
			mu.Unlock()
			ready.Done()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				steps[w].Add(1)
				if (w+i)%2 == 0 {
					if tk, out := scopedTicket(b); out.Admitted() {
						runtime.Gosched()
						b.Give(tk)
					}
				} else if tk, out := b.TakeSlow(context.Background(), &Demand{Weight: 1 + w%2, Owner: &owners[w]}); out.Admitted() {
					p := b.Hold(tk, Site{}, false)
					runtime.Gosched()
					p.Exit()
				}
				steps[w].Add(1)
				runtime.Gosched()
			}
		})
	}
	ready.Wait()
	seen := 0
	for i := 0; i < reads || seen == 0 && i < 1000*reads; i++ {
		runtime.Gosched()
		var before [workers]uint64
		for w := range before {
			before[w] = steps[w].Load()
		}
		list := b.Entries()
		for _, e := range list {
			w, ok := ids[e.Goroutine]
			if !ok || e.Age < 0 || e.Owner != nil && (e.Owner != w || e.Weight != 1+w%2) || e.Owner == nil && e.Weight != 1 {
				t.Fatalf("nobody's entry: %+v", e)
			}
			if before[w]%2 == 0 && steps[w].Load() == before[w] {
				t.Fatalf("goroutine %d is shown in the call and was outside all the time: %+v", e.Goroutine, e)
			}
			seen++
		}
	}
	close(stop)
	done.Wait()
	if seen == 0 {
		t.Error("no entry was seen: the test shows nothing")
	}
	if list := b.Entries(); len(list) != 0 {
		t.Errorf("at the end: %+v", list)
	}
	check(t, b, 0, 0, 0)
}
