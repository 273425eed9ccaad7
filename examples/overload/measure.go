package main

import (
	"slices"
	"sync"
	"time"
)

// Sample is one request that is over.
type Sample struct {
	Arrival
	Outcome  Outcome
	Latency  time.Duration // from the planned arrival to the end of the answer
	Lateness time.Duration // of the sender: how long after its time it was sent
}

// recorder collects the samples of one side while the load writes and the
// screen reads. Everything is kept: quantiles are exact.
type recorder struct {
	mu       sync.Mutex // guards what follows; held for an append or a short scan
	samples  []Sample   // in the order of their end
	inFlight [2]int     // sent and not over, by Endpoint
}

func (r *recorder) sent(a Arrival) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inFlight[a.Endpoint]++
}

func (r *recorder) done(s Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inFlight[s.Endpoint]--
	r.samples = append(r.samples, s)
}

// Tally is what became of a set of requests to one endpoint.
type Tally struct {
	Counts    [outcomes]int
	Latencies []time.Duration // of those that were not refused, given up ones included; sorted
	Refusals  []time.Duration // latencies of the refused; sorted
}

func (t *Tally) add(s Sample) {
	t.Counts[s.Outcome]++
	if s.Outcome == Refused {
		t.Refusals = append(t.Refusals, s.Latency)
	} else {
		t.Latencies = append(t.Latencies, s.Latency)
	}
}

func (t *Tally) sort() {
	slices.Sort(t.Latencies)
	slices.Sort(t.Refusals)
}

// arrived is the number of requests.
func (t *Tally) arrived() int {
	n := 0
	for _, c := range t.Counts {
		n += c
	}
	return n
}

// success is the share served in time, 0..1; 1 when nothing arrived.
func (t *Tally) success() float64 {
	n := t.arrived()
	if n == 0 {
		return 1
	}
	return float64(t.Counts[Served]) / float64(n)
}

// quantile is the smallest value that at least the share q (0..1) of sorted
// does not exceed; 0 when there is none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(q * float64(len(sorted)))
	if float64(rank) < q*float64(len(sorted)) {
		rank++
	}
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// tallies sums up, by Endpoint, the samples that keep says yes to.
func tallies(samples []Sample, keep func(Sample) bool) [2]Tally {
	var t [2]Tally
	for _, s := range samples {
		if keep(s) {
			t[s.Endpoint].add(s)
		}
	}
	for e := range t {
		t[e].sort()
	}
	return t
}

// all returns the samples so far; they do not change any more.
func (r *recorder) all() []Sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clip(r.samples)
}

// live sums up the requests that ended within the last second before now, and
// says how many are under way.
func (r *recorder) live(now time.Duration) (last [2]Tally, inFlight [2]int) {
	r.mu.Lock()
	samples, inFlight := slices.Clip(r.samples), r.inFlight
	r.mu.Unlock()
	ended := func(s Sample) time.Duration { return s.At + s.Latency }
	// Samples stand in the order of their end, but for the time it takes to
	// get the lock.
	i := len(samples)
	for i > 0 && ended(samples[i-1]) > now-time.Second {
		i--
	}
	return tallies(samples[i:], func(Sample) bool { return true }), inFlight
}

// recovery is how long after healed both endpoints answered as they should
// again: the beginning of the first half second of arrivals of which at least
// 95 % were served on either. It is negative when that never came.
func recovery(samples []Sample, healed, end time.Duration) time.Duration {
	const window, step = 500 * time.Millisecond, 50 * time.Millisecond
	for from := healed; from+window <= end; from += step {
		t := tallies(samples, func(s Sample) bool { return s.At >= from && s.At < from+window })
		if t[Quick].success() >= 0.95 && t[Slow].success() >= 0.95 {
			return from - healed
		}
	}
	return -1
}
