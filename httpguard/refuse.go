package httpguard

import (
	"context"
	"errors"
	"net/http"

	"github.com/spillway-go/spillway/guard"
)

// StatusClientClosedRequest answers a request whose client has gone before a place was taken. Nobody reads it; it is
// there for access logs, where it must not look like a success. No registry of status codes has it, but it is widely known.
const StatusClientClosedRequest = 499

// StatusOf is the status that answers a refusal:
//
//	rate, quota                                              429
//	full, too_heavy, denied, overload, open, throttled, closed  503
//	deadline                                                 504
//	canceled                                                 499, see StatusClientClosedRequest
//	invalid_key                                              500, since the fault is the program's
func StatusOf(reason guard.Reason) int {
	switch reason {
	case guard.ReasonRate, guard.ReasonQuota:
		return http.StatusTooManyRequests
	case guard.ReasonFull, guard.ReasonTooHeavy, guard.ReasonDenied, guard.ReasonOverload, guard.ReasonOpen,
		guard.ReasonThrottled, guard.ReasonClosed:
		return http.StatusServiceUnavailable
	case guard.ReasonDeadline:
		return http.StatusGatewayTimeout
	case guard.ReasonCanceled:
		return StatusClientClosedRequest
	default:
		return http.StatusInternalServerError
	}
}

// Reject answers a request with err if err is, or wraps, a refusal of a guard, and reports whether it is. Handlers may use it for
// the refusals of guards further down, before anything else was written. The answer is described in the package's comment.
func Reject(w http.ResponseWriter, r *http.Request, err error) bool {
	rejection, ok := errors.AsType[*guard.Rejection](err)
	if ok {
		reject(w, r, rejection, Policy{})
	}
	return ok
}

// refuse answers a request that was not admitted.
func (m *Middleware) refuse(w http.ResponseWriter, r *http.Request, err error) {
	rejection, ok := errors.AsType[*guard.Rejection](err)
	switch {
	case !ok:
		fail(w, r, err)
	case m.cfg.Rejected != nil:
		m.cfg.Rejected(w, r, rejection)
	case m.cfg.RateLimit != nil && StatusOf(rejection.Reason()) == http.StatusTooManyRequests:
		reject(w, r, rejection, m.cfg.RateLimit(r, rejection))
	default:
		reject(w, r, rejection, Policy{})
	}
}

func reject(w http.ResponseWriter, r *http.Request, rejection *guard.Rejection, policy Policy) {
	reason := rejection.Reason()
	p := problem{status: StatusOf(reason), reason: reason.String(), after: rejection.RetryAfter()}
	policy.set(w.Header(), p.after)
	p.write(w, r)
}

// fail answers a request that an Injector failed in the handler's stead.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problem{status: http.StatusInternalServerError, reason: reasonFailed}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		p = problem{status: http.StatusGatewayTimeout, reason: guard.ReasonDeadline.String()}
	case errors.Is(err, context.Canceled):
		p = problem{status: StatusClientClosedRequest, reason: guard.ReasonCanceled.String()}
	}
	p.write(w, r)
}
