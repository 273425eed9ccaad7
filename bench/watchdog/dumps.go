package main

import (
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/spillway-go/spillway/watchdog"
)

// dumps are the figures of one size of process.
type dumps struct {
	Goroutines int `json:"goroutines"`
	Late       int `json:"late"`
	Shown      int `json:"shown"` // stacks that the last dump showed
	Bytes      int `json:"bytes"` // of these, in the report

	Total     time.Duration `json:"total_ns"` // a dump, median
	Stop      time.Duration `json:"stop_ns"`  // its longest stop of the world, median of the dumps
	Worst     time.Duration `json:"worst_ns"` // the longest of all
	Allocated uint64        `json:"allocated_bytes"`

	StackTotal time.Duration `json:"stack_total_ns"` // runtime.Stack(all)
	StackStop  time.Duration `json:"stack_stop_ns"`
}

// measureDumps takes n dumps for late calls among goroutines, and in turn with them runtime.Stack(all).
func measureDumps(late, goroutines, n int) (d dumps, err error) {
	c := start(late, goroutines-late)
	defer c.end()
	d.Goroutines, d.Late = goroutines, late
	var total, stops, stackTotal, stackStops []time.Duration
	buf := make([]byte, 256<<20)
	stack := max(1, n/4)
	for i := range n {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		took, stop, err := d.dump(c)
		if err != nil {
			return d, err
		}
		runtime.ReadMemStats(&after)
		d.Allocated = max(d.Allocated, after.TotalAlloc-before.TotalAlloc)
		total, stops = append(total, took), append(stops, stop)
		if i%4 == 0 && len(stackStops) < stack {
			s := readPauses()
			began := time.Now()
			runtime.Stack(buf, true)
			stackTotal = append(stackTotal, time.Since(began))
			stackStops = append(stackStops, s.longestSince())
		}
	}
	d.Total, d.Stop, d.Worst = median(total), median(stops), slices.Max(stops)
	d.StackTotal, d.StackStop = median(stackTotal), median(stackStops)
	return d, nil
}

// dump lets a watchdog of its own take one dump, so that no earlier one holds it up.
func (d *dumps) dump(c *calls) (took, stop time.Duration, err error) {
	d.Shown, d.Bytes = 0, 0
	reports := make(chan watchdog.Report, 100)
	w, err := watchdog.New(watchdog.Config{Source: c, Period: 10 * time.Millisecond, Lines: 1000, Log: func(r watchdog.Report) { reports <- r }})
	if err != nil {
		return 0, 0, err
	}
	before := readPauses()
	w.Start()
	for told := 0; told < d.Late; {
		r := <-reports
		told += r.Count
		if r.NoStack != "" {
			err = fmt.Errorf("%d calls without a stack: %s", r.Count, r.NoStack)
			continue
		}
		d.Shown += r.Count
		for _, line := range r.Stack {
			d.Bytes += len(line)
		}
	}
	w.Close()
	return w.Stats().LastDump, before.longestSince(), err
}

// pauses is a reading of the runtime's histogram of stops.
type pauses struct{ counts []uint64 }

func readPauses() pauses {
	h := histogram()
	return pauses{slices.Clone(h.Counts)}
}

func histogram() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/pauses/total/other:seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64Histogram()
}

// longestSince is the upper end of the highest bucket that something fell into since.
func (p pauses) longestSince() time.Duration {
	h := histogram()
	for i, n := range slices.Backward(h.Counts) {
		if n == p.counts[i] {
			continue
		}
		end := h.Buckets[i+1]
		if math.IsInf(end, 0) {
			end = h.Buckets[i]
		}
		return time.Duration(end * 1e9)
	}
	return 0
}

func median[T time.Duration | float64](list []T) T {
	list = slices.Clone(list)
	slices.Sort(list)
	return list[len(list)/2]
}
