package bulkhead

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const ms = time.Millisecond

// TestB5AWaiterThatGivesUp holds no place, loses none, and is answered within its wait.
func TestB5AWaiterThatGivesUp(t *testing.T) {
	deadline := func(b *Bulkhead, d time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		defer cancel()
		_, err := b.Enter(ctx)
		return err
	}
	longest := func(b *Bulkhead, d time.Duration) error {
		if _, out := b.TakeSlow(context.Background(), &Demand{Weight: 1, Longest: d}); out != Full {
			return fmt.Errorf("outcome %v", out)
		}
		return ErrFull
	}
	for _, tt := range []struct {
		name string
		try  func(b *Bulkhead) error
		want error
		took time.Duration
	}{
		{"at the end of the wait", func(b *Bulkhead) error { _, err := b.Enter(context.Background()); return err }, ErrFull, 300 * ms},
		{"at its deadline", func(b *Bulkhead) error { return deadline(b, 40*ms) }, context.DeadlineExceeded, 40 * ms},
		{"deadline beyond the wait", func(b *Bulkhead) error { return deadline(b, time.Second) }, ErrFull, 300 * ms},
		{"at its own longest", func(b *Bulkhead) error { return longest(b, 7*ms) }, ErrFull, 7 * ms},
		{"longest beyond the wait", func(b *Bulkhead) error { return longest(b, time.Second) }, ErrFull, 300 * ms},
		{"shortest of all", func(b *Bulkhead) error { return longest(b, 1) }, ErrFull, 1},
		{"does not wait at all", func(b *Bulkhead) error { return longest(b, -1) }, ErrFull, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := mustNew(t, Config{Limit: 1, Wait: 300 * ms, Queue: 10})
				p := enter(t, b)
				began := time.Now()
				err := tt.try(b)
				if took := time.Since(began); !errors.Is(err, tt.want) || took != tt.took {
					t.Errorf("%v after %v; want %v after %v", err, took, tt.want, tt.took)
				}
				check(t, b, 1, 0, 0)
				exits(t, p, true)
				fastPathIsOpen(t, b)
				enter(t, b)
				check(t, b, 1, 0, 0)
			})
		})
	}
}

// TestB5CancelledInTheSameInstant as a place comes free: the place goes to the next, never to both, never to nobody.
func TestB5CancelledInTheSameInstant(t *testing.T) {
	for _, first := range []string{"cancelled", "freed", "at once"} {
		t.Run(first, func(t *testing.T) {
			rounds := 500
			if testing.Short() {
				rounds = 50
			}
			synctest.Test(t, func(t *testing.T) {
				b := mustNew(t, Config{Limit: 1, Wait: time.Minute, Queue: 10})
				for range rounds {
					p := enter(t, b)
					gives := enterLater(t, b, 1, 0)
					synctest.Wait()
					next := enterLater(t, b, 1, 0)
					synctest.Wait()
					switch first {
					case "cancelled":
						gives.cancel()
						p.Exit()
					case "freed":
						p.Exit()
						gives.cancel()
					default:
						go p.Exit()
						gives.cancel()
					}
					synctest.Wait()
					if !gives.done.Load() {
						t.Fatal("the cancelled call still waits")
					}
					if first == "cancelled" && !errors.Is(gives.err, context.Canceled) {
						t.Fatalf("a call that was cancelled before its place came free: %v", gives.err)
					}
					if gives.in() == next.in() {
						t.Fatalf("the place went to both or to nobody: %v", next.in())
					}
					gives.permit.Exit()
					synctest.Wait()
					if !next.in() {
						t.Fatal("the next call still waits")
					}
					next.permit.Exit()
					check(t, b, 0, 0, 0)
				}
			})
		})
	}
}

// TestB5HandOver: a place that comes free goes to whoever waits, in no time at all. In a bubble time passes only when everybody
// waits, so that one lost wake-up in a hundred thousand shows.
func TestB5HandOver(t *testing.T) {
	for _, tt := range []struct {
		target                   int64
		bound, workers, heaviest int
	}{{100_000, 1, 8, 1}, {20_000, 1, 2, 1}, {20_000, 3, 12, 1}, {20_000, 4, 8, 4}} {
		if testing.Short() {
			tt.target /= 20
		}
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := mustNew(t, Config{Limit: tt.bound, Expand: 1, Wait: time.Minute, Queue: tt.workers})
				began := time.Now()
				var handed, refused, running, over atomic.Int64
				run := func(weight int) {
					if running.Add(int64(weight)) > int64(tt.bound) {
						over.Add(1)
					}
					runtime.Gosched() // so that others come
					running.Add(-int64(weight))
					if b.Waiting() > 0 {
						handed.Add(1)
					}
				}
				var wg sync.WaitGroup
				for w := range tt.workers {
					wg.Go(func() {
						for i := 0; handed.Load() < tt.target; i++ {
							weight := 1 + (w+i)%tt.heaviest
							if w%2 == 0 && weight == 1 {
								if tk, out := scopedTicket(b); out.Admitted() {
									run(1)
									b.Give(tk)
									continue
								}
							} else if p, err := b.EnterN(context.Background(), weight, w%Levels); err == nil {
								run(weight)
								p.Exit()
								continue
							}
							refused.Add(1)
						}
					})
				}
				wg.Wait()
				if took := time.Since(began); took != 0 {
					t.Errorf("everybody waited for %v although a place was free", took)
				}
				if refused.Load() != 0 || over.Load() != 0 {
					t.Errorf("%d refused, %d times more than %d at once", refused.Load(), over.Load(), tt.bound)
				}
				check(t, b, 0, 0, 0)
				fastPathIsOpen(t, b)
			})
		})
	}
}

// fastPathIsOpen when nobody waits any more.
func fastPathIsOpen(t *testing.T, b *Bulkhead) {
	t.Helper()
	tk, out := b.Take()
	if !out.Admitted() {
		t.Errorf("the fast path is shut, with a place free and nobody waiting: %v", out)
	}
	b.Give(tk)
}

// TestB5LeavingWhileSomebodyComes: whoever leaves before the one who comes is to be seen does not hand over, so that the other has to
// look once more after it is to be seen.
func TestB5LeavingWhileSomebodyComes(t *testing.T) {
	b := mustNew(t, Config{Limit: 1, Wait: time.Minute})
	enter(t, b)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.word.Add(^uint64(0)) // the leaving call's step, which sees nobody wait
	if w := b.enqueue(now(), &Demand{Weight: 1}); w.queued || w.outcome != Taken {
		t.Error("a call waits with a place free, and nobody will wake it")
	}
}

// TestB5RaisingTheBoundWakesAsManyAsFit.
func TestB5RaisingTheBoundWakesAsManyAsFit(t *testing.T) {
	for name, raise := range map[string]func(b *Bulkhead){
		"SetBound":  func(b *Bulkhead) { b.SetBound(4) },
		"Configure": func(b *Bulkhead) { b.Configure(Config{Limit: 4, Wait: 300 * ms, Queue: 2}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := mustNew(t, Config{Limit: 1, Wait: 300 * ms, Queue: 10})
				enter(t, b)
				var calls []*call
				for range 6 {
					calls = append(calls, enterLater(t, b, 1, 0))
					pass(ms)
				}
				raise(b)
				synctest.Wait()
				for i, c := range calls {
					if c.in() != (i < 3) {
						t.Errorf("waiter %d is in: %v", i, c.in())
					}
				}
				check(t, b, 4, 0, 3) // those who wait stay, also in a room that was made smaller
				late := enterLater(t, b, 1, 0)
				synctest.Wait()
				if name == "Configure" && !late.done.Load() {
					t.Error("a newcomer enters a room that is over its size")
				}
				pass(time.Second)
				for _, c := range calls[3:] {
					if !errors.Is(c.err, ErrFull) || c.took > 300*ms {
						t.Errorf("%v after %v, want ErrFull within 300ms", c.err, c.took)
					}
				}
				check(t, b, 4, 0, 0)
			})
		})
	}
}

// TestB5CloseAnswersAll.
func TestB5CloseAnswersAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 2, Wait: time.Minute, Queue: 10})
		running := enterSome(t, b, 2)
		var calls []*call
		for i := range 8 {
			calls = append(calls, enterLater(t, b, 1+i%2, i%Levels))
		}
		synctest.Wait()
		check(t, b, 2, 0, 8)
		b.Close()
		synctest.Wait()
		for i, c := range calls {
			if !c.done.Load() || !errors.Is(c.err, ErrClosed) {
				t.Errorf("waiter %d: %v, want ErrClosed", i, c.err)
			}
		}
		for _, p := range running {
			exits(t, p, true)
		}
		check(t, b, 0, 0, 0)
	})
}

// TestB5SettingsThatNoLongerWait: whoever waits already still gets a place.
func TestB5SettingsThatNoLongerWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 1, Wait: 300 * ms, Queue: 10})
		p := enter(t, b)
		c := enterLater(t, b, 1, 0)
		synctest.Wait()
		if err := b.Configure(Config{Limit: 1}); err != nil {
			t.Fatal(err)
		}
		refused(t, b, "nobody waits any more")
		refused(t, b, "nobody waits any more, and the bulkhead is quiet")
		check(t, b, 1, 0, 1)
		p.Exit()
		synctest.Wait()
		if !c.in() {
			t.Error("the one who waited did not get the place")
		}
		c.permit.Exit()
		enter(t, b)
	})
}

// TestB6TheRoomIsBounded: one more than it holds is refused at once, or takes the place of the newest of the least important.
func TestB6TheRoomIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 1, Wait: 300 * ms, Queue: 4})
		enter(t, b)
		calls := map[string]*call{}
		arrive := func(name string, level int) {
			calls[name] = enterLater(t, b, 1, level)
			pass(ms)
		}
		arrive("a2", 2)
		arrive("b3", 3)
		arrive("c3", 3)
		arrive("d1", 1)
		gone := []string{}
		for _, step := range []struct {
			name  string
			level int
			goes  string
		}{
			{"e3", 3, "e3"}, // itself
			{"f3", 3, "f3"},
			{"g2", 2, "c3"}, // the newest of the least important
			{"h2", 2, "b3"},
			{"i2", 2, "i2"}, // all are as important
			{"j0", 0, "h2"},
			{"k1", 1, "g2"},
			{"l0", 0, "a2"},
			{"m0", 0, "k1"},
			{"n0", 0, "d1"},
			{"o0", 0, "o0"},
		} {
			arrive(step.name, step.level)
			gone = append(gone, step.goes)
			for name, c := range calls {
				if want := slices.Contains(gone, name); c.done.Load() != want || want && !errors.Is(c.err, ErrFull) {
					t.Fatalf("after %s: %s is answered: %v (%v), want %v", step.name, name, c.done.Load(), c.err, want)
				}
			}
			check(t, b, 1, 0, 4)
		}
		b.Close()
	})
}

// TestB6Order: the most important first, among equals the oldest, and no newcomer overtakes.
func TestB6Order(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 1, Wait: time.Minute, Queue: 100})
		p := enter(t, b)
		type waiting struct {
			*call
			level, number int
		}
		var room []waiting
		n := 0
		arrive := func(level int) {
			room = append(room, waiting{enterLater(t, b, 1, level), level, n})
			n++
			synctest.Wait()
		}
		for i := range 20 {
			arrive(i * 7 % Levels)
		}
		for step := 0; len(room) > 0; step++ {
			if step%2 == 0 && step < 20 {
				arrive(step * 5 % Levels)
			}
			slices.SortStableFunc(room, func(x, y waiting) int { return x.level - y.level })
			p.Exit()
			synctest.Wait()
			for i, w := range room {
				if w.in() != (i == 0) {
					t.Fatalf("step %d: call %d of level %d is in: %v", step, w.number, w.level, w.in())
				}
			}
			p, room = room[0].permit, room[1:]
		}
		check(t, b, 1, 0, 0)
	})
}
