package guard

import (
	"context"
	"errors"
	"time"

	"github.com/spillway-go/spillway/breaker"
	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/internal/clock"
	"github.com/spillway-go/spillway/registry"
)

// What the outcomes of a key's calls say of the other side: its breaker and its throttle.

// Why calls cannot take the direct path: bits of Guard.detour.
const (
	byPlan     = uint32(1) << iota // the plan has stages besides the guard's own bulkhead
	byBreaker                      // the breaker is not closed
	byThrottle                     // the throttle refuses some
)

// turn sets or takes back a reason.
func (g *Guard) turn(why uint32, on bool) {
	if on {
		g.detour.Or(why)
	} else {
		g.detour.And(^why)
	}
}

// WithJudge says what errors mean for breakers and throttles. Without it, or with nil, package breaker's Judge does: context.Canceled and the refusals
// of guards say nothing, all other errors are failures. Success and Ignored count the same way: not as a failure. f is called on
// the path of failing calls, for keys that have one of the two.
func WithJudge(f func(registry.Key, error) breaker.Outcome) Option {
	return func(o *options) error { o.judge = f; return nil }
}

// outcomeOf is how a call ended that returned err.
func (g *Guard) outcomeOf(err error) outcome {
	if err == nil {
		return succeeded
	}
	return g.judge(err)
}

//go:noinline
func (g *Guard) judge(err error) outcome {
	p := g.plan.Load()
	if p.breaker == nil && p.throttle == nil {
		return failed
	}
	meaning := breaker.Judge
	if f := g.rt.opts.judge; f != nil {
		meaning = func(err error) breaker.Outcome { return f(g.key, err) }
	}
	if meaning(err) == breaker.Failure {
		return failed
	}
	return excused
}

// equip gives a plan the rate limit, the breaker and the throttle of its spec: those of the last plan where nothing changed for them. Under the table's mu.
func (g *Guard) equip(p, last *plan) {
	if last != nil && last.spec.Breaker == p.spec.Breaker && last.bulkhead == p.bulkhead {
		p.breaker = last.breaker
	} else {
		p.breaker = g.newBreaker(p)
	}
	if last != nil && last.spec.Throttle == p.spec.Throttle && last.bulkhead == p.bulkhead {
		p.throttle = last.throttle
	} else {
		p.throttle = g.newThrottle(p)
	}
	if last != nil && last.spec.Rate == p.spec.Rate {
		p.pace = last.pace
	} else {
		p.pace = newPace(p.spec.Rate)
	}
	if p.throttle != nil {
		p.throttle.SetLevel(p.level(context.Background()))
	}
}

func (g *Guard) newBreaker(p *plan) *breaker.Breaker {
	s := p.spec.Breaker
	g.turn(byBreaker, false)
	if !s.On {
		return nil
	}
	var b *breaker.Breaker
	b, err := breaker.New(breaker.Config{
		Name: string(g.key), Ratio: s.Ratio, Min: s.Min, Window: s.Window, Open: s.Open, Probes: s.Probes,
		Total: g.begun(p), OnChange: g.changed,
		Shut: func(shut bool) {
			if g.plan.Load().breaker == b { // not one that was replaced
				g.turn(byBreaker, shut)
			}
		},
	})
	if err != nil {
		panic(err) // not reached: the registry's ranges lie within the breaker's
	}
	return b
}

func (g *Guard) newThrottle(p *plan) *breaker.Throttle {
	s := p.spec.Throttle
	g.turn(byThrottle, false)
	if !s.On {
		return nil
	}
	var t *breaker.Throttle
	t, err := breaker.NewThrottle(breaker.ThrottleConfig{
		K: s.K, Window: s.Window, Total: g.begun(p),
		Shut: func(shut bool) {
			if g.plan.Load().throttle == t {
				g.turn(byThrottle, shut)
			}
		},
	})
	if err != nil {
		panic(err) // not reached: the registry's ranges lie within the throttle's
	}
	return t
}

// begun counts the calls of the key, without those that say nothing of the other side.
func (g *Guard) begun(p *plan) func() uint64 {
	if p.spec.Group != "" {
		return func() uint64 { return g.grouped.Load() - g.excused.Load() }
	}
	return func() uint64 { return g.own.Admitted() - g.excused.Load() }
}

// changed publishes a change of the breaker's state.
func (g *Guard) changed(c breaker.Change) {
	e := g.event(EventBreaker)
	e.Cause, e.Why = c.To.String(), c.Why
	g.rt.hub.publish(e)
}

// asks reports whether breaker or throttle have a say in a call: not in one that is nested in another of the key.
func (p *plan) asks(d *bulkhead.Demand) bool {
	return (p.breaker != nil || p.throttle != nil) && (!d.Scoped || !p.bulkhead.RunsHere())
}

// ask asks breaker and throttle whether a call may go on to the bulkhead; if not, also when to come back.
func (p *plan) ask(ctx context.Context) (Reason, time.Duration) {
	if p.breaker != nil {
		if left := p.breaker.Left(); left > 0 {
			return ReasonOpen, left
		}
	}
	if p.throttle != nil && !p.throttle.Allow(p.level(ctx)) {
		return ReasonThrottled, time.Second
	}
	return ReasonNone, 0
}

// probe takes a place among the probes of a half-open breaker, for a call that has its place in the bulkhead. The ticket is the zero
// one unless the call is a probe: all others are counted by the guard.
func (p *plan) probe() (t breaker.Ticket, left time.Duration) {
	if p.breaker == nil {
		return t, 0
	}
	t, err := p.breaker.Enter()
	if err != nil {
		return t, max(1, p.breaker.Left())
	}
	if !t.Probing() {
		t = breaker.Ticket{}
	}
	return t, 0
}

// conclude tells breaker and throttle what only they need to know of a call's end: of a probe, of one that was too slow, and while the
// throttle refuses of one that was accepted.
func (g *Guard) conclude(p *plan, t bulkhead.Ticket, probe *breaker.Ticket, out outcome) {
	late := false
	if slow := p.spec.Breaker.Slow; slow > 0 && out == succeeded && p.breaker != nil {
		late = t.AgeAt(clock.Now()) > slow
		if late && !probe.Probing() {
			p.breaker.Failed(g.rt.startOf(t))
		}
	}
	if probe.Probing() {
		meaning := breaker.Failure
		switch {
		case out == succeeded && !late:
			meaning = breaker.Success
		case out == excused:
			meaning = breaker.Ignored
		}
		p.breaker.Report(probe, meaning)
	}
	if p.throttle != nil && out == succeeded {
		p.throttle.Report(breaker.Success)
	}
}

// blame counts a failure against the other side, of a call that began at a reading of package clock.
func (p *plan) blame(start int64) {
	if p.breaker != nil {
		p.breaker.Failed(start)
	}
	if p.throttle != nil {
		p.throttle.Failed(start)
	}
}

// startOf is when a call began, by package clock. It needs no look at the clock: a ticket's start is told from any time within days.
func (rt *Runtime) startOf(t bulkhead.Ticket) int64 {
	about := rt.ticked.Load()
	return about - int64(t.AgeAt(about))
}

var errNoBreaker = errors.New("guard: the key has no breaker")

// SetBreaker lays a mode over the state of the key's breaker, until it is set back to breaker.Normal or the key's spec gets another breaker. The
// error says that the key has none.
func (g *Guard) SetBreaker(m breaker.Mode) error {
	b := g.plan.Load().breaker
	if b == nil {
		return errNoBreaker
	}
	b.SetMode(m)
	return nil
}
