package autoscale

import (
	"errors"
	"fmt"
	"time"
)

// Pressure tells how the machine is doing; package pressure's Sampler does. All its methods must be safe for concurrent use, and
// all but Why cheap.
type Pressure interface {
	// Normal reports whether every required indicator is known and normal.
	Normal() bool
	// CPUTight and MemoryTight report whether one is short.
	CPUTight() bool
	MemoryTight() bool
	// Why is the sentence for what is not normal, such as "cpu 83 % of quota, limit 80 %".
	Why() string
	// Number counts the samples that these answers come from. A key takes at most one step a sample.
	Number() uint64
}

// Target is the bulkhead of a key, and what is known of its calls. SetBound and Watch are called under the key's lock, so they
// must not call the scaler.
type Target interface {
	// Late returns how many of the calls in flight are older than the key's threshold for a slow call, and how
	// many there are.
	Late() (late, inFlight int)
	// Healthy reports whether the key's breaker is closed; true where there is none.
	Healthy() bool
	// SetBound puts a bound into force.
	SetBound(n int)
	// Watch begins to watch whether more than n calls are in flight at once at any moment from now on, and returns whether the
	// number of the last Watch was exceeded since then.
	Watch(n int) (exceeded bool)
}

// Ranges and defaults of Config.
const (
	DefaultWindow = 10 * time.Second
	DefaultPause  = 100 * time.Millisecond
	// LateShare is the share of late calls above which a key does not grow.
	LateShare = 0.25
	// GrowthShare bounds what all keys together gain in one sample, as a share of the sum of their N. One key may
	// always take its step.
	GrowthShare = 0.25
)

// Config describes a Scaler. Pressure is required.
type Config struct {
	Pressure Pressure
	// Window is how long the peak of a key must have been at most half its bound before the bound steps back, 1s..10m;
	// 0 means 10 s.
	Window time.Duration
	// Pause is for how long a key that may not grow is not asked again, 1ms..10s; 0 means 100 ms, the period of the sampler.
	Pause time.Duration
	// OnStep is told of every step, and of every step that was not taken when its reason is another one than the last
	// time or a second has passed. It is called without a lock, possibly by many calls at once, on the goroutine of the call
	// that asked or of Tick, and must not block. Nil: nobody is told.
	OnStep func(Step)
}

func (c Config) withDefaults() (Config, error) {
	if c.Pressure == nil {
		return c, errors.New("autoscale: Pressure is nil, must be set")
	}
	if c.Window == 0 {
		c.Window = DefaultWindow
	}
	if c.Pause == 0 {
		c.Pause = DefaultPause
	}
	if c.Window < time.Second || c.Window > 10*time.Minute {
		return c, fmt.Errorf("autoscale: Window is %v, must be 1s..10m", c.Window)
	}
	if c.Pause < time.Millisecond || c.Pause > 10*time.Second {
		return c, fmt.Errorf("autoscale: Pause is %v, must be 1ms..10s", c.Pause)
	}
	return c, nil
}

// Cause is the kind of reason for a step, or for none.
type Cause uint8

// The causes. Their spelling is that of String, and stable.
const (
	Grown     Cause = iota + 1 // full, and all is well
	Calm                       // the peak of the window was at most half the bound: a step back
	Tight                      // CPU or memory is tight: back to N
	Ceiling                    // the bound is at Expand x N already
	Pressured                  // some required indicator is unknown or not normal
	Late                       // too many of the key's calls are late
	Unhealthy                  // the key's breaker is not closed
	Sampled                    // the key took its step in this sample already
	Shared                     // all keys together gained enough in this sample
)

var causeNames = [...]string{"", "grown", "calm", "tight", "ceiling", "pressure", "late", "unhealthy", "sampled", "shared"}

// String returns the stable spelling, such as "calm".
func (c Cause) String() string {
	if int(c) >= len(causeNames) {
		return "unknown"
	}
	return causeNames[c]
}

// Step is a change of a key's bound, or one that was not made: then From and To are equal.
type Step struct {
	Key      string
	From, To int
	Cause    Cause
	// Why is the sentence: "cpu 83 % of quota, limit 80 %".
	Why string
}
