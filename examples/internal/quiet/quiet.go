// Package quiet lets tests that measure milliseconds wait for their turn on a busy machine.
package quiet

import (
	"slices"
	"testing"
	"time"
)

const (
	patience = time.Minute
	onTime   = 4 * time.Millisecond
)

// Wait waits, for a minute at most, until timers are on time: other packages' tests may be keeping every CPU busy.
func Wait(tb testing.TB) {
	tb.Helper()
	start := time.Now()
	var p99 time.Duration
	for time.Since(start) < patience {
		late := make([]time.Duration, 200)
		for i := range late {
			due := time.Now().Add(2 * time.Millisecond)
			<-time.After(2 * time.Millisecond)
			late[i] = time.Since(due)
		}
		slices.Sort(late)
		if p99 = late[len(late)*99/100]; p99 < onTime {
			break
		}
	}
	tb.Logf("after %v timers are %v late (p99)", time.Since(start).Round(time.Millisecond), p99)
}
