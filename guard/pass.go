package guard

import (
	"context"

	"github.com/spillway-go/spillway/breaker"
	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/internal/goroutine"
	"github.com/spillway-go/spillway/registry"
)

// Pass is the right to run one call. It must be given back with Exit exactly once, in practice by defer:
//
//	pass, err := g.Enter(ctx)
//	if err != nil {
//		return err
//	}
//	defer pass.Exit()
//	err = work(pass.Context())
//	pass.Record(err)
//	return err
//
// The zero Pass, which comes with an error, may be used like any other and does nothing. A Pass may be copied and given back
// on another goroutine; the first Exit counts. One pass's methods must not be called at the same time.
//
// A pass that becomes unreachable without Exit is lost: after a garbage collection its place is free again, and an event tells
// the goroutine that took it, for later losses of the key also the line. Do not keep passes after Exit: a kept copy
// can hide the loss of a later one.
type Pass struct {
	permit bulkhead.Permit
	ctx    context.Context
}

// passContext is the context of a pass that has more than its permit: a deadline of ours, with the function that frees its timer, or a
// breaker's probe.
type passContext struct {
	context.Context

	cancel context.CancelFunc // or nil
	probe  breaker.Ticket
}

// Enter admits a call, or returns a *Rejection. Unlike Do it always takes a place of its own, since its pass may outlive the
// calling function.
//
//go:noinline
func (g *Guard) Enter(ctx context.Context) (Pass, error) { return g.enterLoose(ctx, goroutine.Here()) }

func (g *Guard) enterLoose(ctx context.Context, at bulkhead.Site) (Pass, error) {
	if g.detour.Load() == 0 && ctx != nil && ctx.Err() == nil {
		switch t, answer := g.own.TakeLoose(); answer {
		case bulkhead.Taken:
			return Pass{g.hold(&g.own, t, at), ctx}, nil
		case bulkhead.Full:
			return Pass{}, g.refuse(g.plan.Load(), ReasonFull)
		default:
		}
	}
	p := g.plan.Load()
	return g.enterPass(ctx, p, &p.loose, at)
}

// EnterN is Enter for a call that counts for n places, all or none. A weight above Expand x N is refused for ever, with
// ReasonTooHeavy; one below 1 counts as 1.
//
//go:noinline
func (g *Guard) EnterN(ctx context.Context, n int) (Pass, error) {
	at, p := goroutine.Here(), g.plan.Load()
	d := p.loose
	d.Weight = max(1, n)
	return g.enterPass(ctx, p, &d, at)
}

// EnterScoped is Enter for a pass whose Exit is deferred in the calling function, on the same goroutine. It costs less, since such
// a pass cannot be lost, and a call of the same key from inside passes through as with Do.
//
//go:noinline
func (g *Guard) EnterScoped(ctx context.Context) (Pass, error) {
	at := goroutine.Here()
	if g.detour.Load() == 0 && ctx != nil && ctx.Err() == nil {
		switch t, answer := g.own.Take(); answer {
		case bulkhead.Taken:
			return Pass{g.hold(&g.own, t, at), ctx}, nil
		case bulkhead.Full:
			return Pass{}, g.refuse(g.plan.Load(), ReasonFull)
		default:
		}
	}
	p := g.plan.Load()
	return g.enterPass(ctx, p, &p.scoped, at)
}

// hold makes the permit of an admitted call, whose goroutine wears its badge from here on.
func (g *Guard) hold(b *bulkhead.Bulkhead, t bulkhead.Ticket, at bulkhead.Site) bulkhead.Permit {
	wears := g.marks && t.Held() && goroutine.Wear(t.Goroutine()) != nil
	return b.Hold(t, at, wears)
}

func (g *Guard) enterPass(ctx context.Context, p *plan, d *bulkhead.Demand, at bulkhead.Site) (pass Pass, err error) {
	if ctx == nil {
		ctx = context.Background()
	}
	t, end, probe, err := g.enterPlanned(ctx, p, true, d)
	if err != nil {
		return Pass{}, err
	}
	pass = Pass{g.hold(p.bulkhead, t, at), ctx}
	if end.IsZero() && p.inject == nil && !probe.Probing() {
		return pass, nil
	}
	in := false
	defer func() {
		if !in { // by an error of the injector, or a panic of it or of the context
			pass.Exit()
			pass = Pass{}
		}
	}()
	if probe.Probing() {
		pass.ctx = &passContext{ctx, nil, probe}
	}
	if !end.IsZero() {
		timed, cancel := context.WithDeadline(ctx, end)
		pass.ctx = &passContext{timed, cancel, probe}
	}
	if p.inject == nil {
		in = true
		return pass, nil
	}
	err = g.injectFault(pass.ctx, p)
	pass.Record(err)
	in = err == nil
	if in {
		pass.permit.SetTag(uint8(unrecorded))
	}
	return pass, err
}

// Context is the context for the call: the one given to Enter, with the key's timeout. It ends at Exit if the key
// has a timeout.
func (p *Pass) Context() context.Context {
	if p.ctx == nil {
		return context.Background()
	}
	return p.ctx
}

// Record notes how the call ended, for Exit to count; the last one counts. Without it the call counts as unrecorded, which is how
// a panic between Enter and Exit looks.
func (p *Pass) Record(err error) {
	if err == nil {
		p.permit.SetTag(uint8(succeeded))
		return
	}
	if g, ok := p.permit.Owner().(*Guard); ok {
		p.permit.SetTag(uint8(g.outcomeOf(err)))
	}
}

// Pin says that the call is a stream: it is never evicted, however old.
func (p *Pass) Pin() { p.permit.Pin() }

// Exit gives the place back and counts the call. Every Exit after the first, of the pass or a copy, changes nothing. It does
// not recover: a panic keeps its own stack.
func (p *Pass) Exit() {
	g, ok := p.permit.Owner().(*Guard)
	if !ok {
		p.end()
		return
	}
	wears := p.permit.Wears()
	if p.permit.Exit() {
		if wears {
			goroutine.TakeOff()
		}
		t, out := p.permit.Ticket(), outcome(p.permit.Tag())
		if g.detour.Load() != 0 {
			g.concludePass(p, t, out)
		}
		if out != succeeded || t.Hash()&g.sampleMask.Load() == 0 {
			g.finish(t, out)
		}
	}
	p.end()
}

// concludePass is conclude for a pass.
func (g *Guard) concludePass(p *Pass, t bulkhead.Ticket, out outcome) {
	now := g.plan.Load()
	if now.breaker == nil && now.throttle == nil {
		return
	}
	g.conclude(now, t, p.probe(), out)
}

// probe is the ticket of the breaker's that the pass has, the zero one if none.
func (p *Pass) probe() *breaker.Ticket {
	if c, ok := p.ctx.(*passContext); ok {
		return &c.probe
	}
	return new(breaker.Ticket)
}

// end frees the timer of a context of ours.
func (p *Pass) end() {
	if c, ok := p.ctx.(*passContext); ok && c.cancel != nil {
		c.cancel()
	}
}

// Enter is For(key).Enter on the default runtime.
//
//go:noinline
func Enter(ctx context.Context, key registry.Key) (Pass, error) {
	return For(key).enterLoose(ctx, goroutine.Here())
}
