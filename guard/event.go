package guard

import (
	"fmt"
	"time"

	"github.com/spillway-go/spillway/registry"
	"github.com/spillway-go/spillway/watchdog"
)

// EventKind says what happened.
type EventKind uint8

// The kinds. Their spelling in logs is that of String, and stable.
const (
	_              EventKind = iota
	EventRefused             // a key refuses calls: once when it begins and then once a second, with the number since the last
	EventCalm                // a key that refused calls has refused none for ten seconds
	EventLost                // a pass was lost; its place is free again
	EventEvicted             // a stuck call lost its place to a newcomer
	EventSpec                // a key's spec was replaced
	EventKeysFull            // undeclared keys share the overflow guard, because too many are busy at once
	EventDropped             // reports on the key were dropped, since more came than could be told; in a log without a key: events
	EventBound               // a key's bound took a step up or back
	EventBoundHeld           // a key's bound did not take a step, once a second at most for one key and cause
	EventSlow                // calls became older than their key's slow: see Report
	EventStillSlow           // they passed twice that age, four times, eight times, ...
	EventMoreSlow            // as many more such calls, for which a page has no lines
	EventSlowEnded           // late calls are over
	EventWatchdog            // the watchdog's own trouble
	EventBreaker             // a breaker changed its state: Cause is the new one, Why says why
	eventKinds
)

var eventNames = [eventKinds]string{
	"", "refused", "calm", "lost", "evicted", "spec", "keys_full", "dropped", "bound", "bound_held",
	"slow", "still_slow", "more_slow", "slow_ended", "watchdog", "breaker",
}

// String returns the stable spelling, such as "refused".
func (k EventKind) String() string {
	if k >= eventKinds {
		return "unknown"
	}
	return eventNames[k]
}

// Event is something that an operator may want to know of one key.
type Event struct {
	Time time.Time
	Kind EventKind
	Key  registry.Key
	// Count: refusals since the last event (EventRefused), of the whole episode (EventCalm), places lost or evicted, or
	// reports dropped.
	Count uint64
	// Total is the number of refusals since the episode began (EventRefused).
	Total uint64
	// Duration of the episode (EventCalm), or age of the entry (EventLost, EventEvicted, and those of slow calls).
	Duration time.Duration
	// Bound and InFlight of the key at this moment. InFlight is not told with EventBound and EventBoundHeld.
	Bound, InFlight int
	// From is the bound before the step (EventBound, EventBoundHeld), Cause the kind of reason as package autoscale spells it, and
	// Why the reason as a sentence.
	From       int
	Cause, Why string
	// Goroutine that took the place (EventLost, EventEvicted).
	Goroutine uint64
	// Site is where the pass was taken, "file:line function", if known (EventLost, EventEvicted).
	Site string
	// Spec in force (EventSpec).
	Spec registry.Spec
	// Report of the watchdog (EventSlow, EventStillSlow, EventMoreSlow, EventSlowEnded, EventWatchdog): the calls and their stack. It is shared;
	// do not change it.
	Report *watchdog.Report

	audience audience
}

// audience is who gets an event.
type audience uint8

const (
	everybody audience = iota
	logOnly
	subscribersOnly
)

// String is one line for people.
func (e Event) String() string {
	if e.Report != nil {
		return e.Report.String()
	}
	switch e.Kind {
	case EventRefused:
		return fmt.Sprintf("%s: %d calls refused, %d since it began (%d of %d in flight)", e.Key, e.Count, e.Total, e.InFlight, e.Bound)
	case EventCalm:
		return fmt.Sprintf("%s: no more refusals; %d calls were refused in %v", e.Key, e.Count, e.Duration.Round(time.Millisecond))
	case EventLost:
		s := fmt.Sprintf("%s: a pass taken by goroutine %d %v ago was lost without Exit; its place is free again", e.Key, e.Goroutine, e.Duration.Round(time.Millisecond))
		if e.Site != "" {
			s += ", taken at " + e.Site
		}
		return s
	case EventEvicted:
		return fmt.Sprintf("%s: a call of goroutine %d is stuck for %v; its place went to a newcomer", e.Key, e.Goroutine, e.Duration.Round(time.Millisecond))
	case EventSpec:
		return fmt.Sprintf("%s: spec is now %v", e.Key, e.Spec)
	case EventKeysFull:
		return fmt.Sprintf("too many undeclared keys are busy at once: %d calls shared the overflow guard", e.Count)
	case EventDropped:
		if e.Key == "" {
			return fmt.Sprintf("%d events were not logged: the logger is slower than they come", e.Count)
		}
		return fmt.Sprintf("%s: %d reports of lost or stuck calls were dropped", e.Key, e.Count)
	case EventBound:
		return fmt.Sprintf("%s: bound %d -> %d: %s", e.Key, e.From, e.Bound, e.Why)
	case EventBoundHeld:
		return fmt.Sprintf("%s: bound stays at %d: %s", e.Key, e.Bound, e.Why)
	case EventBreaker:
		return fmt.Sprintf("%s: breaker %s: %s", e.Key, e.Cause, e.Why)
	default:
		return e.Kind.String()
	}
}
