package pressure

import (
	"fmt"
	"math"
)

// The verdict is one word: when the sample was taken (ns since the sampler was made), shifted over these flags.
const (
	normal      = 1
	cpuTight    = 2
	memoryTight = 4
	flagBits    = 3
)

// threshold is where a signal's alarm begins and ends. A signal without one is only shown.
type threshold struct {
	judged bool
	on     float64 // alarm from here on
	off    float64 // no more below
}

// judge holds the limits, and which signals are in alarm.
type judge struct {
	limits [numSignals]threshold
	alarms uint32
}

func newJudge(l Limits) judge {
	var j judge
	for _, t := range limitTable {
		if v := *t.value(&l); v != Off {
			j.limits[t.signal] = threshold{judged: true, on: v, off: v * t.release}
		}
	}
	return j
}

const (
	cpuSignals    = 1<<CPU | 1<<Throttled | 1<<Runnable
	memorySignals = 1 << Memory
)

// look brings the alarms up to date. A reading that claims to be known and is no number becomes unknown.
func (j *judge) look(r *Readings) (flags uint64, alarms uint32) {
	unknown := false
	for i := range r[:Lag] {
		v := &r[i]
		if v.State == Known && (math.IsNaN(v.Value) || math.IsInf(v.Value, 0)) {
			v.State, v.Value, v.Why = Unknown, 0, "the source gave no number"
		}
		t := j.limits[i]
		if !t.judged {
			continue
		}
		bit := uint32(1) << i
		from := t.on
		if j.alarms&bit != 0 {
			from = t.off
		}
		if v.State == Known && v.Value >= from {
			j.alarms |= bit
		} else {
			j.alarms &^= bit
		}
		unknown = unknown || v.State == Unknown
	}
	if j.alarms == 0 && !unknown {
		flags |= normal
	}
	if j.alarms&cpuSignals != 0 {
		flags |= cpuTight
	}
	if j.alarms&memorySignals != 0 {
		flags |= memoryTight
	}
	return flags, j.alarms
}

// Reason is one thing that keeps a sample from being normal.
type Reason struct {
	Signal Signal
	// State is Known for a value at its limit, Unknown for one that could not be read.
	State State
	// Value and Limit are in the signal's unit. Clear is the value below which it is normal again.
	Value, Limit, Clear float64
	text                string
}

// String is one sentence without a full stop: "cpu 97 % of quota, limit 95 %".
func (r Reason) String() string { return r.text }

// Why is the first of Reasons in words, and "" while everything is normal. It allocates.
func (s *Sampler) Why() string {
	if reasons := s.Reasons(); len(reasons) > 0 {
		return reasons[0].text
	}
	return ""
}

// Reasons lists what keeps the newest sample from being normal, now: the sample's own age first, then memory, CPU and the
// others. It is nil while everything is normal. It allocates.
func (s *Sampler) Reasons() []Reason {
	var sample Sample
	s.latest(&sample)
	return sample.Reasons()
}

// Reasons lists what kept the sample from being normal when Latest returned it.
func (s Sample) Reasons() []Reason {
	var list []Reason
	lag := &s.Readings[Lag]
	switch {
	case lag.State != Known: // no sample, and a zero Sample
		return append(list, Reason{Signal: Lag, State: Unknown, text: "the sampler has not been started"})
	case lag.Of != "":
		return append(list, Reason{Signal: Lag, State: Known, Value: lag.Value, Limit: lag.Limit, Clear: lag.Limit,
			text: "the sampler is closed"})
	case s.alarms&(1<<Lag) != 0:
		list = append(list, Reason{Signal: Lag, State: Known, Value: lag.Value, Limit: lag.Limit, Clear: lag.Limit,
			text: fmt.Sprintf("no sample for %.0f ms, limit %.0f ms: the sampler itself gets no CPU", lag.Value, lag.Limit)})
	}
	for _, t := range limitTable {
		r, limit := &s.Readings[t.signal], s.limits[t.signal]
		reason := Reason{Signal: t.signal, State: r.State, Value: r.Value, Limit: limit.on, Clear: limit.off}
		switch {
		case !limit.judged:
			continue
		case r.State == Unknown:
			reason.Value = 0
			reason.text = t.signal.String() + " unknown: " + r.Why
		case s.alarms&(1<<t.signal) != 0:
			reason.text = sentence(t.signal, r, limit)
		default:
			continue
		}
		list = append(list, reason)
	}
	return list
}

func sentence(s Signal, r *Reading, t threshold) string {
	unit, of := signals[s].unit, ""
	if r.Of != "" {
		of = " of " + r.Of
	}
	text := fmt.Sprintf("%s %s%s%s, limit %s%s", s, short(r.Value), unit, of, short(t.on), unit)
	if r.Value < t.on {
		text += fmt.Sprintf(", normal again below %s%s", short(t.off), unit)
	}
	return text
}

// short keeps two digits of small numbers and no fraction of large ones.
func short(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.2g", v)
	}
	return fmt.Sprintf("%.0f", v)
}
