package breaker

import (
	"errors"
	"fmt"
	"time"
)

// State of a breaker.
type State uint8

// The states.
const (
	Closed   State = iota // calls pass, and are counted
	Open                  // calls are refused
	HalfOpen              // a few calls pass as probes
)

// String returns "closed", "open" or "half_open".
func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	case HalfOpen:
		return "half_open"
	default:
		return "unknown"
	}
}

// Mode lays a decision of somebody's over the state.
type Mode uint8

// The modes.
const (
	Normal      Mode = iota // the state decides
	ForceOpen               // every call is refused
	ForceClosed             // every call passes; the state goes on underneath
)

// String returns "normal", "force_open" or "force_closed".
func (m Mode) String() string {
	switch m {
	case Normal:
		return "normal"
	case ForceOpen:
		return "force_open"
	case ForceClosed:
		return "force_closed"
	default:
		return "unknown"
	}
}

// ErrOpen is what the refusals of a Breaker match.
var ErrOpen = errors.New("breaker: open")

// OpenError is the refusal of a Breaker.
type OpenError struct {
	Name       string
	RetryAfter time.Duration // until the next probe may pass
}

// Error names the breaker and the time to come back.
func (e *OpenError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("breaker: open, try again in %v", e.RetryAfter)
	}
	return fmt.Sprintf("breaker %s: open, try again in %v", e.Name, e.RetryAfter)
}

// Is makes errors.Is(err, ErrOpen) true.
func (e *OpenError) Is(target error) bool { return target == ErrOpen }

// Change is a change of state.
type Change struct {
	Name     string
	Time     time.Time
	From, To State
	// Failures of Calls in the window when the breaker opened from closed.
	Calls, Failures uint64
	// Why is the reason as a sentence, such as "12 of 20 calls failed in 10s".
	Why string
}

// Snapshot is a breaker at one moment.
type Snapshot struct {
	State State
	Mode  Mode
	// Calls and Failures in the window, while closed.
	Calls, Failures uint64
	Consecutive     int           // failures in a row, where Config.Consecutive counts them
	Probes          int           // under way, while half-open
	RetryAfter      time.Duration // until the next probe may pass, while open
	Since           time.Duration // in this state
}
