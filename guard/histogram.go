package guard

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// Latencies are counted in buckets that grow by a quarter of a power of two, from 256 ns to 11 minutes, so that a quantile
// is at most a quarter (the widest bucket) above the truth.
const (
	bucketShift = 6 // the first bucket ends at 256 ns
	bucketCount = 126
)

func bucketOf(d time.Duration) int {
	n := uint64(max(0, d)) >> bucketShift
	if n < 4 {
		return 0
	}
	e := bits.Len64(n) - 3
	return min(e<<2|int(n>>e&3)+1, bucketCount-1)
}

// bucketEnd is the least latency above bucket i.
func bucketEnd(i int) time.Duration {
	if i == 0 {
		return 4 << bucketShift
	}
	e := (i - 1) >> 2
	m := uint64(i-1)&3 + 4
	return time.Duration((m + 1) << e << bucketShift)
}

// recorder is the histogram that calls write to.
type recorder struct {
	counts [bucketCount]atomic.Uint32
	sum    atomic.Int64
}

func (r *recorder) add(d time.Duration, weight uint64) {
	r.counts[bucketOf(d)].Add(uint32(weight))
	r.sum.Add(int64(max(0, d)) * int64(weight))
}

// Histogram is the distribution of latencies since the guard was made. Fast keys are sampled, so that counts are close
// to the number of calls, not equal to it. Counts wrap at 2^32 a bucket; Sub is right across one wrap.
type Histogram struct {
	counts [bucketCount]uint32
	sum    time.Duration
}

func (r *recorder) snapshot() (h Histogram) {
	if r == nil {
		return h
	}
	for i := range r.counts {
		h.counts[i] = r.counts[i].Load()
	}
	h.sum = time.Duration(r.sum.Load())
	return h
}

// Sub returns what was counted since an earlier histogram of the same guard.
func (h Histogram) Sub(earlier Histogram) Histogram {
	for i := range h.counts {
		h.counts[i] -= earlier.counts[i]
	}
	h.sum -= earlier.sum
	return h
}

// Count is the number of calls that the histogram stands for.
func (h Histogram) Count() (n uint64) {
	for _, c := range h.counts {
		n += uint64(c)
	}
	return n
}

// Mean is the mean latency, 0 without any.
func (h Histogram) Mean() time.Duration {
	if n := h.Count(); n > 0 {
		return h.sum / time.Duration(n)
	}
	return 0
}

// Quantile returns a latency that the share q (0..1) of the calls did not exceed: above the truth by a quarter at most, or by 256 ns.
// It is 0 without any call, and 11 minutes where the truth is above that.
func (h Histogram) Quantile(q float64) time.Duration {
	n := h.Count()
	if n == 0 {
		return 0
	}
	q = max(0, min(q, 1))
	rank := min(n, max(1, uint64(math.Ceil(q*float64(n)-1e-9)))) // 1e-9: 0.07*100 is a little above 7
	for i, c := range h.counts {
		if rank <= uint64(c) {
			return bucketEnd(i)
		}
		rank -= uint64(c)
	}
	return bucketEnd(bucketCount - 1)
}

// Buckets calls yield for every bucket that is not empty: the latency that its calls stayed below, and their number.
func (h Histogram) Buckets(yield func(below time.Duration, count uint64) bool) {
	for i, c := range h.counts {
		if c > 0 && !yield(bucketEnd(i), uint64(c)) {
			return
		}
	}
}
