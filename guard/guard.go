package guard

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/breaker"
	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/internal/goroutine"
	"github.com/spillway-go/spillway/registry"
)

// Guard is the guard of one key. Get it with For. All its methods are safe for concurrent use.
type Guard struct {
	// own is the bulkhead of a key that is in no group.
	own bulkhead.Bulkhead
	// detour is 0 where there is nothing to ask but own. Otherwise the plan says what.
	detour     atomic.Uint32
	marks      bool // the goroutines of its calls wear badges
	sampleMask atomic.Uint32
	plan       atomic.Pointer[plan]

	key  registry.Key
	rt   *Runtime
	self any // the guard itself, as the owner of its entries

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
	excused    atomic.Uint64 // failures that say nothing of the other side
	grouped    atomic.Uint64 // calls of a key in a group, for its breaker
	latencies  [2]atomic.Pointer[recorder]

	episode episode // of refusals

	// Guarded by table.mu.
	settings  settings  // of own
	growth    *growth   // of own, or nil
	group     *group    // whose bulkhead is asked instead of own, or nil
	came      time.Time // into the table, or out of the registry
	counted   int       // N as the scaler counts it
	held      bool      // by the table
	at        int32     // its place in the table's list
	declared  bool      // is in the registry, so never dropped
	forgotten bool      // was dropped once
}

// Key is the key that the guard stands for.
func (g *Guard) Key() registry.Key { return g.key }

// Do runs fn on this goroutine if the key admits it, and returns fn's error untouched. Otherwise it returns a *Rejection at once,
// or after the key's wait. A panic or Goexit of fn goes on up after the place was given back, and counts as unrecorded.
//
// A call of the same key from inside fn, on the same goroutine, is never refused for want of a place: it passes through and counts as
// nested, or takes a place where one is free. The same holds for keys of one group.
//
// A timeout of the key bounds only the wait here, since fn could not see it: use DoContext.
func (g *Guard) Do(fn func() error) error {
	if g.detour.Load() != 0 {
		return g.doSlow(fn)
	}
	t, answer := g.own.Take()
	if answer != bulkhead.Taken {
		if answer == bulkhead.Unsure {
			return g.doSlow(fn)
		}
		if err := g.settle(answer); err != nil {
			return err
		}
	}
	var badge *goroutine.Badge
	if g.marks && t.Held() {
		badge = goroutine.Wear(t.Goroutine())
	}
	out := unrecorded
	defer func() {
		badge.Off()
		if g.own.Give(t) && (out != succeeded || t.Hash()&g.sampleMask.Load() == 0) {
			g.finish(t, out)
		}
	}()
	err := goroutine.Run(fn)
	out = g.outcomeOf(err)
	return err
}

// DoContext is Do for a function that takes a context. The context that fn gets carries the key's timeout. A context that is
// done, or ends before the key's floor, is refused; one that ends while the call waits ends the wait.
func (g *Guard) DoContext(ctx context.Context, fn func(context.Context) error) error {
	if ctx == nil {
		ctx = context.Background()
	}
	if g.detour.Load() != 0 || ctx.Err() != nil {
		return g.doPlanned(ctx, true, fn)
	}
	t, answer := g.own.Take()
	if answer != bulkhead.Taken {
		if answer == bulkhead.Unsure {
			return g.doPlanned(ctx, true, fn)
		}
		if err := g.settle(answer); err != nil {
			return err
		}
	}
	var badge *goroutine.Badge
	if g.marks && t.Held() {
		badge = goroutine.Wear(t.Goroutine())
	}
	out := unrecorded
	defer func() {
		badge.Off()
		if g.own.Give(t) && (out != succeeded || t.Hash()&g.sampleMask.Load() == 0) {
			g.finish(t, out)
		}
	}()
	err := goroutine.RunContext(ctx, fn)
	out = g.outcomeOf(err)
	return err
}

// settle is the end of a direct call's try to enter when its answer is Full or Nested: nil means go on.
func (g *Guard) settle(answer bulkhead.Outcome) error {
	if answer == bulkhead.Full {
		return g.refuse(g.plan.Load(), ReasonFull)
	}
	g.nested.Add(1)
	return nil
}

func (g *Guard) doSlow(fn func() error) error {
	return g.doPlanned(context.Background(), false, func(context.Context) error { return fn() })
}

// DoN is DoContext for a call that counts for n places, all or none, as EnterN says.
func (g *Guard) DoN(ctx context.Context, n int, fn func(context.Context) error) error {
	if ctx == nil {
		ctx = context.Background()
	}
	p := g.plan.Load()
	d := p.scoped
	d.Weight = max(1, n)
	return g.doWith(ctx, p, true, &d, fn)
}

// Pin says that the call of this key by Do, DoContext, DoN, Call or EnterScoped which runs on a goroutine is a stream: it is never evicted
// or told as slow, however old. The goroutine is that of its stack trace. Pin must return before the call does.
func (g *Guard) Pin(goroutine uint64) { g.plan.Load().bulkhead.PinScoped(goroutine) }

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
