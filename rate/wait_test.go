package rate

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestWaitInOrder(t *testing.T) {
	for _, a := range []Algorithm{
		TokenBucket{Rate: PerSecond(10), Burst: 2}, SlidingWindow{Limit: 2, Window: time.Second}, FixedWindow{Limit: 2, Window: time.Second},
		LeakyBucket{Rate: PerSecond(10), Queue: 100},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := limiter(t, a, 10)
			b := l.Bucket("k")
			var mu sync.Mutex
			var order []int
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					pause(time.Duration(i) * time.Microsecond)
					if err := b.Wait(t.Context(), 1+int64(i%2)); err != nil {
						t.Error(err)
					}
					mu.Lock()
					order = append(order, i)
					mu.Unlock()
				})
			}
			wg.Wait()
			if !slices.IsSorted(order) {
				t.Errorf("%T: left in the order %v", a, order)
			}
			if n := l.slow.Load(); n > 1 || len(l.lines.byKey) != 0 {
				t.Errorf("%T: %d on the slow path, lines %v", a, n, l.lines.byKey)
			}
		})
	}
}

// While somebody waits for five tokens, nobody takes them away one by one; other keys do not care.
func TestNobodyPassesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, TokenBucket{Rate: PerSecond(10), Burst: 5}, 10)
		b, other := l.Bucket("k"), l.Bucket("other")
		take(t, b, 5)
		start, done := time.Now(), make(chan error, 1)
		go func() { done <- b.Wait(t.Context(), 5) }()
		for range 49 {
			pause(10 * time.Millisecond)
			if b.Allow() || l.Allow("k") {
				t.Fatal("passed the line")
			}
			d := take(t, b, 1)
			if d.OK || d.RetryAfter <= 0 {
				t.Fatalf("%+v", d)
			}
			ds, err := Take(t.Context(), []Request{{l, "k", 1, false}, {l, "other", 1, false}})
			if err != nil || ds[0].OK || ds[1].OK || ds[0].RetryAfter <= 0 || ds[1].RetryAfter != 0 {
				t.Fatalf("%+v %v", ds, err)
			}
			if d, _ := b.Peek(t.Context(), 1); d.OK {
				t.Fatalf("%+v", d)
			}
		}
		if passed(other, 10) != 5 {
			t.Error("another key is none of its business")
		}
		if err := <-done; err != nil || time.Since(start) != 500*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestWaitEnds(t *testing.T) {
	for _, a := range []Algorithm{TokenBucket{Rate: PerSecond(1), Burst: 3}, LeakyBucket{Rate: PerSecond(1), Queue: 2}} {
		synctest.Test(t, func(t *testing.T) {
			l := limiter(t, a, 1)
			b := l.Bucket("")
			if err := b.Wait(t.Context(), 4); !errors.Is(err, ErrNever) {
				t.Errorf("4 of 3: %v", err)
			}
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			if err := b.Wait(gone, 1); !errors.Is(err, context.Canceled) {
				t.Errorf("a context that is over: %v", err)
			}
			if d, _ := b.Peek(t.Context(), 3); !d.OK || d.Remaining != 3 {
				t.Fatalf("those took something: %+v", d)
			}
			take(t, b, 2)
			take(t, b, 1)

			start := time.Now()
			short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			if err := b.Wait(short, 1); !errors.Is(err, ErrLate) || time.Since(start) != 0 {
				t.Errorf("too late: %v after %v", err, time.Since(start))
			}
			pause(time.Second)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- b.Wait(ctx, 3) }()
			pause(500 * time.Millisecond)
			cancel()
			err := <-done
			if l.leaky {
				if !errors.Is(err, ErrLate) { // 3 have no room behind what waits
					t.Error(err)
				}
			} else if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			pause(10 * time.Second)
			if d := take(t, b, 3); !d.OK {
				t.Errorf("something was kept: %+v", d)
			}
		})
	}
}

// Whoever gives up in the queue gives back the place, if it was the last.
func TestQueuePlaceComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bucket(t, LeakyBucket{Rate: PerSecond(1), Queue: 5})
		take(t, b, 1)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Wait(ctx, 2) }()
		pause(time.Millisecond)
		if d, _ := b.Peek(t.Context(), 1); d.Wait != 3*time.Second-time.Millisecond {
			t.Errorf("behind two: %+v", d)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if d, _ := b.Peek(t.Context(), 1); d.Wait != time.Second-time.Millisecond {
			t.Errorf("they are gone: %+v", d)
		}
	})
}

// What is given back, and a higher rate, reach those who wait at once.
func TestWaitersWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, TokenBucket{Rate: PerHour(1), Burst: 2}, 10)
		b := l.Bucket("k")
		r, _ := b.Reserve(t.Context(), 2)
		start, done := time.Now(), make(chan error, 1)
		go func() { done <- b.Wait(t.Context(), 1) }()
		pause(time.Second)
		if err := r.GiveBack(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}

		go func() { done <- b.Wait(t.Context(), 2) }()
		pause(time.Second)
		if err := l.SetRate(PerSecond(10)); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil || time.Since(start) > 2*time.Second+100*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// Lines that come and go under others' eyes neither let anybody through uncounted nor lose anything.
func TestLineStress(t *testing.T) {
	const burst, goroutines = 3000, 6
	l := limiter(t, TokenBucket{Rate: PerHour(1), Burst: burst}, 1)
	if err := l.SetRate(PerHour(0)); err != nil {
		t.Fatal(err)
	}
	other := limiter(t, FixedWindow{Limit: MaxLimit, Window: time.Hour}, 1)
	b := l.Bucket("")
	var through atomic.Int64
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range 2000 {
				switch (g + i) % 4 {
				case 0:
					if b.Allow() {
						through.Add(1)
					}
				case 1:
					if d, _ := b.Take(t.Context(), 2); d.OK {
						through.Add(2)
					}
				case 2:
					ctx, cancel := context.WithCancel(t.Context())
					go cancel()
					if b.Wait(ctx, 3) == nil {
						through.Add(3)
					}
				case 3:
					rs := []Request{{Limiter: other, N: 1}, {Limiter: l, N: 1}}
					if ds, _ := Take(t.Context(), rs); ds[1].OK {
						_ = GiveBack(t.Context(), rs, ds)
					}
				}
			}
		})
	}
	wg.Wait()
	left, _ := b.Peek(t.Context(), 1)
	if got := through.Load(); got+left.Remaining != burst {
		t.Errorf("%d passed, %d are left, of %d", got, left.Remaining, burst)
	}
}

// A leaky bucket lets go at its pace, whatever comes.
func TestLeakyPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bucket(t, LeakyBucket{Rate: PerSecond(3), Queue: 9, Tolerate: 3 * time.Second})
		start := time.Now()
		var mu sync.Mutex
		var left []time.Duration
		late := 0
		var wg sync.WaitGroup
		for range 15 {
			wg.Go(func() {
				err := b.Wait(t.Context(), 1)
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(err, ErrLate) {
					late++
				} else {
					left = append(left, time.Since(start))
				}
			})
		}
		wg.Wait()
		if late != 5 || len(left) != 10 {
			t.Fatalf("%d left and %d were refused", len(left), late)
		}
		for i, at := range left {
			if want := time.Duration(ceilDiv(int64(i)*second, 3)); at != want {
				t.Errorf("number %d left after %v, want %v", i, at, want)
			}
		}
	})
}
