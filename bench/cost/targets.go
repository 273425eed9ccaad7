package main

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spillway-go/spillway/bench/internal/contender"
	"github.com/spillway-go/spillway/bench/internal/paired"
)

// target is a promise: the cost of a, divided by that of b, measured as a pair one call after another.
type target struct {
	What string
	a, b string
	max  float64
}

var targets = []target{
	{"g.Do / channel pair", contender.HandleDo, contender.Channel, 2.0},
	{"guard.Do by key / channel pair", contender.KeyDo, contender.Channel, 2.2},
	{"g.Do without the watchdog / channel pair", contender.HandleUnwatched, contender.Channel, 1.8},
	{"by key without the watchdog / channel pair", contender.KeyUnwatched, contender.Channel, 2.0},
	{"guard.Do by key / failsafe-go With(bulkhead).Run", contender.KeyDo, contender.FailsafeRun, 0.14},
	{"everything on, by key / channel pair", contender.Everything, contender.Channel, 2.2},
	{"everything on / failsafe-go with three policies", contender.Everything, contender.FailsafeThree, 0.08},
	{"every second call fails / none does, everything on", contender.EverythingFailing, contender.Everything, 1.5}, // a failing one 2
	{"breaker open, refused / admitted, everything on", contender.EverythingOpen, contender.Everything, 1.0},
	{"full key refused / admitted, by key", contender.KeyRefused, contender.KeyDo, 0.4},
	{"full key refused / admitted, g.Do", contender.HandleRefused, contender.HandleDo, 0.4},
}

// free lists the rows that promise to allocate nothing: all of ours but the key with a timeout.
var free = []string{
	contender.HandleDo, contender.KeyDo, contender.HandleUnwatched, contender.KeyUnwatched, contender.Everything,
	contender.EverythingFailing, contender.EverythingOpen, contender.Scoped, contender.Loose, contender.HandleDoCtx, contender.HandleCall,
	contender.HandleRefused, contender.KeyRefused,
}

// verdict is a target with what was measured.
type verdict struct {
	What     string  `json:"what"`
	Measured float64 `json:"measured"`
	Low      float64 `json:"low"` // 95 % interval of the median
	High     float64 `json:"high"`
	Max      float64 `json:"max"`
	Met      bool    `json:"met"`
}

// judge fills in the verdicts of all targets whose rows were measured.
func (r *report) judge() {
	for _, t := range targets {
		s, ok := r.direct[t.What]
		if t.b == contender.Channel {
			s, ok = r.ratio(t.a)
		}
		if ok {
			r.Targets = append(r.Targets, verdict{t.What, s.Median, s.Low, s.High, t.max, s.Median <= t.max})
		}
	}
	worst, known := 0.0, false
	for _, name := range free {
		if row := r.find(name); row != nil {
			known = true
			worst = max(worst, row.Allocs)
		}
	}
	if known {
		// What the runtime itself allocates meanwhile is less than one object in a thousand calls.
		worst = math.Floor(worst*1000) / 1000
		r.Targets = append(r.Targets, verdict{"allocations per call, admitted or refused", worst, worst, worst, 0, worst == 0})
	}
}

// ratio is the serial ratio of a row to the channel.
func (r *report) ratio(name string) (paired.Summary, bool) {
	if row := r.find(name); row != nil {
		return row.Runs[0].Ratio, true
	}
	return paired.Summary{}, false
}

// missed is the error of -check: nil when every target is met, else one sentence naming those that are not.
func missed(vs []verdict) error {
	if len(vs) == 0 {
		return errors.New("nothing to check: no row that a target speaks of was measured")
	}
	var out []string
	for _, v := range vs {
		if !v.Met {
			out = append(out, fmt.Sprintf("%s is %.3g, must be at most %.3g", v.What, v.Measured, v.Max))
		}
	}
	if len(out) == 0 {
		return nil
	}
	return fmt.Errorf("missed: %s", strings.Join(out, "; "))
}
