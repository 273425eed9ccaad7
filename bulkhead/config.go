package bulkhead

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Levels is the number of priority levels in the waiting room. Level 0 is served first.
const Levels = 4

// Ranges of Config.
const (
	MaxLimit = 250_000
	MaxQueue = 100_000
	// MaxExpand bounds Expand: a bulkhead never holds more than four times its configured limit.
	MaxExpand = 4
)

// Errors of Enter. Package guard's rejections match them through errors.Is.
var (
	// ErrFull: no place was free, and none became free in time.
	ErrFull = errors.New("bulkhead: full")
	// ErrTooHeavy: the call's weight is above Expand x Limit, so that it could never enter.
	ErrTooHeavy = errors.New("bulkhead: the call weighs more than the bulkhead can ever hold")
	// ErrClosed: Close was called.
	ErrClosed = errors.New("bulkhead: closed")
	// ErrWeight: the weight is below 1.
	ErrWeight = errors.New("bulkhead: a call's weight must be at least 1")
)

// Config describes a bulkhead. The zero value of every field but Limit is usable.
type Config struct {
	// Limit is N, the places, 1..MaxLimit.
	Limit int
	// Expand is the cap factor, 1..4; 0 means 4. The bound never exceeds Expand x Limit. 1 also switches
	// the eviction of stuck calls off, since it leaves no room for what they still hold.
	Expand int
	// Stale is the age at which the oldest call may lose its place to a newcomer; 0 means 60 s.
	Stale time.Duration
	// Wait is the longest time a call waits for a place; 0 means that none waits.
	Wait time.Duration
	// Queue is how many calls may wait, up to MaxQueue; 0 means as many as Limit. Without Wait it means nothing.
	Queue int
	// Expander decides whether the bound may grow when a call finds no place; nil: it does not grow.
	Expander Expander
	// Memory forbids the eviction of stuck calls while memory is tight; nil: memory is never tight.
	Memory MemoryGauge
	// Owner is handed back by Permit.Owner, and stands in reports.
	Owner any
	// Reported is set whenever Reports has something new; nil: nobody wants to know.
	Reported *atomic.Bool
}

// An Expander decides whether a full bulkhead may grow. It is called without any lock, possibly by many calls at once.
type Expander interface {
	// Expand returns the new bound, and for how long not to ask again. A bound that is not above the
	// present one changes nothing, one above Expand x Limit counts as that.
	Expand(now Load) (bound int, pause time.Duration)
}

// A MemoryGauge says whether memory is tight. It is called without any lock, by calls that found no place.
type MemoryGauge interface{ MemoryTight() bool }

// Load is what an Expander sees.
type Load struct {
	Limit    int // N as configured
	Max      int // Expand x N
	Bound    int // in force
	InFlight int // places taken
	Detached int // places of evicted calls that still run
	Waiting  int // calls in the waiting room
	Weight   int // of the call that found no place
}

func (c Config) withDefaults() Config {
	if c.Expand == 0 {
		c.Expand = MaxExpand
	}
	if c.Stale == 0 {
		c.Stale = time.Minute
	}
	if c.Queue == 0 {
		c.Queue = min(c.Limit, MaxQueue)
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Limit < 1 || c.Limit > MaxLimit:
		return fmt.Errorf("bulkhead: Limit is %d, must be 1..%d", c.Limit, MaxLimit)
	case c.Expand < 1 || c.Expand > MaxExpand:
		return fmt.Errorf("bulkhead: Expand is %d, must be 1..%d", c.Expand, MaxExpand)
	case c.Stale < 0:
		return fmt.Errorf("bulkhead: Stale is %v, must not be negative", c.Stale)
	case c.Wait < 0:
		return fmt.Errorf("bulkhead: Wait is %v, must not be negative", c.Wait)
	case c.Queue < 0 || c.Queue > MaxQueue:
		return fmt.Errorf("bulkhead: Queue is %d, must be 0..%d", c.Queue, MaxQueue)
	}
	return nil
}
