package main

import (
	"context"
	"runtime/pprof"
	"time"

	"github.com/spillway-go/spillway/internal/goroutine"
	"github.com/spillway-go/spillway/watchdog"
)

// mark is what one way to mark a call costs.
type mark struct {
	Name string  `json:"name"`
	Ns   float64 `json:"ns"`
}

const (
	batch  = 20_000
	rounds = 51
)

// measureMarks times marking in batches in turn with a loop that does nothing, and takes the median of the differences.
func measureMarks() (list []mark) {
	goroutine.Verify()
	m, outer := watchdog.NewMark(), watchdog.NewMark()
	nothing := func() error { return nil }
	identity := uint64(0)
	function := func() { _ = m.Run(goroutine.ID(), nothing) }
	pass := func() {
		identity++
		m.EnterPass(goroutine.ID(), identity, watchdog.Here())
		m.LeavePass(identity)
	}
	other := uint64(0)
	add := func(name string, f func()) { list = append(list, mark{name, difference(f)}) }
	add("a function: number, mark, frame", function)
	add("a pass: number, site, mark", pass)
	add("a place that goes from goroutine to goroutine", func() {
		other++
		_ = m.Run(other, nothing)
	})
	_ = outer.Run(goroutine.ID(), func() error {
		add("a function inside another one", function)
		return nil
	})
	labelled := pprof.WithLabels(context.Background(), pprof.Labels("route", "/buy"))
	pprof.SetGoroutineLabels(labelled)
	add("a goroutine with profiler labels of its own", function)
	sets := [2]context.Context{labelled, pprof.WithLabels(context.Background(), pprof.Labels("route", "/sell"))}
	add("the same, other labels at every call", func() {
		identity++
		pprof.SetGoroutineLabels(sets[identity&1])
		function()
	})
	pprof.SetGoroutineLabels(context.Background())
	return list
}

func difference(f func()) float64 {
	empty := func() {}
	time1 := func(f func()) float64 {
		began := time.Now()
		for range batch {
			f()
		}
		return float64(time.Since(began)) / batch
	}
	var all []float64
	for range rounds {
		without := time1(empty)
		all = append(all, time1(f)-without)
	}
	return median(all)
}
