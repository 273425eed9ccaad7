package guardtest

import (
	"fmt"
	"strings"
	"time"

	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/guard"
)

// AssertIdle fails the test if a call of any key is in flight or waits at this moment, or if a pass was lost without Exit, and
// lists them with key, goroutine and age. Places that Fill holds are calls in flight. In a bubble call synctest.Wait before
// it; behind a server that runs outside of one use AssertIdleWithin, since an answer arrives before its handler has returned.
func (rt *Runtime) AssertIdle() {
	rt.tb.Helper()
	if busy := rt.busy(); busy != "" {
		rt.tb.Errorf("guardtest: not idle:\n%s", busy)
	}
}

// AssertIdleWithin is AssertIdle for calls that are about to end: it fails if they have not ended after d.
func (rt *Runtime) AssertIdleWithin(d time.Duration) {
	rt.tb.Helper()
	end := time.NewTimer(d)
	defer end.Stop()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for {
		busy := rt.busy()
		if busy == "" {
			return
		}
		select {
		case <-again.C:
		case <-end.C:
			rt.tb.Errorf("guardtest: not idle after %v:\n%s", d, busy)
			return
		}
	}
}

// maxListed is how many calls of a key are listed.
const maxListed = 10

// busy describes everything that is not idle, a line for each.
func (rt *Runtime) busy() string {
	var b strings.Builder
	for _, k := range rt.Snapshot().Keys {
		s := k.Bulkhead
		entries := rt.entries(k)
		if n := max(len(entries), ownInFlight(k)); n > 0 {
			fmt.Fprintf(&b, "\t%s: %d in flight\n", k.Key, n)
		}
		for _, e := range entries[:min(len(entries), maxListed)] {
			fmt.Fprintf(&b, "\t\tgoroutine %d for %v%s\n", e.Goroutine, e.Age.Round(time.Microsecond), remarks(e))
		}
		if more := len(entries) - maxListed; more > 0 {
			fmt.Fprintf(&b, "\t\tand %d more\n", more)
		}
		if s.Waiting > 0 {
			fmt.Fprintf(&b, "\t%s: %d waiting\n", k.Key, s.Waiting)
		}
		if s.Lost > 0 {
			fmt.Fprintf(&b, "\t%s: %d passes were lost without Exit\n", k.Key, s.Lost)
		}
	}
	return b.String()
}

// entries of a key. The guards that stand in for other keys have names that no look-up may use.
func (rt *Runtime) entries(k guard.KeySnapshot) []bulkhead.Entry {
	if k.Key == "(overflow)" || k.Key == "(invalid)" || k.Bulkhead.InFlight+k.Bulkhead.Detached == 0 {
		return nil
	}
	return rt.For(k.Key).Entries()
}

// ownInFlight is the number of places taken, where it is known: keys of a group share it.
func ownInFlight(k guard.KeySnapshot) int {
	if k.Spec.Group != "" {
		return 0
	}
	return k.Bulkhead.InFlight + k.Bulkhead.Detached
}

func remarks(e bulkhead.Entry) string {
	var s string
	if e.Weight > 1 {
		s += fmt.Sprintf(", %d places", e.Weight)
	}
	if e.Detached {
		s += ", evicted"
	}
	if e.Pinned {
		s += ", a stream"
	}
	return s
}
