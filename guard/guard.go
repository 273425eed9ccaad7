package guard

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/registry"
)

// Guard is the guard of one key. Get it with For. All its methods are safe for concurrent use.
type Guard struct {
	key  registry.Key
	rt   *Runtime
	self any // the guard itself, as the owner of its entries

	plan       atomic.Pointer[plan]
	sampleMask atomic.Uint32

	rejections [reasons]atomic.Pointer[Rejection]
	retryStep  atomic.Int64
	refused    refusals

	_          [64]byte // written by calls from here on
	sampled    atomic.Int64
	mean       atomic.Int64
	failed     atomic.Uint64
	unrecorded atomic.Uint64
	nested     atomic.Uint64
	injected   atomic.Uint64
	lost       atomic.Uint64
	evicted    atomic.Uint64
	shed       atomic.Uint64 // fallbacks after a refusal
	mended     atomic.Uint64 // fallbacks after a failure
	latencies  [2]atomic.Pointer[recorder]

	created  time.Time
	declared bool    // guarded by table.mu: is in the registry, so never dropped
	invalid  bool    // stands in for all invalid keys
	episode  episode // of refusals; the housekeeper's
}

// Key is the key that the guard stands for.
func (g *Guard) Key() registry.Key { return g.key }

// Do runs fn on this goroutine if the key admits it, and returns fn's error untouched. Otherwise it returns a *Rejection at once,
// or after the key's wait. A panic or Goexit of fn goes on up after the place was given back, and counts as unrecorded.
//
// A call of the same key from inside fn, on the same goroutine, passes through: it takes no place, counts as nested, and
// is never refused for want of one.
//
// A timeout of the key has no effect here, since fn could not see it: use DoContext.
func (g *Guard) Do(fn func() error) error {
	p := g.plan.Load()
	t, err := g.enter(p)
	if err != nil {
		return err
	}
	out := unrecorded
	defer func() { g.leave(p, t, out) }()
	err = fn()
	out = outcomeOf(err)
	return err
}

// DoContext is Do for a function that takes a context. The context that fn gets carries the key's timeout. A context that is
// done, or ends before the key's floor, is refused; one that ends while the call waits ends the wait.
func (g *Guard) DoContext(ctx context.Context, fn func(context.Context) error) error {
	p := g.plan.Load()
	ctx, cancel, t, err := g.enterContext(ctx, p)
	if err != nil {
		return err
	}
	out := unrecorded
	defer func() {
		g.leave(p, t, out)
		if cancel != nil {
			cancel()
		}
	}()
	err = fn(ctx)
	out = outcomeOf(err)
	return err
}

// enter admits a call that has no context.
func (g *Guard) enter(p *plan) (bulkhead.Ticket, error) {
	if !p.slow {
		t, out := p.bulkhead.Take()
		if out == bulkhead.Taken {
			return t, nil
		}
		return g.enterFull(nil, p, &p.scoped, out)
	}
	_, cancel, t, err := g.enterScoped(context.Background(), p)
	if cancel != nil {
		cancel()
	}
	return t, err
}

// enterContext admits a call, and returns the context that it should run under.
func (g *Guard) enterContext(ctx context.Context, p *plan) (context.Context, context.CancelFunc, bulkhead.Ticket, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	if p.slow || ctx.Err() != nil {
		return g.enterScoped(ctx, p)
	}
	t, out := p.bulkhead.Take()
	if out == bulkhead.Taken {
		return ctx, nil, t, nil
	}
	t, err := g.enterFull(ctx, p, &p.scoped, out)
	return ctx, nil, t, err
}

// enterScoped is enterSlow and the injector.
func (g *Guard) enterScoped(ctx context.Context, p *plan) (context.Context, context.CancelFunc, bulkhead.Ticket, error) {
	ctx, cancel, t, err := g.enterSlow(ctx, p, &p.scoped)
	if err == nil && p.inject != nil {
		err = g.injectFault(ctx, p, t)
	}
	if err != nil && cancel != nil {
		cancel()
		cancel = nil
	}
	return ctx, cancel, t, err
}

// enterFull is the rest of entering for a call that did not simply find a place.
func (g *Guard) enterFull(ctx context.Context, p *plan, d *bulkhead.Demand, out bulkhead.Outcome) (bulkhead.Ticket, error) {
	var t bulkhead.Ticket
	if out == bulkhead.Unsure {
		if p.waits {
			return g.enterWaiting(ctx, p, *d)
		}
		t, out = p.bulkhead.TakeSlow(ctx, d)
	}
	return g.answer(ctx, p, t, out)
}

// enterWaiting looks once more at the context after a wait.
func (g *Guard) enterWaiting(ctx context.Context, p *plan, d bulkhead.Demand) (bulkhead.Ticket, error) {
	d.Level = p.level(ctx)
	d.Longest = p.spec.Timeout
	t, out := p.bulkhead.TakeSlow(ctx, &d)
	if out == bulkhead.Taken && ctx != nil {
		if reason := p.remaining(ctx); reason != ReasonNone {
			g.giveBack(p, t)
			return bulkhead.Ticket{}, g.refuse(p, reason)
		}
	}
	return g.answer(ctx, p, t, out)
}

// giveBack returns a place that no call used.
func (g *Guard) giveBack(p *plan, t bulkhead.Ticket) {
	if t.Scoped() {
		p.bulkhead.Give(t)
	} else {
		p.bulkhead.Hold(t).Exit()
	}
}

// answer turns the bulkhead's outcome into the guard's.
func (g *Guard) answer(ctx context.Context, p *plan, t bulkhead.Ticket, out bulkhead.Outcome) (bulkhead.Ticket, error) {
	switch out {
	case bulkhead.Taken:
		return t, nil
	case bulkhead.Nested:
		g.nested.Add(1)
		return bulkhead.Ticket{}, nil
	case bulkhead.TooHeavy:
		return bulkhead.Ticket{}, g.refuse(p, ReasonTooHeavy)
	case bulkhead.Closed:
		return bulkhead.Ticket{}, g.refuse(p, ReasonClosed)
	case bulkhead.Ended:
		return bulkhead.Ticket{}, g.refuse(p, p.remaining(ctx))
	default:
		return bulkhead.Ticket{}, g.refuse(p, ReasonFull)
	}
}

// enterSlow admits a call through all stages. The context it returns carries the key's timeout, counted from here, so that a
// wait is part of it.
func (g *Guard) enterSlow(ctx context.Context, p *plan, d *bulkhead.Demand) (context.Context, context.CancelFunc, bulkhead.Ticket, error) {
	var none bulkhead.Ticket
	if p.invalid {
		return ctx, nil, none, g.refuse(p, ReasonInvalidKey)
	}
	var end time.Time
	if p.spec.Timeout > 0 {
		end = time.Now().Add(p.spec.Timeout)
	}
	if p.inject != nil {
		if reason := p.inject.Refuse(ctx, g.key); reason != ReasonNone && reason < reasons {
			return ctx, nil, none, g.refuse(p, reason)
		}
	}
	if reason := p.remaining(ctx); reason != ReasonNone {
		return ctx, nil, none, g.refuse(p, reason)
	}
	var t bulkhead.Ticket
	var err error
	if p.waits {
		t, err = g.enterWaiting(ctx, p, *d)
	} else {
		var out bulkhead.Outcome
		t, out = p.bulkhead.TakeSlow(ctx, d)
		t, err = g.answer(ctx, p, t, out)
	}
	if err != nil {
		return ctx, nil, none, err
	}
	var cancel context.CancelFunc
	if p.spec.Timeout > 0 {
		ctx, cancel = context.WithDeadline(ctx, end)
	}
	return ctx, cancel, t, nil
}

// injectFault runs the injector for a scoped call. The place goes back if the injector decided the call, or panicked.
func (g *Guard) injectFault(ctx context.Context, p *plan, t bulkhead.Ticket) error {
	out := unrecorded
	defer func() {
		if out != succeeded {
			g.injected.Add(1)
			g.leave(p, t, out)
		}
	}()
	err := p.inject.Inject(ctx, g.key)
	out = outcomeOf(err)
	return err
}

// leave gives the place of a scoped call back and counts how it ended. A nested call has nothing to give.
func (g *Guard) leave(p *plan, t bulkhead.Ticket, out outcome) {
	if p.bulkhead.Give(t) && (out != succeeded || t.Hash()&g.sampleMask.Load() == 0) {
		g.finish(t, out)
	}
}
