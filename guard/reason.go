package guard

// Reason says which stage refused a call.
type Reason uint8

// The reasons. Their spelling in logs, metrics and answers is that of String, and stable.
const (
	ReasonNone       Reason = iota
	ReasonFull              // the bound on calls in flight is reached
	ReasonTooHeavy          // the call's weight is above what the key can ever hold
	ReasonDeadline          // the context's deadline has passed, or less time remains than the key's floor
	ReasonCanceled          // the context was cancelled by the caller
	ReasonDenied            // a rule says so
	ReasonRate              // the rate limit is reached
	ReasonQuota             // the caller's quota is spent
	ReasonOverload          // the process is overloaded
	ReasonOpen              // the breaker is open
	ReasonThrottled         // the client-side throttle dropped it
	ReasonClosed            // the runtime is closed
	ReasonInvalidKey        // the key breaks the rules of registry.Key
	reasons
)

var reasonNames = [reasons]string{"none", "full", "too_heavy", "deadline", "canceled", "denied", "rate", "quota", "overload",
	"open", "throttled", "closed", "invalid_key"}

// String returns the stable spelling, such as "full".
func (r Reason) String() string {
	if r >= reasons {
		return "unknown"
	}
	return reasonNames[r]
}

// Reasons returns every reason that a refusal can have.
func Reasons() []Reason {
	all := make([]Reason, 0, reasons-1)
	for r := ReasonFull; r < reasons; r++ {
		all = append(all, r)
	}
	return all
}
