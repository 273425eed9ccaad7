package guard_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// rhythm runs n calls, one each period, of which the i-th takes service(i), and returns what the histograms gained.
func rhythm(t *testing.T, g *guard.Guard, n int, period time.Duration, service func(i int) time.Duration) guard.Histogram {
	t.Helper()
	before := g.Snapshot().Latency
	for i := range n {
		if err := g.Do(func() error { elapse(service(i)); return nil }); err != nil {
			t.Fatal(err)
		}
		elapse(period)
	}
	return g.Snapshot().Latency.Sub(before)
}

// Slow keys have the latency of every call; fast ones of a share that follows the rate, weighted so that counts still mean calls.
func TestSamplingFollowsTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := declared(t, newRuntime(t), "k", registry.Spec{Limit: 2})
		quick := func(int) time.Duration { return time.Microsecond }
		if h := rhythm(t, g, 500, 100*time.Microsecond, quick); h.Count() != 500 {
			t.Errorf("10,000 calls a second: %d of 500 calls have a latency, want all", h.Count())
		}
		const n = 1 << 16
		rhythm(t, g, 1000, 0, quick)
		samples := samplesOf(t, g, n, quick)
		if samples > n/8 || samples < n/64 {
			t.Errorf("1 M calls a second: %d of %d calls were sampled, want 1 in 8 to 64", samples, n)
		}
		h := rhythm(t, g, n, 0, quick)
		if off := math.Abs(float64(h.Count())-n) / n; off > 0.05 {
			t.Errorf("1 M calls a second: the histogram stands for %d calls of %d", h.Count(), n)
		}
		rhythm(t, g, 1000, time.Millisecond, quick)
		if h := rhythm(t, g, 500, time.Millisecond, quick); h.Count() != 500 {
			t.Errorf("slow again: %d of 500 calls have a latency, want all", h.Count())
		}
	})
}

// samplesOf counts the calls that were sampled among n at full speed: each adds a weight of at least 1, so it watches the count
// grow.
func samplesOf(t *testing.T, g *guard.Guard, n int, service func(i int) time.Duration) (samples int) {
	t.Helper()
	last := g.Snapshot().Latency.Count()
	for i := range n {
		if err := g.Do(func() error { elapse(service(i)); return nil }); err != nil {
			t.Fatal(err)
		}
		if now := g.Snapshot().Latency.Count(); now != last {
			samples++
			last = now
		}
	}
	return samples
}

// The choice of samples must not beat with a rhythm of the calls: choosing by the low bits of a call's number would see all or
// none of the slow ones.
func TestSamplingIsUnbiased(t *testing.T) {
	rhythms := []int{2, 3, 4, 7, 8, 16, 64, 100}
	if testing.Short() || raceDetector {
		rhythms = []int{2, 64}
	}
	for _, every := range rhythms {
		synctest.Test(t, func(t *testing.T) {
			g := declared(t, newRuntime(t), "k", registry.Spec{Limit: 2})
			service := func(i int) time.Duration {
				if i%every == 0 {
					return 3 * time.Microsecond
				}
				return 600 * time.Nanosecond
			}
			rhythm(t, g, 1000, 0, service) // the rate is known
			const n = 1 << 16
			h := rhythm(t, g, n, 0, service)
			slow := 0.0
			for below, count := range h.Buckets {
				if below > 2*time.Microsecond {
					slow += float64(count)
				}
			}
			// Some n/64 samples: the spread of a random choice would be sqrt(share/samples).
			share, truth := slow/float64(h.Count()), 1/float64(every)
			if spread := math.Sqrt(truth * (1 - truth) / (n / 64)); math.Abs(share-truth) > 4*spread {
				t.Errorf("1 of %d calls is slow; the histogram has %.4f, want %.4f within %.4f", every, share, truth, 4*spread)
			}
			if off := math.Abs(float64(h.Count())-n) / n; off > 0.1 {
				t.Errorf("1 of %d calls is slow: the histogram stands for %d calls of %d", every, h.Count(), n)
			}
		})
	}
}

func TestLatenciesOfFailuresAreKeptApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := declared(t, newRuntime(t), "k", registry.Spec{Limit: 2})
		for range 10 {
			_ = g.Do(func() error { elapse(10 * time.Millisecond); return nil })
			_ = g.Do(func() error { elapse(time.Second); return errWork })
			pass, _ := g.Enter(context.Background())
			elapse(time.Second)
			pass.Exit()
		}
		s := g.Snapshot()
		if s.Latency.Count() != 10 || s.LatencyFailed.Count() != 20 {
			t.Errorf("%d latencies of successes, %d of others; want 10, 20", s.Latency.Count(), s.LatencyFailed.Count())
		}
		if m := s.Latency.Mean(); !about(m, 10*time.Millisecond) {
			t.Errorf("the mean of the successes is %v", m)
		}
		if m := s.LatencyFailed.Mean(); !about(m, time.Second) {
			t.Errorf("the mean of the others is %v", m)
		}
	})
}
