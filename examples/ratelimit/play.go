package main

import (
	"context"
	"slices"
	"time"

	"github.com/spillway-go/spillway/rate"
)

// All limits are 100 a second, on average or in a window.
const (
	limit    = 100
	burst    = 40 // of the token bucket, and the queue of the leaky one
	duration = 6 * time.Second
)

// contestant is a limit and what it let through.
type contestant struct {
	name, flaw string
	bucket     *rate.Bucket
	left       []time.Duration // when each request went ahead, from the start
	refused    int
	waited     time.Duration // the longest
}

func enter() ([]*contestant, error) {
	var all []*contestant
	for _, c := range []struct {
		name, flaw string
		algorithm  rate.Algorithm
	}{
		{"fixed window", "twice the limit in no time, across the edge of two windows", rate.FixedWindow{Limit: limit, Window: time.Second}},
		{"sliding window", "never more than 100 in any second, but all of them at once", rate.SlidingWindow{Limit: limit, Window: time.Second}},
		{"token bucket", "a burst of 40 passes whole, and after it only the rate", rate.TokenBucket{Rate: rate.PerSecond(limit), Burst: burst}},
		{"leaky bucket", "one every 10 ms, whatever comes; the price is the wait", rate.LeakyBucket{Rate: rate.PerSecond(limit), Queue: burst}},
	} {
		l, err := rate.New(rate.Config{Algorithm: c.algorithm, Keys: 1})
		if err != nil {
			return nil, err
		}
		all = append(all, &contestant{name: c.name, flaw: c.flaw, bucket: l.Bucket("")})
	}
	return all, nil
}

// traffic is when requests come: half the limit all the time; 200 around the two-second mark, where a window ends; 150 at once
// after 3.3 seconds; and three times the limit in the fifth second.
func traffic() []time.Duration {
	var at []time.Duration
	add := func(from, until time.Duration, n int) {
		for i := range n {
			at = append(at, from+(until-from)*time.Duration(i)/time.Duration(n))
		}
	}
	add(0, duration, 50*int(duration/time.Second))
	add(1900*time.Millisecond, 2*time.Second, 100)
	add(2005*time.Millisecond, 2105*time.Millisecond, 100)
	add(3300*time.Millisecond, 3301*time.Millisecond, 150)
	add(4200*time.Millisecond, 5200*time.Millisecond, 250)
	slices.Sort(at)
	return at
}

// play asks all of them about every request, when it comes. Nobody needs to wait here: a leaky bucket says when its requests
// leave. A client would call Bucket.Wait.
func play(ctx context.Context, arrivals []time.Duration, all []*contestant) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	start := time.Now()
	for _, at := range arrivals {
		timer.Reset(at - time.Since(start))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		for _, c := range all {
			d, err := c.bucket.Take(ctx, 1)
			if err != nil {
				return err
			}
			if !d.OK {
				c.refused++
				continue
			}
			c.left = append(c.left, time.Since(start)+d.Wait)
			c.waited = max(c.waited, d.Wait)
		}
	}
	return nil
}

// most is the highest number that went ahead in any stretch of time of this length, wherever it begins. The clock is read
// some microseconds after the limiter read it, so that the stretch is a hundredth shorter.
func most(left []time.Duration, length time.Duration) (n int) {
	first := 0
	for i, at := range left {
		for at-left[first] >= length-length/100 {
			first++
		}
		n = max(n, i-first+1)
	}
	return n
}
