package guard

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const (
	histogramFrom = 256 * time.Nanosecond
	histogramTo   = 5 << 37 * time.Nanosecond // 11 minutes
)

func TestBucketsFollowEachOther(t *testing.T) {
	begin := time.Duration(0)
	for i := range bucketCount {
		end := bucketEnd(i)
		if end <= begin {
			t.Fatalf("bucket %d ends at %v, the one before at %v", i, end, begin)
		}
		if bucketOf(begin) != i || bucketOf(end-1) != i {
			t.Fatalf("bucket %d is %v..%v, but those are put into %d and %d", i, begin, end, bucketOf(begin), bucketOf(end-1))
		}
		if i > 0 && 4*(end-begin) > begin {
			t.Fatalf("bucket %d, %v..%v, is wider than a quarter of where it begins", i, begin, end)
		}
		begin = end
	}
	if bucketEnd(0) != histogramFrom || begin != histogramTo {
		t.Errorf("the buckets reach from %v to %v", bucketEnd(0), begin)
	}
	for _, d := range []time.Duration{math.MinInt64, -1} {
		if bucketOf(d) != 0 {
			t.Errorf("%v is put into bucket %d", d, bucketOf(d))
		}
	}
	for _, d := range []time.Duration{histogramTo, math.MaxInt64} {
		if bucketOf(d) != bucketCount-1 {
			t.Errorf("%v is put into bucket %d", d, bucketOf(d))
		}
	}
}

// latency draws durations of all magnitudes that the buckets reach.
func latency() *rapid.Generator[time.Duration] {
	return rapid.Custom(func(t *rapid.T) time.Duration {
		bits := rapid.IntRange(0, 39).Draw(t, "bits")
		return time.Duration(rapid.Int64Range(0, 1<<bits-1).Draw(t, "latency"))
	})
}

func TestBucketContainsItsLatencies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := latency().Draw(t, "d")
		i := bucketOf(d)
		if d >= bucketEnd(i) || i > 0 && d < bucketEnd(i-1) {
			t.Fatalf("%v is put into bucket %d, %v..%v", d, i, bucketEnd(max(0, i-1)), bucketEnd(i))
		}
	})
}

func TestQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		latencies := rapid.SliceOfN(latency(), 1, 200).Draw(t, "latencies")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		r := new(recorder)
		sum := time.Duration(0)
		for _, d := range latencies {
			r.add(d, 1)
			sum += d
		}
		h := r.snapshot()
		slices.Sort(latencies)
		n := len(latencies)
		// The least latency that at least the share q did not exceed.
		rank := 1
		for float64(rank) < q*float64(n)-1e-9 {
			rank++
		}
		truth := latencies[rank-1]
		got := h.Quantile(q)
		if got <= truth {
			t.Fatalf("the %v quantile of %v is %v, the truth %v is not below it", q, latencies, got, truth)
		}
		if most := max(truth+truth/4, histogramFrom); got > most+1 {
			t.Fatalf("the %v quantile of %v is %v, more than a quarter above %v", q, latencies, got, truth)
		}
		if h.Count() != uint64(n) || h.Mean() != sum/time.Duration(n) {
			t.Fatalf("count %d, mean %v of %v", h.Count(), h.Mean(), latencies)
		}
		total := uint64(0)
		last := time.Duration(0)
		for below, count := range h.Buckets {
			if below <= last || count == 0 {
				t.Fatalf("bucket below %v with %d after %v", below, count, last)
			}
			last = below
			total += count
		}
		if total != uint64(n) || h.Quantile(1) != last {
			t.Fatalf("the buckets hold %d of %d, the last ends at %v, Quantile(1) is %v", total, n, last, h.Quantile(1))
		}
	})
}

func TestQuantileOfLittle(t *testing.T) {
	var none Histogram
	if none.Quantile(0.5) != 0 || none.Mean() != 0 || none.Count() != 0 {
		t.Error("without any call quantile, mean and count are not 0")
	}
	r := new(recorder)
	for _, d := range []time.Duration{time.Microsecond, time.Millisecond, time.Second, 10 * time.Second} {
		r.add(d, 1)
	}
	h := r.snapshot()
	for _, c := range []struct {
		q     float64
		truth time.Duration
	}{
		{math.Inf(-1), time.Microsecond},
		{-1, time.Microsecond},
		{0, time.Microsecond},
		{0.25, time.Microsecond},
		{0.26, time.Millisecond},
		{0.5, time.Millisecond},
		{0.6, time.Second}, // half of them did not exceed 1 ms, which is less than the share
		{0.75, time.Second},
		{0.99, 10 * time.Second},
		{1, 10 * time.Second},
		{7, 10 * time.Second},
		{math.Inf(1), 10 * time.Second},
	} {
		if got := h.Quantile(c.q); got <= c.truth || got > c.truth+c.truth/4+1 {
			t.Errorf("the %v quantile is %v, want a little above %v", c.q, got, c.truth)
		}
	}
	if got := h.Quantile(math.NaN()); got <= 0 || got > 13*time.Second {
		t.Errorf("the NaN quantile is %v", got)
	}
	r.add(24*time.Hour, 1)
	if got := r.snapshot().Quantile(1); got != histogramTo {
		t.Errorf("a day reads as %v", got)
	}
}

func TestSubIsWhatCameBetween(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.SliceOf(latency()).Draw(t, "before")
		after := rapid.SliceOf(latency()).Draw(t, "after")
		all, only := new(recorder), new(recorder)
		// Near the end of a bucket's count, to see that one wrap does no harm.
		wrap := rapid.Uint32().Draw(t, "wrap")
		for i := range all.counts {
			all.counts[i].Store(math.MaxUint32 - wrap%8)
		}
		for _, d := range before {
			all.add(d, 1)
		}
		earlier := all.snapshot()
		for _, d := range after {
			all.add(d, 3)
			only.add(d, 3)
		}
		if got, want := all.snapshot().Sub(earlier), only.snapshot(); got != want {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}
