package watchdog

import (
	"testing"

	"github.com/spillway-go/spillway/internal/clock"
	"github.com/spillway-go/spillway/internal/goroutine"
)

// Shown is what a dump says of a call.
type Shown struct {
	Call

	Stack   []string
	NoStack NoStack
}

// Dump takes a profile for a source's late calls, without a watchdog's schedule, and returns what it shows of those that are not over.
func Dump(s Source) (list []Shown) {
	cfg := Config{}.withDefaults()
	cfg.MaxFrames = 200
	var calls []*watched
	s.Late(clock.Now(), func(c Call) { calls = append(calls, &watched{Call: c}) })
	d := takeDump(calls, &cfg)
	for _, c := range calls {
		i, no := d.stackOf(&c.Call)
		if c.Place.Holds(c.Identity) {
			list = append(list, Shown{c.Call, d.stacks.at(i), no})
		}
	}
	return list
}

// NeedsBadges fails a test in a build whose goroutines cannot be marked.
func NeedsBadges(t testing.TB) {
	t.Helper()
	if !goroutine.Recognizable() {
		t.Error("goroutines of this build cannot be marked")
	}
}
