package watchdog

import (
	"time"

	"github.com/spillway-go/spillway/registry"
)

// A Source knows the calls in flight.
type Source interface {
	// Late calls f for every call in flight that is late: its Age at the given reading of the monotonic clock, which all packages
	// here share, is at least its Slow. It is called every Config.Period on the watchdog's goroutine; f returns soon and does not
	// block. Late must hold no lock that calls wait for, and be cheap for keys without a call in flight.
	Late(now int64, f func(Call))
}

// Call is a late call as the Source sees it.
type Call struct {
	Key       registry.Key
	Goroutine uint64        // that entered
	Age       time.Duration // since it entered
	Slow      time.Duration // the key's threshold
	InFlight  int           // of the key, or its group
	Bound     int           // in force
	// Place and Identity together tell the call from every other one.
	Place    Place
	Identity uint64
	// Site is where the call's pass was taken; the zero Site of a call that runs a function.
	Site Site
	// Scoped: the call ends on the goroutine that entered, before the function that entered returns.
	Scoped bool
}

// A Place is where a call in flight is registered. It must be a pointer, or another cheap value that can be compared.
type Place interface {
	// Holds reports whether the call of that identity still has the place.
	Holds(identity uint64) bool
}
