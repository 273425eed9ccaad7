package guard

import (
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/autoscale"
	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/registry"
)

// Pressure tells how the machine is doing; *pressure.Sampler does. Its methods are called on the path of calls that find no
// place, without a lock.
type Pressure interface {
	autoscale.Pressure
}

// growth is what lets a bulkhead grow, made when it is full for the first time: most never are. It is the bulkhead's Expander and,
// for the scaler, its Target.
type growth struct {
	name     registry.Key
	rt       *Runtime
	bulkhead *bulkhead.Bulkhead
	guard    *Guard       // nil: of a group
	limit    atomic.Int64 // N
	key      atomic.Pointer[autoscale.Key]
}

// Expand implements bulkhead.Expander. The step is taken here, so that the answer is only for how long not to ask again.
func (x *growth) Expand(now bulkhead.Load) (bound int, pause time.Duration) {
	k := x.key.Load()
	if k == nil {
		n := x.limit.Load()
		mine := x.key.CompareAndSwap(nil, x.rt.scaler.Key(string(x.name), int(n), x))
		k = x.key.Load()
		for m := x.limit.Load(); mine && m != n; m = x.limit.Load() {
			k.Resize(int(m)) // replaced meanwhile, by somebody who saw no key
			n = m
		}
	}
	return 0, k.Expand(autoscale.Load{
		Max: now.Max, Bound: now.Bound, InFlight: now.InFlight, Detached: now.Detached, Weight: now.Weight,
	})
}

// resize follows the bulkhead's settings, which have put its bound back to N.
func (x *growth) resize(limit int) {
	x.limit.Store(int64(limit))
	if k := x.key.Load(); k != nil {
		k.Resize(limit)
	}
}

// Late implements autoscale.Target.
func (x *growth) Late() (late, inFlight int) {
	return x.bulkhead.Late(slowOf)
}

// Healthy implements autoscale.Target: a key whose breaker is not closed does not grow.
func (x *growth) Healthy() bool { return x.guard == nil || x.guard.detour.Load()&byBreaker == 0 }

// SetBound implements autoscale.Target.
func (x *growth) SetBound(n int) { x.bulkhead.SetBound(n) }

// Watch implements autoscale.Target.
func (x *growth) Watch(n int) bool { return x.bulkhead.Watch(n) }

// stepped publishes a step of a bound, or one that was not taken.
func (rt *Runtime) stepped(s autoscale.Step) {
	e := Event{Time: time.Now(), Kind: EventBound, Key: registry.Key(s.Key), From: s.From, Bound: s.To, Cause: s.Cause.String(), Why: s.Why}
	if s.From == s.To {
		e.Kind = EventBoundHeld
	}
	rt.hub.publish(e)
}
