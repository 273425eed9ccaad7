package guard

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spillway-go/spillway/breaker"
	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/registry"
)

// Errors that a rejection matches through errors.Is. Besides these, ReasonFull matches bulkhead.ErrFull, ReasonTooHeavy
// bulkhead.ErrTooHeavy, ReasonOpen breaker.ErrOpen, ReasonThrottled breaker.ErrThrottled, ReasonCanceled context.Canceled and
// ReasonDeadline context.DeadlineExceeded.
var (
	// ErrRejected matches every refusal of a guard: the call was not run.
	ErrRejected = errors.New("guard: rejected")
	// ErrClosed matches refusals of a closed runtime.
	ErrClosed = errors.New("guard: runtime is closed")
	// ErrInvalidKey matches refusals of keys that registry.Key.Validate does not accept.
	ErrInvalidKey = errors.New("guard: invalid key")
	// ErrDenied matches refusals by a rule.
	ErrDenied = errors.New("guard: denied")
)

// Rejection is the error of a call that was refused. It is immutable, and made once for a guard and reason, so that
// refusing allocates nothing; do not compare two rejections to tell two calls apart.
type Rejection struct {
	key    registry.Key
	reason Reason
	limit  int
	after  time.Duration
	text   string
}

// Key is the key whose guard refused.
func (r *Rejection) Key() registry.Key { return r.key }

// Reason is the stage that refused.
func (r *Rejection) Reason() Reason { return r.reason }

// Limit is the bound that was reached, 0 for reasons without one.
func (r *Rejection) Limit() int { return r.limit }

// RetryAfter is how long a caller should stay away, in steps from 100 ms to 60 s; 0 where that would not help.
func (r *Rejection) RetryAfter() time.Duration { return r.after }

// Error names the key, the reason and the limit.
func (r *Rejection) Error() string { return r.text }

// Unreached says that what was to be called was not: a breaker further out does not take the refusal for a failure.
func (r *Rejection) Unreached() bool { return true }

// Is makes errors.Is work for ErrRejected and for the sentinel of the stage.
func (r *Rejection) Is(target error) bool {
	return target == ErrRejected || target == sentinels[r.reason] && target != nil
}

var sentinels = [reasons]error{
	ReasonFull:       bulkhead.ErrFull,
	ReasonTooHeavy:   bulkhead.ErrTooHeavy,
	ReasonDeadline:   context.DeadlineExceeded,
	ReasonCanceled:   context.Canceled,
	ReasonDenied:     ErrDenied,
	ReasonOpen:       breaker.ErrOpen,
	ReasonThrottled:  breaker.ErrThrottled,
	ReasonClosed:     ErrClosed,
	ReasonInvalidKey: ErrInvalidKey,
}

var reasonTexts = [reasons]string{
	ReasonFull:       "overload protection limit exceeded",
	ReasonTooHeavy:   "the call weighs more than the key can ever hold",
	ReasonDeadline:   "too little time remains",
	ReasonCanceled:   "the caller has gone",
	ReasonDenied:     "denied by a rule",
	ReasonRate:       "rate limit exceeded",
	ReasonQuota:      "quota exceeded",
	ReasonOverload:   "the process is overloaded",
	ReasonOpen:       "the breaker is open",
	ReasonThrottled:  "throttled by the client",
	ReasonClosed:     "the runtime is closed",
	ReasonInvalidKey: "a key is 1.." + strconv.Itoa(registry.MaxKeyLen) + " printable bytes without spaces",
}

// retrySteps are the values that RetryAfter takes.
var retrySteps = [...]time.Duration{
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute,
}

// roundUp returns the step that is not below d, or the last.
func roundUp(d time.Duration) time.Duration {
	for _, s := range retrySteps {
		if s >= d {
			return s
		}
	}
	return retrySteps[len(retrySteps)-1]
}

func newRejection(key registry.Key, reason Reason, limit int, after time.Duration) *Rejection {
	r := &Rejection{key: key, reason: reason, limit: limit, after: after}
	r.text = fmt.Sprintf("guard: %s: %s (%s", key, reasonTexts[reason], reason)
	if limit > 0 {
		r.text += fmt.Sprintf(", limit %d", limit)
	}
	r.text += ")"
	return r
}

// refuse counts a refusal and returns the rejection for it, made anew only where the bound or the step changed.
func (g *Guard) refuse(p *plan, reason Reason) *Rejection {
	return g.refuseFor(p, reason, g.retryAfter(reason))
}

// refuseFor is refuse where it is known when to come back: a step of retrySteps, or 0.
func (g *Guard) refuseFor(p *plan, reason Reason, after time.Duration) *Rejection {
	g.refused.add(reason)
	if !g.rt.refusing.Load() {
		g.rt.refusing.Store(true)
	}
	limit := 0
	switch reason {
	case ReasonFull:
		limit = p.bulkhead.Bound()
	case ReasonTooHeavy:
		limit = p.spec.Limit * p.spec.Expand
	default:
	}
	if r := g.rejections[reason].Load(); r != nil && r.limit == limit && r.after == after {
		return r
	}
	r := newRejection(g.key, reason, limit, after)
	g.rejections[reason].Store(r)
	return r
}

// retryAfter is how long it pays to stay away. A full key has a place again after about a service time.
func (g *Guard) retryAfter(reason Reason) time.Duration {
	switch reason {
	case ReasonFull:
		if step := g.retryStep.Load(); step > 0 {
			return time.Duration(step)
		}
		return time.Second
	case ReasonTooHeavy, ReasonInvalidKey, ReasonCanceled, ReasonDeadline, ReasonDenied:
		return 0
	default:
		return time.Second
	}
}
