package bulkhead

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/internal/goroutine"
)

func refused(t testing.TB, b *Bulkhead, why string) {
	t.Helper()
	if _, err := b.Enter(context.Background()); !errors.Is(err, ErrFull) {
		t.Fatalf("%s: %v, want ErrFull", why, err)
	}
}

// TestB4AStuckCallLosesItsPlace: exactly at its age, only the head, only at need, and it stays counted as detached until it leaves.
func TestB4AStuckCallLosesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 3, Expand: 2, Stale: time.Second})
		first := enter(t, b)
		pass(10 * time.Millisecond)
		second := enter(t, b)
		pass(10 * time.Millisecond)
		third := enter(t, b)
		refused(t, b, "nobody is stale")
		pass(979 * time.Millisecond)
		refused(t, b, "a millisecond before the head is stale")
		pass(time.Millisecond)
		fourth := enter(t, b)
		check(t, b, 3, 1, 0)
		refused(t, b, "the next head is not stale")

		list := b.Entries()
		if len(list) != 4 || !list[0].Detached || list[1].Detached {
			t.Fatalf("entries: %+v", list)
		}
		reports, dropped := b.Reports()
		if len(reports) != 1 || dropped != 0 {
			t.Fatalf("reports: %+v, %d dropped", reports, dropped)
		}
		want := Report{Kind: Evicted, Goroutine: goroutine.ID(), Weight: 1, Age: reports[0].Age}
		if r := reports[0]; r.Kind != want.Kind || r.Goroutine != want.Goroutine || r.Weight != 1 || r.Age != time.Second&^255 && r.Age != time.Second {
			t.Errorf("report %+v, want %+v", r, want)
		}

		exits(t, first, true, false) // an evicted call leaves as any other, and frees nobody's place
		check(t, b, 3, 0, 0)
		refused(t, b, "the evicted call had no place to give back")

		exits(t, second, true) // with a free place nobody is evicted, however old
		pass(time.Hour)
		fifth := enter(t, b)
		check(t, b, 3, 0, 0)
		for _, p := range []Permit{third, fourth, fifth} {
			exits(t, p, true, false)
		}
		check(t, b, 0, 0, 0)
		if s := b.Snapshot(); s.Evicted != 1 || s.Admitted != 5 {
			t.Errorf("evicted %d, admitted %d; want 1, 5", s.Evicted, s.Admitted)
		}
	})
}

// TestB4AHangingDependencyHitsTheWall: live and detached calls together never exceed Expand x Limit, whatever is evicted.
func TestB4AHangingDependencyHitsTheWall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 2, Expand: 3, Stale: time.Second})
		var hung []Permit
		for range 3 {
			hung = append(hung, enterAll(t, b)...)
			pass(2 * time.Second)
		}
		check(t, b, 2, 4, 0)
		for range 5 {
			refused(t, b, "at the wall")
			pass(2 * time.Second)
		}
		exits(t, hung[0], true) // one of the detached
		enter(t, b)
		check(t, b, 2, 4, 0)
		refused(t, b, "at the wall again")
		for _, p := range hung[1:] {
			exits(t, p, true)
		}
		check(t, b, 1, 0, 0)
	})
}

// TestB4WhoIsNotEvicted however old.
func TestB4WhoIsNotEvicted(t *testing.T) {
	memory := new(gauge)
	for _, tt := range []struct {
		name  string
		cfg   Config
		spare func(p Permit)
		then  func(b *Bulkhead) // lifts what spared them
	}{
		{"no room for what it holds", Config{Limit: 2, Expand: 1, Stale: time.Second}, nil,
			func(b *Bulkhead) { b.Configure(Config{Limit: 2, Stale: time.Second}) }},
		{"pinned", Config{Limit: 2, Stale: time.Second}, Permit.Pin, nil},
		{"memory is tight", Config{Limit: 2, Stale: time.Second, Memory: memory},
			func(Permit) { memory.tight.Store(true) }, func(*Bulkhead) { memory.tight.Store(false) }},
		{"not stale yet", Config{Limit: 2, Stale: 24 * time.Hour}, nil,
			func(b *Bulkhead) { b.Configure(Config{Limit: 2, Stale: time.Second}) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := mustNew(t, tt.cfg)
				for range 2 {
					if p := enter(t, b); tt.spare != nil {
						tt.spare(p)
					}
				}
				for range 20 {
					pass(3 * time.Second)
					refused(t, b, tt.name)
				}
				check(t, b, 2, 0, 0)
				if tt.then == nil {
					return
				}
				tt.then(b)
				pass(recheck)
				enter(t, b)
				check(t, b, 2, 1, 0)
			})
		})
	}
}

// TestB4APinnedHeadSparesOnlyItself: a stream at the head does not protect what is stuck behind it.
func TestB4APinnedHeadSparesOnlyItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 2, Stale: time.Second})
		stream := enter(t, b)
		stream.Pin()
		pass(time.Millisecond)
		stuck := enter(t, b)
		pass(time.Second)
		enter(t, b)
		check(t, b, 2, 1, 0)
		stuck.Pin() // too late
		list := b.Entries()
		if !list[0].Pinned || list[0].Detached || !list[1].Detached || list[1].Pinned {
			t.Errorf("entries: %+v", list)
		}
		exits(t, stream, true)
		exits(t, stuck, true)
	})
}

// TestB4AfterALowering as many go as the bound in force demands, or none.
func TestB4AfterALowering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 6, Expand: 2, Stale: time.Second})
		var old []Permit
		for range 4 {
			old = append(old, enter(t, b))
			pass(time.Millisecond)
		}
		pass(500 * time.Millisecond)
		enterAll(t, b)
		b.SetBound(3)
		pass(600 * time.Millisecond)
		enter(t, b) // four stale, and 6 + 1 - 3 have to go
		check(t, b, 3, 4, 0)
		for _, p := range old {
			exits(t, p, true)
		}
		b.SetBound(1)
		refused(t, b, "two of the three that would have to go are not stale")
		check(t, b, 3, 0, 0)
	})
}

// TestB4ScopedCallsAreEvictedToo: Do's entries as well as Enter's.
func TestB4ScopedCallsAreEvictedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 1, Stale: time.Second})
		for _, d := range []Demand{{Weight: 1, Scoped: true}, {Weight: 1, Scoped: true, Owner: new(any)}} {
			release, gave := make(chan struct{}), make(chan bool)
			go func() {
				tk, out := b.TakeSlow(context.Background(), &d)
				<-release
				gave <- out.Admitted() && b.Give(tk) && !b.Give(tk)
			}()
			pass(time.Second)
			p := enter(t, b)
			check(t, b, 1, 1, 0)
			close(release)
			if !<-gave {
				t.Error("an evicted call's Give does not count once")
			}
			check(t, b, 1, 0, 0)
			p.Exit()
		}
	})
}

// TestB4EveryWayInEvicts.
func TestB4EveryWayInEvicts(t *testing.T) {
	for _, way := range waysIn {
		t.Run(way.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := mustNew(t, Config{Limit: 2, Stale: time.Second})
				enterAll(t, b)
				if _, ok := way.in(b); ok {
					t.Fatal("entered a full bulkhead")
				}
				pass(time.Second)
				leave, ok := way.in(b)
				if !ok {
					t.Fatal("a stuck call keeps its place")
				}
				check(t, b, 2, 1, 0)
				leave()
			})
		})
	}
}

// TestB4WaitingCallsEvict: somebody who waits gets the place of a call that becomes stuck meanwhile. Were it left to newcomers, a room
// that is never empty would keep every stuck place for ever. (Whoever waits for half a second with nothing happening is refused for
// standing overload: see room.)
func TestB4WaitingCallsEvict(t *testing.T) {
	t.Run("alone, to the millisecond", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := mustNew(t, Config{Limit: 1, Stale: 400 * time.Millisecond, Wait: time.Minute})
			enter(t, b)
			pass(100 * time.Millisecond)
			c := enterLater(t, b, 1, 0)
			pass(299 * time.Millisecond)
			if c.done.Load() {
				t.Fatal("answered too early")
			}
			pass(2 * time.Millisecond)
			if !c.in() {
				t.Fatal("not admitted when the head became stale")
			}
			check(t, b, 1, 1, 0)
		})
	})
	t.Run("all in their order", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := mustNew(t, Config{Limit: 3, Expand: 2, Stale: 300 * time.Millisecond, Wait: time.Minute, Queue: 10})
			enterSome(t, b, 3)
			var calls []*call
			for range 4 {
				calls = append(calls, enterLater(t, b, 1, 0))
				pass(time.Millisecond)
			}
			pass(300 * time.Millisecond)
			for i, c := range calls {
				if c.in() != (i < 3) {
					t.Errorf("waiter %d is in: %v", i, c.in())
				}
			}
			check(t, b, 3, 3, 1)
			calls[3].cancel()
		})
	})
	t.Run("at the last moment", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := mustNew(t, Config{Limit: 1, Stale: 500 * time.Millisecond, Wait: 100 * time.Millisecond, Queue: 5})
			enter(t, b)
			pass(300 * time.Millisecond)
			early := enterLater(t, b, 1, 0)
			pass(100 * time.Millisecond)
			late := enterLater(t, b, 1, 0)
			pass(50 * time.Millisecond)
			if !early.done.Load() || !errors.Is(early.err, ErrFull) || late.done.Load() {
				t.Fatalf("the early one: %v", early.err)
			}
			pass(50 * time.Millisecond)
			if !late.in() {
				t.Fatalf("the late one: %v", late.err)
			}
		})
	})
	t.Run("under constant arrivals", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := mustNew(t, Config{Limit: 4, Expand: 2, Stale: time.Second, Wait: 200 * time.Millisecond, Queue: 8})
			enterSome(t, b, 4)
			for i := 0; b.Snapshot().Evicted < 4; i++ {
				if i == 400 {
					t.Fatal("two seconds after the head became stale nobody has got its place")
				}
				enterLater(t, b, 1, 0)
				pass(5 * time.Millisecond)
			}
			check(t, b, 4, 4, b.Waiting())
			b.Close()
		})
	})
	t.Run("when somebody else comes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := mustNew(t, Config{Limit: 1, Stale: 100 * ms, Wait: time.Minute, Queue: 5})
			enter(t, b)
			pass(50 * ms)
			first := enterLater(t, b, 1, 0) // the one that would look in time
			pass(ms)
			second := enterLater(t, b, 1, 0)
			pass(40 * ms)
			first.cancel()
			pass(20 * ms)
			enterLater(t, b, 1, 0)
			synctest.Wait()
			if !second.in() {
				t.Error("a newcomer looked, and the first in the room did not get the stuck place")
			}
			check(t, b, 1, 1, 1)
			b.Close()
		})
	})
	t.Run("not while memory is tight", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			memory := new(gauge)
			memory.tight.Store(true)
			b := mustNew(t, Config{Limit: 1, Stale: 100 * time.Millisecond, Wait: time.Minute, Memory: memory})
			enter(t, b)
			c := enterLater(t, b, 1, 0)
			pass(200 * time.Millisecond)
			check(t, b, 1, 0, 1)
			memory.tight.Store(false)
			pass(pollEvery)
			if !c.in() {
				t.Error("not admitted when memory was free again")
			}
		})
	})
}

// TestB4NobodySlipsInDuringAnEviction: until detached places count, the fast path must not fill what they leave. Here a light call takes
// the place of a heavy one next to the wall, so that nobody else may enter at any moment.
func TestB4NobodySlipsInDuringAnEviction(t *testing.T) {
	rounds := 500
	if testing.Short() {
		rounds = 50
	}
	b := mustNew(t, Config{Limit: 4, Expand: 2, Stale: time.Nanosecond}) // whoever is in is stale
	var wanted, tries atomic.Bool
	await := func(flag *atomic.Bool, is bool) {
		for flag.Load() != is {
			runtime.Gosched()
		}
	}
	var other sync.WaitGroup
	slipped := 0
	other.Go(func() {
		for range rounds {
			await(&wanted, true)
			tries.Store(true)
			for wanted.Load() {
				if tk, out := b.Take(); out.Admitted() {
					slipped++
					b.Give(tk)
				}
			}
			tries.Store(false)
		}
	})
	for range rounds {
		light := enterN(t, b, 3)
		heavy := enterN(t, b, 4) // three detached, four in
		wanted.Store(true)
		await(&tries, true)
		last, err := b.Enter(context.Background()) // seven detached, one in
		wanted.Store(false)
		await(&tries, false)
		if err != nil || b.InFlight() != 1 || b.detached.Load() != 7 {
			t.Fatalf("the light call: %v, in flight %d, detached %d; want nil, 1, 7", err, b.InFlight(), b.detached.Load())
		}
		for _, p := range []Permit{light, heavy, last} {
			p.Exit()
		}
	}
	other.Wait()
	if slipped != 0 {
		t.Errorf("%d calls entered next to a wall that they are beyond", slipped)
	}
	check(t, b, 0, 0, 0)
}
