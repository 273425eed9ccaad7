package guard

import (
	"context"
	"time"

	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/registry"
)

// plan is what a call needs to know of its key's settings. It is immutable and replaced as a whole, so that one call sees one
// spec.
type plan struct {
	bulkhead *bulkhead.Bulkhead
	invalid  bool // the key is: everything is refused
	spec     registry.Spec
	inject   Injector
	// What a call of weight 1 asks for, with Exit in the same function and without.
	scoped, loose bulkhead.Demand
}

// level is the waiting room's level of a call.
func (p *plan) level(ctx context.Context) int {
	c := infoFrom(ctx).criticality
	if c == registry.CriticalityUnset {
		c = p.spec.Criticality
	}
	return int(c - registry.CriticalPlus)
}

// remaining reports why a call is not worth starting, or ReasonNone.
func (p *plan) remaining(ctx context.Context) Reason {
	switch ctx.Err() {
	case nil:
	case context.DeadlineExceeded:
		return ReasonDeadline
	default:
		return ReasonCanceled
	}
	if p.spec.Floor > 0 {
		if end, ok := ctx.Deadline(); ok && time.Until(end) < p.spec.Floor {
			return ReasonDeadline
		}
	}
	return ReasonNone
}

// direct reports whether the guard's own bulkhead is all there is to ask.
func (p *plan) direct() bool {
	return !p.invalid && p.inject == nil && p.spec.Timeout == 0 && p.spec.Floor == 0 && p.spec.Group == ""
}

func bulkheadConfig(s registry.Spec) bulkhead.Config {
	return bulkhead.Config{Limit: s.Limit, Expand: s.Expand, Stale: s.Stale, Wait: s.Wait, Queue: s.Queue}
}
