package guard

import (
	"context"
	"errors"
	"time"

	"github.com/spillway-go/spillway/breaker"
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
	breaker  *breaker.Breaker
	throttle *breaker.Throttle
	pace     *pace
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

// remaining reports why a call under ctx, which the key's timeout ends at the given time if it is not zero, is not worth starting, or
// ReasonNone.
func (p *plan) remaining(ctx context.Context, end time.Time) Reason {
	if err := ctx.Err(); err != nil {
		return reasonOf(err)
	}
	if p.spec.Floor == 0 && end.IsZero() {
		return ReasonNone
	}
	if d, ok := ctx.Deadline(); ok && (end.IsZero() || d.Before(end)) {
		end = d
	}
	if end.IsZero() {
		return ReasonNone
	}
	if left := time.Until(end); left <= 0 || left < p.spec.Floor {
		return ReasonDeadline
	}
	return ReasonNone
}

// reasonOf is the refusal for a context that ended with err.
func reasonOf(err error) Reason {
	if errors.Is(err, context.DeadlineExceeded) {
		return ReasonDeadline
	}
	return ReasonCanceled
}

// direct reports whether the guard's own bulkhead is all there is to ask.
func (p *plan) direct() bool {
	return !p.invalid && p.inject == nil && p.spec.Timeout == 0 && p.spec.Floor == 0 && p.spec.Group == "" && p.spec.Breaker.Slow == 0 && p.pace == nil
}

// longestWait is what a call's Demand says of waiting.
func longestWait(s registry.Spec) time.Duration {
	switch {
	case s.Wait == 0:
		return -1
	case s.Timeout > 0:
		return min(s.Wait, s.Timeout)
	default:
		return s.Wait
	}
}

func bulkheadConfig(s registry.Spec) bulkhead.Config {
	return bulkhead.Config{Limit: s.Limit, Expand: s.Expand, Stale: s.Stale, Wait: s.Wait, Queue: s.Queue}
}

// settings are what is in force in a bulkhead, in the little room that ten thousand idle keys can afford.
type settings struct {
	limit, expand, queue int32
	stale, wait          time.Duration
}

func settingsOf(c bulkhead.Config) settings {
	return settings{int32(c.Limit), int32(c.Expand), int32(c.Queue), c.Stale, c.Wait}
}
