package main

import (
	"fmt"
	"strconv"
	"time"
)

// Check is one promise, held against the measured figures.
type Check struct {
	Promise string `json:"promise"`
	OK      bool   `json:"ok"`                  // the guarded side keeps it
	Guarded string `json:"guarded"`             // its figure
	Beside  string `json:"unguarded,omitempty"` // the other side's, when it was played
}

// What the guarded side promises.
const (
	leastGoodput  = 0.90                  // of the slow endpoint's capacity (or of what arrives, if that is less), in the burst
	leastSuccess  = 0.99                  // of the quick endpoint, while the dependency slows and hangs
	moreLatency   = 10 * time.Millisecond // of the quick endpoint's p99, or twice the calm one
	longestReturn = 2 * time.Second       // after the dependency healed
)

// allowedP99 is how slow the quick endpoint may become.
func allowedP99(calm time.Duration) time.Duration { return max(2*calm, calm+moreLatency) }

// judge holds the guarded side against its promises. Where the other side was
// played too, its figures stand beside.
func (r *Report) judge() {
	g, u := r.side(Guarded), r.side(Unguarded)
	if g == nil {
		return
	}
	check := func(promise string, ok bool, figure func(*SideReport) string) {
		c := Check{Promise: promise, OK: ok, Guarded: figure(g)}
		if u != nil {
			c.Beside = figure(u)
		}
		r.Checks = append(r.Checks, c)
	}

	share := func(s *SideReport) float64 {
		burst := &s.Phases[Burst]
		return burst.Slow.Goodput / r.possible(Burst, burst)
	}
	check(fmt.Sprintf("burst: /slow serves >= %s of what it can", percent(leastGoodput)), share(g) >= leastGoodput,
		func(s *SideReport) string { return percent(share(s)) })

	most := allowedP99(fromMS(g.Phases[Calm].Quick.P99MS))
	for _, i := range []int{Slowed, Hang} {
		name := g.Phases[i].Name
		quick := func(s *SideReport) EndpointReport { return s.Phases[i].Quick }
		check(fmt.Sprintf("%s: /quick serves >= %s", name, percent(leastSuccess)), quick(g).Success >= leastSuccess,
			func(s *SideReport) string { return percent(quick(s).Success) })
		check(fmt.Sprintf("%s: p99 of /quick <= %s", name, seconds(most)), fromMS(quick(g).P99MS) <= most,
			func(s *SideReport) string { return seconds(fromMS(quick(s).P99MS)) })
	}

	running := func(s *SideReport) (n int) {
		for i := range s.Phases {
			n = max(n, s.Phases[i].Slow.Running)
		}
		return n
	}
	inside := func(s *SideReport) int {
		n := running(s)
		for i := range s.Phases {
			n = max(n, s.Phases[i].Slow.Inside)
		}
		return n
	}
	check(fmt.Sprintf("in the handler of /slow <= %d", r.SlowPlaces), running(g) <= r.SlowPlaces,
		func(s *SideReport) string { return strconv.Itoa(running(s)) })
	check(fmt.Sprintf("there or waiting for it <= %d + %d", r.SlowPlaces, r.SlowRoom), inside(g) <= r.SlowPlaces+r.SlowRoom,
		func(s *SideReport) string { return strconv.Itoa(inside(s)) })

	check(fmt.Sprintf("well again <= %v after the dependency", longestReturn), g.RecoveryMS >= 0 && fromMS(g.RecoveryMS) <= longestReturn,
		func(s *SideReport) string { return after(s.RecoveryMS) })
}

// after puts a time of recovery into words.
func after(ms float64) string {
	switch {
	case ms < 0:
		return "never"
	case ms == 0:
		return "at once"
	}
	return seconds(fromMS(ms))
}
