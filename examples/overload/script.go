package main

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// The world of the example. Both sides live in it.
const (
	poolSize     = 16                     // connections from the service to the dependency
	quickCall    = time.Millisecond       // what the dependency takes for a quick call
	slowCall     = 10 * time.Millisecond  // and for a slow one
	slowedCall   = 50 * time.Millisecond  // and for a slow one when it is not well
	callsPerPage = 4                      // slow calls behind one request to /slow, one after the other
	deadline     = 500 * time.Millisecond // an answer that comes later is worth nothing to the client
	patience     = 2 * time.Second        // after that the client hangs up
	callTimeout  = time.Second            // of one call to the dependency, with the wait for a connection
)

// Side is one of the two ways to write the service.
type Side string

// The two sides.
const (
	Unguarded Side = "unguarded"
	Guarded   Side = "guarded"
)

// Endpoint is one of the service's two.
type Endpoint int

// The two endpoints.
const (
	Quick Endpoint = iota // one quick call
	Slow                  // a page: callsPerPage slow calls in a row
)

func (e Endpoint) String() string { return [...]string{"/quick", "/slow"}[e] }

// Behaviour is what the dependency does with a slow call. It always answers
// quick ones.
type Behaviour struct {
	Delay time.Duration `json:"delay"` // time it takes
	Hang  bool          `json:"hang"`  // never answers, not even later
}

// capacity is how many pages a second the given number of places can serve
// while the dependency behaves like this.
func (b Behaviour) capacity(places int) float64 {
	if b.Hang {
		return 0
	}
	return float64(places) / (callsPerPage * b.Delay).Seconds()
}

// Phase is one act of the script.
type Phase struct {
	Name      string
	Says      string // what happens, in a few words
	Start     time.Duration
	Length    time.Duration
	Rate      [2]float64 // arrivals a second, by Endpoint
	Behaviour Behaviour
}

// Script is the whole play. Times count from the end of the warm-up.
type Script struct {
	Seed   uint64
	Phases []Phase
}

// warmUp is played before the first phase and not measured: connections are
// made, caches fill.
const warmUp = time.Second

// The phases, by position.
const (
	Calm = iota
	Burst
	Slowed
	Hang
	Recovery
)

func newScript(length time.Duration, quick, slow, burst float64, seed uint64) Script {
	well := Behaviour{Delay: slowCall}
	phases := []Phase{
		Calm:     {Name: "calm", Says: "everything has room", Behaviour: well},
		Burst:    {Name: "burst", Says: times(burst) + " the traffic on /slow", Behaviour: well},
		Slowed:   {Name: "slow", Says: "the dependency takes 50 ms instead of 10", Behaviour: Behaviour{Delay: slowedCall}},
		Hang:     {Name: "hang", Says: "the dependency answers no slow call", Behaviour: Behaviour{Delay: slowedCall, Hang: true}},
		Recovery: {Name: "recovery", Says: "the dependency is well again", Behaviour: well},
	}
	shares := [...]int{Calm: 3, Burst: 4, Slowed: 5, Hang: 5, Recovery: 3} // of 20
	var start time.Duration
	for i := range phases {
		p := &phases[i]
		p.Start, p.Length = start, length*time.Duration(shares[i])/20
		p.Rate = [2]float64{Quick: quick, Slow: slow}
		start += p.Length
	}
	phases[Burst].Rate[Slow] *= burst
	return Script{Seed: seed, Phases: phases}
}

// length is the time of all phases.
func (s Script) length() time.Duration {
	last := s.Phases[len(s.Phases)-1]
	return last.Start + last.Length
}

// at is the phase at time t, the first one before the start.
func (s Script) at(t time.Duration) int {
	for i := len(s.Phases) - 1; i > 0; i-- {
		if t >= s.Phases[i].Start {
			return i
		}
	}
	return 0
}

// Arrival is one request of the plan.
type Arrival struct {
	At       time.Duration // from the end of the warm-up, negative within it
	Endpoint Endpoint
}

// plan fixes every arrival beforehand (open loop): nobody waits for an answer
// before the next one comes, as it is with many independent callers. Arrivals
// are a Poisson process per endpoint, the same for both sides.
func (s Script) plan() []Arrival {
	var plan []Arrival
	for _, e := range []Endpoint{Quick, Slow} {
		rnd := rand.New(rand.NewPCG(s.Seed, uint64(e)))
		emit := func(from, length time.Duration, rate float64) {
			// Exponential gaps have no memory, so starting afresh in every
			// phase is the same process.
			t := 0.0
			for {
				t += rnd.ExpFloat64() / rate
				if t >= length.Seconds() {
					return
				}
				plan = append(plan, Arrival{At: from + time.Duration(t*float64(time.Second)), Endpoint: e})
			}
		}
		emit(-warmUp, warmUp, s.Phases[0].Rate[e])
		for _, p := range s.Phases {
			emit(p.Start, p.Length, p.Rate[e])
		}
	}
	slices.SortStableFunc(plan, func(a, b Arrival) int { return cmp.Compare(a.At, b.At) })
	return plan
}
