package guard

import (
	"context"
	"sync/atomic"
	"time"

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
