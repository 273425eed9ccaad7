package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	throttledmem "github.com/throttled/throttled/v2/store/memstore"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	xrate "golang.org/x/time/rate"

	"github.com/spillway-go/spillway/rate"
)

// fault is something that limiters were seen to get wrong, tried today.
type fault struct {
	What  string `json:"what"`
	Peer  string `json:"peer"`
	Seen  string `json:"seen"`
	Ours  string `json:"ours"`
	Right string `json:"right"`
	OK    bool   `json:"ours_is_right"`
}

func faults() ([]fault, error) {
	var all []fault
	for _, try := range []func() (fault, error){timeBack, comeBack, edge, refill, tooMuch, hotKey, manyNew} {
		f, err := try()
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

func single(a rate.Algorithm) (*rate.Bucket, error) {
	l, err := ours(a, 1)
	if err != nil {
		return nil, err
	}
	return l.Bucket(""), nil
}

// count is how many of n tries pass.
func count(n int, try func() bool) (passed int) {
	for range n {
		if try() {
			passed++
		}
	}
	return passed
}

func timeBack() (fault, error) {
	b, err := single(rate.TokenBucket{Rate: rate.PerSecond(1), Burst: 10})
	l, now := xrate.NewLimiter(1, 10), time.Now()
	step := -10 * time.Second
	seen := count(1000, func() bool { now, step = now.Add(step), -step; return l.AllowN(now, 1) })
	got := count(1000, func() bool { return b.Allow() })
	return fault{
		What: "1,000 calls whose times go back and forth by ten seconds (golang/go#56287), 1 a second, burst 10: passed", Peer: "x/time/rate",
		Seen: strconv.Itoa(seen), Ours: fmt.Sprintf("%d; takes no times from outside", got), Right: "20 at most", OK: got == 10,
	}, err
}

// comeBack asks when to come back and comes back exactly then, at a thousand rates, on x/time's times as arguments. Ours is
// asked on a real clock: waiting can only be later than told.
func comeBack() (fault, error) {
	seen, now := 0, time.Now()
	for n := 1; n <= 1000; n++ {
		l := xrate.NewLimiter(xrate.Limit(float64(n)/3), 3)
		l.AllowN(now, 3)
		r := l.ReserveN(now, 1)
		wait := r.DelayFrom(now)
		r.CancelAt(now)
		if !l.AllowN(now.Add(wait), 1) {
			seen++
		}
	}
	early, ctx := 0, context.Background()
	for n := range int64(1000) {
		b, err := single(rate.TokenBucket{Rate: rate.Rate{N: 1_000_000 + n, Per: 3 * time.Second}, Burst: 3})
		if err != nil {
			return fault{}, err
		}
		count(3, b.Allow)
		d, err := b.Take(ctx, 1)
		for at := time.Now(); time.Since(at) < d.RetryAfter; {
			continue
		}
		again, errAgain := b.Take(ctx, 1)
		if err := errors.Join(err, errAgain); err != nil {
			return fault{}, err
		}
		if !d.OK && !again.OK { // interrupted for long enough, the first passes already
			early++
		}
	}
	return fault{
		What: "1,000 rates: refused at the very time that it said to come back", Peer: "x/time/rate",
		Seen: strconv.Itoa(seen), Ours: strconv.Itoa(early), Right: "0", OK: early == 0,
	}, nil
}

func edge() (fault, error) {
	const window = 200 * time.Millisecond
	sliding, err := single(rate.SlidingWindow{Limit: 10, Window: window})
	if err != nil {
		return fault{}, err
	}
	fixed, err := single(rate.FixedWindow{Limit: 10, Window: window})
	if err != nil {
		return fault{}, err
	}
	l, ctx := limiter.New(memory.NewStore(), limiter.Rate{Period: window, Limit: 10}), context.Background()
	peer := func() bool { c, err := l.Get(ctx, "k"); return err == nil && !c.Reached }
	peer()
	sliding.Allow()
	fixed.Allow()
	time.Sleep(window - 15*time.Millisecond)
	p, s, f := count(20, peer), count(20, sliding.Allow), count(20, fixed.Allow)
	time.Sleep(30 * time.Millisecond)
	p, s, f = p+count(20, peer), s+count(20, sliding.Allow), f+count(20, fixed.Allow)
	return fault{
		What: "10 in a window: passed within 30 ms around its edge", Peer: "ulule (fixed window)",
		Seen: strconv.Itoa(p), Ours: fmt.Sprintf("SlidingWindow %d (FixedWindow %d: its nature)", s, f), Right: "10", OK: s <= 10,
	}, nil
}

func refill() (fault, error) {
	const n, interval = 100_000, 100 * time.Millisecond
	s, err := memorystore.New(&memorystore.Config{Tokens: n, Interval: interval})
	if err != nil {
		return fault{}, err
	}
	ctx := context.Background()
	defer s.Close(ctx) //nolint:errcheck // it never fails
	b, err := single(rate.TokenBucket{Rate: rate.Rate{N: n, Per: interval}, Burst: n})
	if err != nil {
		return fault{}, err
	}
	after := func(try func() bool) int {
		for try() { // until it is empty
			continue
		}
		time.Sleep(interval + interval/10)
		start, passed := time.Now(), 0
		for try() && time.Since(start) < interval {
			passed++
		}
		return passed
	}
	seen := after(func() bool { _, _, _, ok, err := s.Take(ctx, "k"); return err == nil && ok })
	got := after(b.Allow)
	return fault{
		What: "100,000 in 100 ms: how many there are 110 ms after it was emptied", Peer: "sethvargo",
		Seen: strconv.Itoa(seen), Ours: fmt.Sprintf("%d, or what fits into the next 100 ms", got), Right: "100,000", OK: got > n/2,
	}, nil
}

func tooMuch() (fault, error) {
	s, err := throttledmem.NewCtx(0)
	if err != nil {
		return fault{}, err
	}
	l, err := throttled.NewGCRARateLimiterCtx(s, throttled.RateQuota{MaxRate: throttled.PerSec(10), MaxBurst: 9})
	if err != nil {
		return fault{}, err
	}
	_, r, err := l.RateLimitCtx(context.Background(), "k", 11)
	if err != nil {
		return fault{}, err
	}
	b, err := single(rate.TokenBucket{Rate: rate.PerSecond(10), Burst: 10})
	if err != nil {
		return fault{}, err
	}
	d, err := b.Take(context.Background(), 11)
	says := "a time: " + d.RetryAfter.String()
	if d.RetryAfter == rate.Never {
		says = "Never"
	}
	return fault{
		What: "11 of a burst of 10: when to come back", Peer: "throttled",
		Seen: r.RetryAfter.String() + ", as for what passed", Ours: says, Right: "never", OK: says == "Never",
	}, err
}

func hotKey() (fault, error) {
	const goroutines, calls = 64, 20_000
	s, err := throttledmem.NewCtx(0)
	if err != nil {
		return fault{}, err
	}
	l, err := throttled.NewGCRARateLimiterCtx(s, throttled.RateQuota{MaxRate: throttled.PerSec(ample), MaxBurst: 1 << 24})
	if err != nil {
		return fault{}, err
	}
	mine, err := ours(tokens, 100)
	if err != nil {
		return fault{}, err
	}
	ctx := context.Background()
	failing := func(try func() bool) float64 {
		var wg sync.WaitGroup
		var failed atomic.Int64
		for range goroutines {
			wg.Go(func() { failed.Add(int64(calls - count(calls, try))) })
		}
		wg.Wait()
		return 100 * float64(failed.Load()) / (goroutines * calls)
	}
	seen := failing(func() bool { _, _, err := l.RateLimitCtx(ctx, "k", 1); return err == nil })
	got := failing(func() bool { return mine.Allow("k") })
	return fault{
		What: "64 goroutines, one key, ample rate: calls that failed", Peer: "throttled",
		Seen: fmt.Sprintf("%.2f %%", seen), Ours: fmt.Sprintf("%.2f %%", got), Right: "0 %", OK: got == 0,
	}, nil
}

func manyNew() (fault, error) {
	const n, room = 500_000, 10_000
	ctx := context.Background()
	before := live()
	s, err := memorystore.New(&memorystore.Config{Tokens: 10, Interval: time.Hour})
	if err != nil {
		return fault{}, err
	}
	for i := range n {
		if _, _, _, _, err := s.Take(ctx, name(i)); err != nil {
			return fault{}, err
		}
	}
	seen := live() - before
	if err := s.Close(ctx); err != nil {
		return fault{}, err
	}
	before = live()
	mine, err := ours(rate.TokenBucket{Rate: rate.PerHour(10), Burst: 10}, room)
	if err != nil {
		return fault{}, err
	}
	for i := range n {
		mine.Allow(name(i))
	}
	got, st := live()-before, mine.Stats()
	return fault{
		What: "500,000 distinct keys: memory held", Peer: "sethvargo",
		Seen: fmt.Sprintf("%.0f MB, for 12 h", seen/1e6), Ours: fmt.Sprintf("%.1f MB with Keys = %d", got/1e6, room), Right: "bounded",
		OK: st.Keys <= room && got <= 64*room+64<<10,
	}, nil
}
