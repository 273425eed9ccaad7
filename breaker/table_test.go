package breaker

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// The table of docs/throttle.md. A backend that serves so many a second gets about K calls for each that it serves. One that fails by chance is
// starved: what it gets are mostly probes.
func TestThrottleTable(t *testing.T) {
	const minutes, gap = 2, 5 * time.Millisecond
	first := func(n int) func() bool {
		left, second := n, time.Now()
		return func() bool {
			if time.Since(second) >= time.Second {
				left, second = n, time.Now()
			}
			left--
			return left >= 0
		}
	}
	chance := func(percent int) func() bool {
		r := rand.New(rand.NewPCG(3, 4))
		return func() bool { return r.IntN(100) < percent }
	}
	for _, row := range []struct {
		name    string
		backend func() func() bool
		probes  bool // are most of what it gets
	}{
		{"the first 10 of each second", func() func() bool { return first(10) }, false},
		{"the first 40 of each second", func() func() bool { return first(40) }, false},
		{"one in ten by chance", func() func() bool { return chance(10) }, true},
		{"four in ten by chance", func() func() bool { return chance(40) }, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			th, accepts := newThrottle(t, ThrottleConfig{}), row.backend()
			traffic(th, 20*time.Second, gap, always, accepts)
			all, sent, accepted := traffic(th, minutes*time.Minute, gap, always, accepts)
			t.Logf("%s: of %d calls %d were sent, %d accepted: %.1f for each", row.name, all, sent, accepted, float64(sent)/float64(accepted))
			// In each of twelve windows there are ten probes, and one call or two that the formula lets pass whatever was accepted.
			probes := minutes * 6 * (probesPerWindow + 2)
			if sent > DefaultK*accepted+probes {
				t.Errorf("%s: %d calls were sent, at most %d may be", row.name, sent, DefaultK*accepted+probes)
			}
			if starved := sent < 3*probes; starved != row.probes {
				t.Errorf("%s: %d calls were sent, and the docs say otherwise", row.name, sent)
			}
		})
	}
}
