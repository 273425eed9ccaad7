package pressure

import (
	"math"
	"runtime/metrics"
	"time"
)

// scheduler reads what Go's scheduler knows: who waits for a P, and for how long.
type scheduler struct {
	counts    []metrics.Sample // runnable, running, Ps
	latencies []metrics.Sample
	runnable  ring
	procs     float64

	tail latencyTail
	slow schedule

	load goLoad
}

const fromRuntime = "go runtime"

// leastProcs is how many Ps count at least. At 85 % of what it could do, a queue of random arrivals holds two to three on average, whatever the
// number of Ps behind it; for a single P that would read as overload.
const leastProcs = 2

func newScheduler(period time.Duration) scheduler {
	return scheduler{
		counts: []metrics.Sample{
			{Name: "/sched/goroutines/runnable:goroutines"},
			{Name: "/sched/goroutines/running:goroutines"},
			{Name: "/sched/gomaxprocs:threads"},
		},
		latencies: []metrics.Sample{{Name: "/sched/latencies:seconds"}},
		runnable:  newRing(runnableSpan, period),
		slow:      schedule{every: max(latencyEvery, period)},
		procs:     1,
	}
}

func (s *scheduler) read(m *machine) {
	metrics.Read(s.counts)
	for _, c := range s.counts {
		if c.Value.Kind() != metrics.KindUint64 {
			for _, signal := range []Signal{Runnable, GoLoad1, GoLoad5, GoLoad15} {
				m.absent(signal, Unsupported, fromRuntime, "this version of Go does not count "+c.Name)
			}
			return
		}
	}
	runnable, running := float64(s.counts[0].Value.Uint64()), float64(s.counts[1].Value.Uint64())
	s.procs = max(1, float64(s.counts[2].Value.Uint64()))
	s.runnable.add(m.now, runnable/max(leastProcs, s.procs))
	m.known(Runnable, s.runnable.mean(), fromRuntime)

	// The sampler runs itself while it counts.
	if s.load.add(m.now, runnable+max(0, running-1)) {
		for i, signal := range []Signal{GoLoad1, GoLoad5, GoLoad15} {
			m.known(signal, s.load.averages[i], fromRuntime)
		}
	} else if !s.load.ready {
		for _, signal := range []Signal{GoLoad1, GoLoad5, GoLoad15} {
			m.absent(signal, Pending, fromRuntime, "the first value comes after five seconds")
		}
	}
	if s.slow.due(m.now) {
		s.readLatencies(m)
	}
}

func (s *scheduler) readLatencies(m *machine) {
	metrics.Read(s.latencies)
	v := s.latencies[0].Value
	if v.Kind() != metrics.KindFloat64Histogram {
		m.absent(Latency, Unsupported, fromRuntime, "this version of Go does not count "+s.latencies[0].Name)
		return
	}
	h := v.Float64Histogram()
	if p99, ok := s.tail.add(m.now, h.Counts, h.Buckets); ok {
		m.known(Latency, p99*1000, fromRuntime)
	} else {
		m.absent(Latency, Pending, fromRuntime, needsASecond)
	}
}

// latencyTail keeps a cumulative histogram's last few states and finds the 99th percentile of what came between.
type latencyTail struct {
	looks [int(latencySpan/latencyEvery) + 1]struct {
		at     time.Duration
		counts []uint64
	}
	next, n int
}

// add returns the upper edge of the bucket that the 99th percentile lies in, and 0 when nothing came. ok is false on the first look.
func (t *latencyTail) add(at time.Duration, counts []uint64, edges []float64) (p99 float64, ok bool) {
	look := &t.looks[t.next]
	look.at = at
	look.counts = append(look.counts[:0], counts...)
	t.next = (t.next + 1) % len(t.looks)
	if t.n < len(t.looks) {
		t.n++
	}
	if t.n < 2 {
		return 0, false
	}
	oldest := &t.looks[(t.next-t.n+len(t.looks))%len(t.looks)]
	// After a gap in the samples the oldest looks are too old to be averaged with.
	for t.n > 2 && at-oldest.at > latencySpan+latencyEvery {
		t.n--
		oldest = &t.looks[(t.next-t.n+len(t.looks))%len(t.looks)]
	}
	if len(oldest.counts) != len(counts) {
		t.n = 1
		return 0, false
	}
	total := uint64(0)
	for i, c := range counts {
		total += c - oldest.counts[i]
	}
	if total == 0 {
		return 0, true
	}
	rest := total / 100 // how many may be above
	for i := len(counts) - 1; i > 0; i-- {
		n := counts[i] - oldest.counts[i]
		if n <= rest {
			rest -= n
			continue
		}
		if edge := edges[i+1]; !math.IsInf(edge, 1) {
			return edge, true
		}
		return edges[i], true
	}
	return edges[1], true
}

// goLoad averages as the kernel does: load = load x e + n x (1 - e) with e = exp(-5 s / window), every five seconds. Where
// the kernel takes the count of one instant, n is the mean of the five seconds: it costs nothing and does not beat with a
// job that comes every five seconds.
type goLoad struct {
	begun    bool
	ready    bool
	last     time.Duration
	next     time.Duration
	sum      float64 // of count x time since the last value
	averages [3]float64
}

var loadWindows = [3]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute}

// add returns true when the averages moved.
func (l *goLoad) add(at time.Duration, count float64) bool {
	if !l.begun {
		l.begun, l.last, l.next = true, at, at+loadEvery
		return false
	}
	l.sum += count * float64(at-l.last)
	l.last = at
	if at < l.next {
		return false
	}
	over := at - (l.next - loadEvery) // more than five seconds after a gap
	for i, window := range loadWindows {
		e := math.Exp(-float64(over) / float64(window))
		l.averages[i] = l.averages[i]*e + l.sum/float64(over)*(1-e)
	}
	l.sum, l.next, l.ready = 0, at+loadEvery, true
	return true
}
