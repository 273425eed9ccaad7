package pressure

import (
	"math"
	"runtime/metrics"
)

// heap reads what the garbage collector knows.
type heap struct {
	memory []metrics.Sample
	gc     []metrics.Sample
	last   [3]float64 // the gc samples before the newest collection
	looked bool
}

const (
	heapTotal = iota
	heapReleased
	heapObjects
	heapFree
	heapUnused
	heapLive
	heapLimit
)

func newHeap() heap {
	return heap{
		memory: []metrics.Sample{
			heapTotal:    {Name: "/memory/classes/total:bytes"},
			heapReleased: {Name: "/memory/classes/heap/released:bytes"},
			heapObjects:  {Name: "/memory/classes/heap/objects:bytes"},
			heapFree:     {Name: "/memory/classes/heap/free:bytes"},
			heapUnused:   {Name: "/memory/classes/heap/unused:bytes"},
			heapLive:     {Name: "/gc/heap/live:bytes"},
			heapLimit:    {Name: "/gc/gomemlimit:bytes"},
		},
		gc: []metrics.Sample{
			{Name: "/cpu/classes/gc/total:cpu-seconds"},
			{Name: "/cpu/classes/gc/mark/idle:cpu-seconds"},
			{Name: "/cpu/classes/total:cpu-seconds"},
		},
	}
}

// readMemory returns GOMEMLIMIT (0: none), what no collection could give back, and what one could. Near its limit a heap full of
// garbage is not short of memory; the collector only has not had a reason to run.
func (h *heap) readMemory() (limit, floor, garbage float64) {
	metrics.Read(h.memory)
	var v [heapLimit + 1]float64
	for i, s := range h.memory {
		if s.Value.Kind() != metrics.KindUint64 {
			return 0, 0, 0
		}
		v[i] = float64(s.Value.Uint64())
	}
	if v[heapLimit] >= math.MaxInt64 || v[heapLimit] <= 0 {
		return 0, 0, 0
	}
	held := v[heapTotal] - v[heapReleased]
	live := v[heapLive]
	if live == 0 { // no collection yet: nobody knows what lives
		live = v[heapObjects]
	}
	floor = live + held - v[heapObjects] - v[heapFree] - v[heapUnused]
	return v[heapLimit], floor, max(0, held-floor)
}

// readGC reports the collector's share of the CPU time between the last two collections: the runtime moves its counters only
// when one ends. Time that was idle anyway does not count.
func (h *heap) readGC(m *machine) {
	metrics.Read(h.gc)
	var v [3]float64
	for i, s := range h.gc {
		if s.Value.Kind() != metrics.KindFloat64 {
			m.absent(GC, Unsupported, fromRuntime, "this version of Go does not count "+s.Name)
			return
		}
		v[i] = s.Value.Float64()
	}
	total := v[2] - h.last[2]
	switch {
	case !h.looked:
		h.looked, h.last = true, v
		m.absent(GC, Pending, fromRuntime, "needs a collection to end")
	case total > 0:
		gc := v[0] - v[1] - h.last[0] + h.last[1]
		h.last = v
		m.known(GC, 100*min(1, max(0, gc/total)), fromRuntime)
	}
}
