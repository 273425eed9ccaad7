package guard

import (
	"context"
	"time"

	"github.com/spillway-go/spillway/breaker"
	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/internal/goroutine"
)

// The long path of a call, through all the stages of its key's plan.

// doPlanned is DoContext through all the stages of the key's plan, with or without its timeout.
func (g *Guard) doPlanned(ctx context.Context, timed bool, fn func(context.Context) error) error {
	p := g.plan.Load()
	return g.doWith(ctx, p, timed, &p.scoped, fn)
}

func (g *Guard) doWith(ctx context.Context, p *plan, timed bool, d *bulkhead.Demand, fn func(context.Context) error) error {
	t, end, probe, err := g.enterPlanned(ctx, p, timed, d)
	if err != nil {
		return err
	}
	var badge *goroutine.Badge
	if g.marks && t.Held() {
		badge = goroutine.Wear(t.Goroutine())
	}
	out := unrecorded
	defer func() {
		badge.Off()
		g.leave(p.bulkhead, p, t, &probe, out)
	}()
	if !end.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end)
		defer cancel()
	}
	if p.inject != nil {
		if err = g.injectFault(ctx, p); err != nil {
			out = failed
			return err
		}
	}
	err = goroutine.RunContext(ctx, fn)
	out = g.outcomeOf(err)
	return err
}

// enterPlanned takes a call through all stages. The time it returns is the end of the key's timeout, if it is asked for and the
// key has one, counted from here, so that a wait is part of it. The ticket of the breaker is a probe's, or the zero one.
func (g *Guard) enterPlanned(ctx context.Context, p *plan, timed bool, d *bulkhead.Demand) (t bulkhead.Ticket, end time.Time, probe breaker.Ticket, err error) {
	if p.invalid {
		return t, end, probe, g.refuse(p, ReasonInvalidKey)
	}
	if timed && p.spec.Timeout > 0 {
		end = time.Now().Add(p.spec.Timeout)
	}
	if p.inject != nil {
		if reason := p.inject.Refuse(ctx, g.key); reason != ReasonNone && reason < reasons {
			return t, end, probe, g.refuse(p, reason)
		}
	}
	if reason := p.remaining(ctx, time.Time{}); reason != ReasonNone {
		return t, end, probe, g.refuse(p, reason)
	}
	share, reason, after := p.spend(ctx, end, d)
	if reason != ReasonNone {
		return t, end, probe, g.refuseFor(p, reason, after)
	}
	in := false
	defer func() {
		if !in {
			share.giveBack()
		}
	}()
	asks := p.asks(d)
	if asks {
		if reason, left := p.ask(ctx); reason != ReasonNone {
			return t, end, probe, g.refuseFor(p, reason, roundUp(left))
		}
	}
	t, err = g.enterBulkhead(ctx, p, end, d)
	if !asks || !t.Held() {
		in = err == nil
		return t, end, probe, err
	}
	probe, left := p.probe()
	if left > 0 {
		p.bulkhead.Decline(t)
		return bulkhead.Ticket{}, end, probe, g.refuseFor(p, ReasonOpen, roundUp(left))
	}
	if p.spec.Group != "" {
		g.grouped.Add(1)
	}
	in = true
	return t, end, probe, nil
}

// enterBulkhead takes a place, by waiting if the key waits.
func (g *Guard) enterBulkhead(ctx context.Context, p *plan, end time.Time, d *bulkhead.Demand) (bulkhead.Ticket, error) {
	b := p.bulkhead
	if p.spec.Wait == 0 {
		t, answer := b.TakeSlow(ctx, d)
		return g.answer(ctx, p, t, answer)
	}
	w := *d
	w.Level = p.level(ctx)
	t, answer := b.TakeSlow(ctx, &w)
	if answer == bulkhead.TakenLate {
		if reason := g.afterWait(ctx, p, end, t); reason != ReasonNone {
			return bulkhead.Ticket{}, g.refuse(p, reason)
		}
	}
	return g.answer(ctx, p, t, answer)
}

// afterWait looks once more at the context, since the wait may have taken what was left. Unless the call is worth starting the place goes
// back, also when the context panics.
func (g *Guard) afterWait(ctx context.Context, p *plan, end time.Time, t bulkhead.Ticket) (reason Reason) {
	looked := false
	defer func() {
		if !looked || reason != ReasonNone {
			p.bulkhead.Decline(t)
		}
	}()
	reason = p.remaining(ctx, end)
	looked = true
	return reason
}

// answer turns the bulkhead's outcome into the guard's.
func (g *Guard) answer(ctx context.Context, p *plan, t bulkhead.Ticket, out bulkhead.Outcome) (bulkhead.Ticket, error) {
	switch out {
	case bulkhead.Taken, bulkhead.TakenLate:
		return t, nil
	case bulkhead.Nested:
		g.nested.Add(1)
		return bulkhead.Ticket{}, nil
	case bulkhead.TooHeavy:
		return bulkhead.Ticket{}, g.refuse(p, ReasonTooHeavy)
	case bulkhead.Closed:
		return bulkhead.Ticket{}, g.refuse(p, ReasonClosed)
	case bulkhead.Ended:
		return bulkhead.Ticket{}, g.refuse(p, reasonOf(ctx.Err()))
	default:
		return bulkhead.Ticket{}, g.refuse(p, ReasonFull)
	}
}

// injectFault runs the injector with the place held, and counts when it decides the call, by an error or by a panic.
func (g *Guard) injectFault(ctx context.Context, p *plan) error {
	decided := true
	defer func() {
		if decided {
			g.injected.Add(1)
		}
	}()
	err := p.inject.Inject(ctx, g.key)
	decided = err != nil
	return err
}

// leave gives the place of a scoped call back and counts how it ended. A nested call has nothing to give.
func (g *Guard) leave(b *bulkhead.Bulkhead, p *plan, t bulkhead.Ticket, probe *breaker.Ticket, out outcome) {
	if !b.Give(t) {
		return
	}
	if p.breaker != nil || p.throttle != nil {
		g.conclude(p, t, probe, out)
	}
	if out != succeeded || t.Hash()&g.sampleMask.Load() == 0 {
		g.finish(t, out)
	}
}
