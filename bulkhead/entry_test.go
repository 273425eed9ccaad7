package bulkhead

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// waysIn are all the ways to take one place, each with its way to give it back.
var waysIn = []struct {
	name string
	in   func(b *Bulkhead) (leave func() bool, ok bool)
}{
	{"Enter", func(b *Bulkhead) (func() bool, bool) {
		p, err := b.Enter(context.Background())
		return p.Exit, err == nil
	}},
	{"EnterN", func(b *Bulkhead) (func() bool, bool) {
		p, err := b.EnterN(context.Background(), 1, 2)
		return p.Exit, err == nil
	}},
	{"Take", func(b *Bulkhead) (func() bool, bool) {
		t, out := scopedTicket(b)
		return func() bool { return b.Give(t) }, out.Admitted()
	}},
	{"Take and Hold", func(b *Bulkhead) (func() bool, bool) {
		t, out := scopedTicket(b)
		return b.Hold(t, Site{}, false).Exit, out.Admitted()
	}},
	{"TakeSlow, scoped, with an owner", func(b *Bulkhead) (func() bool, bool) {
		t, out := b.TakeSlow(context.Background(), &Demand{Weight: 1, Scoped: true, Owner: new(any)})
		return func() bool { return b.Give(t) }, out.Admitted()
	}},
	{"TakeSlow, with an owner", func(b *Bulkhead) (func() bool, bool) {
		t, out := b.TakeSlow(context.Background(), &Demand{Weight: 1, Owner: new(any)})
		return b.Hold(t, Site{}, false).Exit, out.Admitted()
	}},
}

// TestB1AdmitsUpToTheBound: N enter, one more does not, and one that leaves makes room for exactly one.
func TestB1AdmitsUpToTheBound(t *testing.T) {
	for _, way := range waysIn {
		for _, limit := range []int{1, 2, 20, 100} {
			t.Run(fmt.Sprint(way.name, " of ", limit), func(t *testing.T) {
				b := mustNew(t, Config{Limit: limit})
				// Each on a goroutine of its own, since a second scoped call of one goroutine is nested in the first.
				leave := make([]func() bool, limit)
				for i := range leave {
					ok := false
					onGoroutine(func() { leave[i], ok = way.in(b) })
					if !ok {
						t.Fatalf("call %d of %d is refused", i+1, limit)
					}
				}
				for range 3 {
					if _, ok := way.in(b); ok {
						t.Fatal("one call too many is admitted")
					}
				}
				check(t, b, limit, 0, 0)
				if !leave[limit/2]() {
					t.Fatal("the first Exit reports that it was not the first")
				}
				ok := false
				onGoroutine(func() { leave[limit/2], ok = way.in(b) })
				if !ok {
					t.Fatal("the place that was given back is not found")
				}
				if _, ok := way.in(b); ok {
					t.Fatal("one Exit made room for two")
				}
				for _, f := range leave {
					f()
				}
				check(t, b, 0, 0, 0)
				if s := b.Snapshot(); s.Admitted != uint64(limit)+1 {
					t.Errorf("admitted %d, want %d", s.Admitted, limit+1)
				}
			})
		}
	}
}

func onGoroutine(f func()) {
	var wg sync.WaitGroup
	wg.Go(f)
	wg.Wait()
}

// TestB1AfterALoweringInFlightOnlyFalls: calls that run are not touched, and nobody enters until enough have left.
func TestB1AfterALoweringInFlightOnlyFalls(t *testing.T) {
	for name, lower := range map[string]func(b *Bulkhead){
		"SetBound":  func(b *Bulkhead) { b.SetBound(3) },
		"Configure": func(b *Bulkhead) { b.Configure(Config{Limit: 3}) },
	} {
		t.Run(name, func(t *testing.T) {
			b := mustNew(t, Config{Limit: 10})
			permits := make([]Permit, 10)
			for i := range permits {
				permits[i] = enter(t, b)
			}
			lower(b)
			for live := 10; live > 2; live-- {
				for range 2 {
					if _, err := b.Enter(context.Background()); !errors.Is(err, ErrFull) {
						t.Fatalf("with %d in flight and a bound of 3: %v, want ErrFull", live, err)
					}
				}
				check(t, b, live, 0, 0)
				permits[live-1].Exit()
			}
			enter(t, b)
			check(t, b, 3, 0, 0)
		})
	}
}

// TestB1ALoweringOutdatesWhatWasPrepared: a call that read the word and the gate before the bound was lowered does not enter by them
// afterwards.
func TestB1ALoweringOutdatesWhatWasPrepared(t *testing.T) {
	b := mustNew(t, Config{Limit: 4, Wait: time.Minute})
	for name, lower := range map[string]func(){
		"SetBound": func() { b.SetBound(b.Bound() - 1) },
		"Close":    func() { b.Close() },
		"a first waiter": func() {
			b.mu.Lock()
			b.room.count++
			b.regate()
			b.room.count--
			b.regate()
			b.mu.Unlock()
		},
		"other settings": func() { b.Configure(Config{Limit: 1, Wait: time.Minute}); b.SetBound(4) },
		"a detached call": func() {
			b.mu.Lock()
			b.detached.Add(13)
			b.regate()
			b.detached.Add(-13)
			b.regate()
			b.mu.Unlock()
		},
	} {
		b = mustNew(t, Config{Limit: 4, Wait: time.Minute})
		word := b.word.Load()
		lower()
		if b.word.CompareAndSwap(word, word+seqOne+1) {
			t.Errorf("%s: a compare-and-swap prepared before it succeeds", name)
		}
		if s := b.Snapshot(); s.Admitted != 0 {
			t.Errorf("%s counts as %d admissions", name, s.Admitted)
		}
	}
}

func TestSetBoundStaysWithinItsRange(t *testing.T) {
	b := mustNew(t, Config{Limit: 10, Expand: 2})
	for n, want := range map[int]int{-5: 1, 0: 1, 1: 1, 10: 10, 20: 20, 21: 20, 1<<31 - 1: 20} {
		if b.SetBound(n); b.Bound() != want {
			t.Errorf("SetBound(%d) sets %d, want %d", n, b.Bound(), want)
		}
	}
}

// TestB1WorkersWithinTheLimitAreNeverRefused: as many workers as places, on two processors, each for ever in and out. A
// place that was given back is there for the next call at once, and no check-then-act sees one too many.
func TestB1WorkersWithinTheLimitAreNeverRefused(t *testing.T) {
	rounds := 20_000
	if testing.Short() {
		rounds = 2_000
	}
	for _, way := range waysIn {
		for _, n := range []int{1, 2, 7} {
			t.Run(fmt.Sprint(way.name, " by ", n), func(t *testing.T) {
				b := mustNew(t, Config{Limit: n})
				var refused, running, most atomic.Int64
				var wg sync.WaitGroup
				for range n {
					wg.Go(func() {
						for range rounds / n {
							leave, ok := way.in(b)
							if !ok {
								refused.Add(1)
								continue
							}
							if r := running.Add(1); r > most.Load() {
								most.Store(r)
							}
							running.Add(-1)
							leave()
						}
					})
				}
				wg.Wait()
				if refused.Load() != 0 {
					t.Errorf("%d of %d calls are refused although there is a place for each worker", refused.Load(), rounds)
				}
				if most.Load() > int64(n) {
					t.Errorf("%d ran at once, the bound is %d", most.Load(), n)
				}
				check(t, b, 0, 0, 0)
			})
		}
	}
}

// TestB1EvictionWaitsForAPlaceOnItsWay: an entry leaves in two steps, first its slot, then its place. Who wants to evict it between
// the two must not count the place as free, nor evict in vain.
func TestB1EvictionWaitsForAPlaceOnItsWay(t *testing.T) {
	for _, weight := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			b := mustNew(t, Config{Limit: 3, Expand: 2, Stale: time.Second})
			var permits []Permit
			for range 3 {
				permits = append(permits, enter(t, b))
				pass(time.Millisecond)
			}
			for _, p := range permits[weight:] {
				p.Pin()
			}
			pass(time.Second)
			leaving := permits[weight-1]
			id := leaving.state & identity

			b.mu.Lock()
			stale, _ := b.stale(now())
			if len(stale) != weight {
				t.Fatalf("%d entries may be evicted, want %d", len(stale), weight)
			}
			leaving.token.slot.state.CompareAndSwap(id|kindBusy, id) // the first step of Exit
			_, no := b.displace(stale, weight)
			b.mu.Unlock()
			if no.until == 0 {
				t.Errorf("a call of weight %d got a place that is not free yet", weight)
			}
			check(t, b, 3, 0, 0)
			if list, _ := b.Reports(); b.Snapshot().Evicted != 0 || len(list) != 0 {
				t.Errorf("weight %d: %d evicted in vain, %d reported", weight, b.Snapshot().Evicted, len(list))
			}
			b.release(1) // the second step
			for _, p := range permits {
				exits(t, p, p != leaving)
			}
			check(t, b, 0, 0, 0)
		})
	}
}

// TestB3TheHeadIsTheOldest: leaving removes the caller's own entry, whatever the order, and the rest stays in order.
func TestB3TheHeadIsTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 50})
		began := map[*Permit]time.Time{}
		var queue []*Permit
		expect := func() {
			t.Helper()
			list := b.Entries()
			if len(list) != len(queue) {
				t.Fatalf("%d entries, want %d", len(list), len(queue))
			}
			for i, e := range list {
				if d := e.Age - time.Since(began[queue[i]]); d < -256 || d > 256 {
					t.Fatalf("entry %d of %d is %v old, want %v", i, len(list), e.Age, time.Since(began[queue[i]]))
				}
			}
			oldest := time.Duration(0)
			if len(list) > 0 {
				oldest = list[0].Age
			}
			if s := b.Snapshot(); s.Oldest != oldest {
				t.Fatalf("Oldest is %v, the head %v", s.Oldest, oldest)
			}
		}
		for i := range 200 {
			if len(queue) == 50 || i%3 == 2 {
				k := i * 7 % len(queue)
				exits(t, *queue[k], true)
				queue = append(queue[:k:k], queue[k+1:]...)
			} else {
				p := enter(t, b)
				began[&p] = time.Now()
				queue = append(queue, &p)
			}
			expect()
			if i%5 != 0 { // else several at one instant
				pass(time.Millisecond)
			}
		}
	})
}

// TestB3OrderWithinOneInstant is by number.
func TestB3OrderWithinOneInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 300})
		var owners []any
		for i := range 300 {
			var o any = i
			owners = append(owners, o)
			tk, out := b.TakeSlow(context.Background(), &Demand{Weight: 1, Owner: &o})
			if !out.Admitted() {
				t.Fatal(out)
			}
			p := b.Hold(tk, Site{}, false)
			defer runtime.KeepAlive(p)
		}
		for i, e := range b.Entries() {
			if e.Owner != owners[i] {
				t.Fatalf("entry %d is that of call %v", i, e.Owner)
			}
		}
	})
}

// TestDemandOutOfRange: a caller's mistake neither corrupts the count nor stops the bulkhead for ever.
func TestDemandOutOfRange(t *testing.T) {
	b := mustNew(t, Config{Limit: 1, Wait: time.Minute})
	for _, d := range []Demand{{}, {Weight: -7}, {Weight: 1, Level: 9}, {Weight: 1, Level: -1}} {
		tk, out := b.TakeSlow(context.Background(), &d)
		if !out.Admitted() {
			t.Fatalf("%+v: %v, want Taken", d, out)
		}
		p := b.Hold(tk, Site{}, false)
		check(t, b, 1, 0, 0)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, out := b.TakeSlow(ctx, &d); out != Ended {
			t.Errorf("%+v on a full bulkhead: %v, want Ended", d, out)
		}
		exits(t, p, true)
		check(t, b, 0, 0, 0)
	}
	if _, err := b.EnterN(context.Background(), 0, 0); !errors.Is(err, ErrWeight) {
		t.Errorf("EnterN of weight 0: %v, want ErrWeight", err)
	}
	for _, level := range []int{-1, Levels, 99} {
		p, err := b.EnterN(context.Background(), 1, level)
		if err != nil {
			t.Errorf("EnterN at level %d: %v", level, err)
		}
		p.Exit()
	}
}

func TestEnterOnAnEndedContext(t *testing.T) {
	b := mustNew(t, Config{Limit: 1})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := b.Enter(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Enter: %v, want context.Canceled", err)
	}
	ctx, cancel = context.WithTimeout(context.Background(), -1)
	defer cancel()
	if _, err := b.EnterN(ctx, 1, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("EnterN: %v, want context.DeadlineExceeded", err)
	}
	check(t, b, 0, 0, 0)
}

func TestCloseRefusesAndLetsRun(t *testing.T) {
	b := mustNew(t, Config{Limit: 2})
	p := enter(t, b)
	b.Close()
	b.Close()
	for _, way := range waysIn {
		if _, ok := way.in(b); ok {
			t.Errorf("%s enters a closed bulkhead", way.name)
		}
	}
	if _, err := b.Enter(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("Enter: %v, want ErrClosed", err)
	}
	b.SetBound(5)
	if err := b.Configure(Config{Limit: 9}); err != nil {
		t.Error(err)
	}
	if _, err := b.Enter(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("Enter after new settings: %v, want ErrClosed", err)
	}
	exits(t, p, true, false)
	check(t, b, 0, 0, 0)
}

// TestWithoutGoroutineNumbers: where goid is wrong every call takes the slow path, and everything still holds.
func TestWithoutGoroutineNumbers(t *testing.T) {
	withoutFastPath(t)
	b := mustNew(t, Config{Limit: 2})
	p, q := enter(t, b), enter(t, b)
	for range 3 {
		if _, err := b.Enter(context.Background()); !errors.Is(err, ErrFull) {
			t.Fatalf("on a full bulkhead: %v, want ErrFull", err)
		}
	}
	exits(t, p, true)
	p = enter(t, b) // not refused for having been full a moment ago
	exits(t, q, true)
	tk, out := scopedTicket(b)
	if !out.Admitted() {
		t.Fatal(out)
	}
	if _, out := scopedTicket(b); out != Nested {
		t.Errorf("a call inside a call: %v, want Nested", out)
	}
	b.Give(tk)
	exits(t, p, true, false)
	check(t, b, 0, 0, 0)
}
