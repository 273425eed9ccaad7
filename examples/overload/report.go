package main

import (
	"encoding/json"
	"io"
	"math"
	"time"
)

// Report is everything measured, as -json prints it. Times are milliseconds,
// shares are 0..1.
type Report struct {
	Seed         uint64       `json:"seed"`
	DeadlineMS   float64      `json:"deadline_ms"`    // an answer after it does not count
	PatienceMS   float64      `json:"patience_ms"`    // after it the client hangs up
	Pool         int          `json:"pool"`           // connections both endpoints share
	SlowPlaces   int          `json:"slow_places"`    // bound of the guarded slow endpoint
	SlowRoom     int          `json:"slow_room"`      // and how many may wait for one of these places
	QuickPlaces  int          `json:"quick_places"`   // the same of the quick endpoint
	QuickRoom    int          `json:"quick_room"`     //
	Capacity     float64      `json:"capacity_per_s"` // of the guarded slow endpoint while the dependency is well
	CapacitySays string       `json:"capacity_says"`  // how that is computed
	Sides        []SideReport `json:"sides"`
	Checks       []Check      `json:"checks"`
	Grow         *Story       `json:"grow,omitempty"` // what the guard told while a key's bound grew
	Hang         *Story       `json:"hang,omitempty"` // and while its calls hung
}

// SideReport is one play of the script.
type SideReport struct {
	Side       Side          `json:"side"`
	Phases     []PhaseReport `json:"phases"`
	RecoveryMS float64       `json:"recovery_ms"` // after the dependency healed; -1: not within the phase
}

// PhaseReport is about the requests that arrived in one phase.
type PhaseReport struct {
	Name       string         `json:"name"`
	Says       string         `json:"says"` // what happens in it
	Seconds    float64        `json:"seconds"`
	LatenessMS float64        `json:"sender_lateness_p99_ms"` // how late the client itself was: the machine's noise
	Quick      EndpointReport `json:"quick"`
	Slow       EndpointReport `json:"slow"`
}

// EndpointReport is one endpoint in one phase.
type EndpointReport struct {
	Arrived      int     `json:"arrived"`
	Served       int     `json:"served"` // in time
	Late         int     `json:"late"`
	Refused      int     `json:"refused"` // 503 with Retry-After
	Failed       int     `json:"failed"`
	GaveUp       int     `json:"gave_up"`
	Success      float64 `json:"success"`       // served / arrived
	Goodput      float64 `json:"goodput_per_s"` // served / seconds
	P50MS        float64 `json:"p50_ms"`        // of all that were not refused, given up ones included
	P99MS        float64 `json:"p99_ms"`
	RefusalP99MS float64 `json:"refusal_p99_ms"` // how soon a refusal came
	Running      int     `json:"peak_running"`   // most requests inside the handler at one time
	Inside       int     `json:"peak_inside"`    // most calls inside the guard, running or waiting; 0 unguarded
	CallMS       float64 `json:"call_mean_ms"`   // of a call to the dependency, as the service saw it, wait for a connection included
}

func newReport(script Script) *Report {
	well := script.Phases[Calm].Behaviour
	return &Report{
		Seed:       script.Seed,
		DeadlineMS: ms(deadline), PatienceMS: ms(patience), Pool: poolSize,
		SlowPlaces: slowPlaces, SlowRoom: slowRoom, QuickPlaces: quickPlaces, QuickRoom: quickRoom,
		Capacity:     well.capacity(slowPlaces),
		CapacitySays: capacitySays,
	}
}

func ms(d time.Duration) float64 { return math.Round(float64(d)/float64(time.Microsecond)) / 1000 }

// fromMS is the way back from the report's figures.
func fromMS(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }

// add sums up one side. A request belongs to the phase in which it arrived.
func (r *Report) add(script Script, result Result) {
	side := SideReport{Side: result.Side}
	for i := range script.Phases {
		p := &script.Phases[i]
		within := func(s Sample) bool { return s.At >= p.Start && s.At < p.Start+p.Length }
		t := tallies(result.Samples, within)
		var late Tally
		for _, s := range result.Samples {
			if within(s) {
				late.Latencies = append(late.Latencies, s.Lateness)
			}
		}
		late.sort()
		phase := PhaseReport{
			Name: p.Name, Says: p.Says, Seconds: p.Length.Seconds(),
			LatenessMS: ms(quantile(late.Latencies, 0.99)),
		}
		for e, into := range []*EndpointReport{&phase.Quick, &phase.Slow} {
			*into = endpointReport(&t[e], p.Length)
			status := &result.Statuses[i]
			into.Running, into.Inside, into.CallMS = status.Running[e], status.Inside[e], ms(status.Call[e])
		}
		side.Phases = append(side.Phases, phase)
	}
	back := recovery(result.Samples, script.Phases[Recovery].Start, script.length())
	side.RecoveryMS = ms(back)
	if back < 0 {
		side.RecoveryMS = -1
	}
	r.Sides = append(r.Sides, side)
	if result.Grow != nil {
		r.Grow, r.Hang = result.Grow, result.Hang
	}
}

func endpointReport(t *Tally, length time.Duration) EndpointReport {
	return EndpointReport{
		Arrived: t.arrived(),
		Served:  t.Counts[Served], Late: t.Counts[Late], Refused: t.Counts[Refused],
		Failed: t.Counts[Failed], GaveUp: t.Counts[GaveUp],
		Success:      t.success(),
		Goodput:      float64(t.Counts[Served]) / length.Seconds(),
		P50MS:        ms(quantile(t.Latencies, 0.5)),
		P99MS:        ms(quantile(t.Latencies, 0.99)),
		RefusalP99MS: ms(quantile(t.Refusals, 0.99)),
	}
}

// lost is what came to nothing and was not refused either.
func (e EndpointReport) lost() int { return e.Late + e.Failed + e.GaveUp }

// side finds one side; nil when it was not played.
func (r *Report) side(name Side) *SideReport {
	for i := range r.Sides {
		if r.Sides[i].Side == name {
			return &r.Sides[i]
		}
	}
	return nil
}

func (r *Report) writeJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}
