package main

import (
	"context"
	"time"

	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/watchdog"
)

// keys are bulkheads, some of them with a call in flight, and a Source that looks at them as a runtime does: a key without a call costs
// one look at its number in flight.
type keys []*bulkhead.Bulkhead

// Late implements watchdog.Source; nobody is late.
func (k keys) Late(_ int64, f func(watchdog.Call)) {
	for _, b := range k {
		if b.InFlight() == 0 {
			continue
		}
		for _, e := range b.Entries() {
			if e.Age >= time.Hour {
				f(watchdog.Call{Goroutine: e.Goroutine, Age: e.Age, Slow: time.Hour})
			}
		}
	}
}

// scan is what looking at keys costs.
type scan struct {
	Keys   int           `json:"keys"`
	Active int           `json:"active"`
	Look   time.Duration `json:"look_ns"` // one look, median
	Share  float64       `json:"share"`   // of one core, by the process's CPU time; below 0: not known here
}

func measureScan(n, active int, during time.Duration) (s scan, err error) {
	s.Keys, s.Active = n, active
	k := make(keys, n)
	var passes []bulkhead.Permit
	defer func() {
		for _, p := range passes {
			p.Exit()
		}
	}()
	for i := range k {
		if k[i], err = bulkhead.New(bulkhead.Config{Limit: 16}); err != nil {
			return s, err
		}
		if i%(n/active) == 0 {
			p, err := k[i].Enter(context.Background())
			if err != nil {
				return s, err
			}
			passes = append(passes, p)
		}
	}
	var looks []time.Duration
	for range 51 {
		began := time.Now()
		k.Late(0, func(watchdog.Call) {})
		looks = append(looks, time.Since(began))
	}
	s.Look = median(looks)
	w, err := watchdog.New(watchdog.Config{Source: k})
	if err != nil {
		return s, err
	}
	w.Start()
	defer w.Close()
	before, err := cpuTime()
	if err != nil {
		s.Share = -1
		return s, nil
	}
	<-time.After(during)
	after, err := cpuTime()
	s.Share = float64(after-before) / float64(during)
	return s, err
}
