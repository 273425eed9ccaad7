package rate

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

var four = []struct {
	name string
	a    Algorithm
}{
	{"tokens", TokenBucket{Rate: PerSecond(7), Burst: 3}},
	{"leaky", LeakyBucket{Rate: PerSecond(7), Queue: 2}},
	{"sliding", SlidingWindow{Limit: 3, Window: time.Second, Segments: 7}},
	{"fixed", FixedWindow{Limit: 3, Window: time.Second}},
}

// RetryAfter is honest to the nanosecond: a nanosecond before, the same request is refused, and then it passes. Refusals in
// between change nothing.
func TestRetryAfterIsExact(t *testing.T) {
	for _, c := range four {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := bucket(t, c.a)
				for i := range 200 {
					n := int64(1 + i%3)
					d := take(t, b, n)
					if d.OK {
						continue
					}
					for range 10 {
						if got := take(t, b, n); got.OK || got.RetryAfter != d.RetryAfter {
							t.Fatalf("asked again: %+v, want %+v", got, d)
						}
					}
					pause(d.RetryAfter - 1)
					if got := take(t, b, n); got.OK || got.RetryAfter != 1 {
						t.Fatalf("a nanosecond early: %+v", got)
					}
					pause(1)
					if got := take(t, b, n); !got.OK || got.RetryAfter != 0 {
						t.Fatalf("in time: %+v", got)
					}
				}
			})
		})
	}
}

// ResetAfter is when everything is as new.
func TestResetAfterIsExact(t *testing.T) {
	for _, c := range four {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := bucket(t, c.a)
				d := take(t, b, 2)
				pause(d.ResetAfter - 1)
				if got, _ := b.Peek(t.Context(), 1); got.ResetAfter != 1 {
					t.Errorf("a nanosecond early: %+v", got)
				}
				pause(1)
				if got, _ := b.Peek(t.Context(), 3); !got.OK || got.Remaining != 3 || got.ResetAfter != 0 {
					t.Errorf("as new: %+v", got)
				}
			})
		})
	}
}

func TestEdges(t *testing.T) {
	for _, c := range four {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := bucket(t, c.a)
				for _, n := range []int64{4, math.MaxInt64} {
					d := take(t, b, n)
					if d.OK || d.RetryAfter != Never || d.Limit != 3 || d.Remaining != 3 {
						t.Errorf("%d of 3: %+v", n, d)
					}
				}
				for _, n := range []int64{0, -1, math.MinInt64} {
					if d, err := b.Take(t.Context(), n); err == nil || d != (Decision{}) {
						t.Errorf("%d: %+v, %v", n, d, err)
					}
					if d, err := b.Peek(t.Context(), n); err == nil || d != (Decision{}) {
						t.Errorf("%d: %+v, %v", n, d, err)
					}
					if err := b.Wait(t.Context(), n); err == nil {
						t.Errorf("waited for %d", n)
					}
				}
				for range 3 {
					if d, _ := b.Peek(t.Context(), 3); !d.OK {
						t.Errorf("looking took something: %+v", d)
					}
				}
				take(t, b, 3)
				pause(31 * 24 * time.Hour) // idle for a month: full, and not more than full
				if d := take(t, b, 3); !d.OK || d.Remaining != 0 {
					t.Errorf("after a month: %+v", d)
				}
				if d := take(t, b, 1); d.OK {
					t.Errorf("more than the limit after a month: %+v", d)
				}
			})
		})
	}
}

func TestSlowAndFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := bucket(t, TokenBucket{Rate: PerHour(1), Burst: 1})
		if !slow.Allow() || slow.Allow() {
			t.Fatal("the burst is 1")
		}
		pause(time.Hour - 1)
		if slow.Allow() {
			t.Error("a nanosecond early")
		}
		pause(1)
		if !slow.Allow() {
			t.Error("an hour has passed")
		}

		fast := bucket(t, TokenBucket{Rate: PerSecond(10_000_000), Burst: 1})
		ok := 0
		for range 1000 { // 37 ns apart: 370 tokens in 37,000 ns, and the one at the start
			if fast.Allow() {
				ok++
			}
			pause(37)
		}
		if ok < 333 || ok > 370 { // a bucket of 1 loses what accrues above it
			t.Errorf("%d of 1000 passed", ok)
		}

		thirds := bucket(t, TokenBucket{Rate: PerSecond(3), Burst: 3})
		passed(thirds, 3)
		for range 1000 {
			pause(time.Second)
			if got := passed(thirds, 10); got != 3 {
				t.Fatalf("%d in a second, want 3", got)
			}
		}
	})
}

// At a hundred million years' distance from any float's mistakes: exactly as many as the rate says over a long time.
func TestAverageIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := Rate{N: 999_983, Per: 7 * time.Second}
		b := bucket(t, TokenBucket{Rate: r, Burst: 1000})
		passed(b, 1000)
		total := int64(0)
		for range 7000 { // seven seconds
			pause(time.Millisecond)
			if d, _ := b.Peek(t.Context(), 1); d.Remaining > 0 {
				total += d.Remaining
				take(t, b, d.Remaining)
			}
		}
		if total != r.N {
			t.Errorf("%d in %v, want %d", total, r.Per, r.N)
		}
	})
}

func TestSetRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, TokenBucket{Rate: PerSecond(10), Burst: 10}, 100)
		a, z := l.Bucket("a"), l.Bucket("z")
		passed(a, 10)
		pause(50 * time.Millisecond) // half a token
		if err := l.SetRate(PerSecond(0)); err != nil {
			t.Fatal(err)
		}
		pause(time.Hour)
		d := take(t, a, 1)
		if d.OK || d.RetryAfter != Never || d.ResetAfter != Never {
			t.Errorf("at a rate of 0: %+v", d)
		}
		if got := passed(z, 100); got != 10 {
			t.Errorf("a new key got %d of 10", got)
		}
		if err := l.SetRate(PerSecond(5)); err != nil {
			t.Fatal(err)
		}
		if d := take(t, a, 1); d.RetryAfter != 100*time.Millisecond {
			t.Errorf("half a token outlasts the pause, and the other half takes %v", d.RetryAfter)
		}
		if err := l.SetRate(Rate{N: 1, Per: 3 * time.Nanosecond}); err != nil {
			t.Fatal(err)
		}
		if d := take(t, a, 1); d.RetryAfter != 2 { // half of 3, rounded up
			t.Errorf("at one in 3 ns: %+v", d)
		}

		for _, bad := range []Rate{{N: -1, Per: time.Second}, {N: 1}, {N: 1 << 41, Per: 1}} {
			if err := l.SetRate(bad); err == nil {
				t.Errorf("%v was taken", bad)
			}
		}
		if err := limiter(t, FixedWindow{Limit: 1, Window: 1}, 1).SetRate(PerSecond(1)); err == nil {
			t.Error("a window has no rate")
		}
		leaky := limiter(t, LeakyBucket{Rate: PerSecond(10), Queue: 10, Tolerate: time.Second}, 1)
		for _, bad := range []Rate{PerSecond(0), PerSecond(9)} {
			if err := leaky.SetRate(bad); err == nil {
				t.Errorf("%v was taken, though waiting would take too long", bad)
			}
		}
		if err := leaky.SetRate(PerSecond(11)); err != nil {
			t.Error(err)
		}
	})
}

// A refusal without a lock must end when something comes back.
func TestClosedOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bucket(t, TokenBucket{Rate: PerHour(1), Burst: 1})
		r, err := b.Reserve(t.Context(), 1)
		if err != nil || !r.OK {
			t.Fatal(r, err)
		}
		for range 3 {
			if b.Allow() {
				t.Fatal("the only token is reserved")
			}
		}
		for range 3 {
			if err := r.GiveBack(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if passed(b, 3) != 1 {
			t.Error("given back once, taken once")
		}
		if err := b.l.SetRate(PerSecond(1000)); err != nil {
			t.Fatal(err)
		}
		pause(time.Millisecond)
		if !b.Allow() {
			t.Error("the rate is another one")
		}
		var none *Reservation
		if none.GiveBack(t.Context()) != nil {
			t.Error("nothing to give back is no error")
		}
	})
}

// A receipt counts in units of its time: after a change of the rate it buys nothing.
func TestGiveBackAcrossRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, a := range []Algorithm{TokenBucket{Rate: PerHour(1), Burst: 5}, LeakyBucket{Rate: PerHour(1), Queue: 4}} {
			b := bucket(t, a)
			d := take(t, b, 5)
			if err := b.l.SetRate(PerHour(3)); err != nil {
				t.Fatal(err)
			}
			_ = b.GiveBack(t.Context(), d)
			if p, _ := b.Peek(t.Context(), 1); p.Remaining != 0 {
				t.Errorf("%T: %+v", a, p)
			}
			_ = b.GiveBack(t.Context(), Decision{OK: true})
			_ = b.GiveBack(t.Context(), take(t, bucket(t, a), 5)) // of another bucket
			_ = b.GiveBack(t.Context(), Decision{})
			_ = b.GiveBack(t.Context(), take(t, b, 1)) // refused
			if p, _ := b.Peek(t.Context(), 1); p.Remaining != 0 {
				t.Errorf("%T: %+v", a, p)
			}
		}
	})
}

func TestLeakyAllowDoesNotQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bucket(t, LeakyBucket{Rate: PerSecond(10), Queue: 5})
		if passed(b, 5) != 1 {
			t.Error("one may leave at once")
		}
		d := take(t, b, 2)
		if !d.OK || d.Wait != 200*time.Millisecond {
			t.Errorf("the last of two leaves after two turns: %+v", d)
		}
		if p, _ := b.Peek(context.Background(), 1); p.Wait != 300*time.Millisecond {
			t.Errorf("a look says: %+v", p)
		}
		pause(300*time.Millisecond - 1)
		if b.Allow() {
			t.Error("early")
		}
		pause(1)
		if !b.Allow() {
			t.Error("all before it have left")
		}
	})
}
