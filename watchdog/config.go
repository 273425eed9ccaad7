package watchdog

import (
	"errors"
	"fmt"
	"time"
)

// Config describes a watchdog. Only Source is needed.
type Config struct {
	// Source knows the calls in flight.
	Source Source
	// Log writes a report, on the watchdog's goroutine: see Zerolog and Slog. While it blocks nothing is watched. nil: nothing is written.
	Log func(Report)
	// OnSlow is called for reports of the kinds Slow and Still, after Log, on a goroutine of the watchdog's that does nothing else. When it
	// takes long up to 64 reports wait for it; more are dropped and counted. A panic in it is contained and logged.
	OnSlow func(Report)

	// Period is how often the Source is asked, 10 ms to 10 s; 0 means 250 ms. A call is found to be late at most this much after it is.
	Period time.Duration
	// Burst is how many pages of reports may be written one after the other, and Every how long it takes until there may be one
	// more: 1..1000, 1 s to 1 h; 0 means 20, and 10 s. Those about slow calls, about their ends, and about lost and evicted calls are
	// counted apart. What has to wait is written with the next page.
	Burst int
	Every time.Duration
	// Lines is the most reports on one page, 1..1000; 0 means 16. Further groups are summed up in one.
	Lines int
	// MaxCalls is how many late calls are followed at a time, 1..1,000,000; 0 means 25,000 (some 6 MB). More are only counted.
	MaxCalls int
	// MaxGoroutines is up to how many goroutines a profile is taken, 1 or more; 0 means 200,000. The profile of 100,000 goroutines
	// takes the runtime about a second of one core and a hundred megabytes for a moment.
	MaxGoroutines int
	// MaxBytes bounds the text of a dump's distinct stacks, 1 KiB to 64 MiB; 0 means 1 MiB.
	MaxBytes int
	// MaxFrames is the most lines of one stack, 1..1000; 0 means 32.
	MaxFrames int
}

// ErrConfig is what errors of New match.
var ErrConfig = errors.New("watchdog: invalid configuration")

func (c Config) withDefaults() Config {
	fill(&c.Period, 250*time.Millisecond)
	fill(&c.Burst, 20)
	fill(&c.Every, 10*time.Second)
	fill(&c.Lines, 16)
	fill(&c.MaxCalls, 25_000)
	fill(&c.MaxGoroutines, 200_000)
	fill(&c.MaxBytes, 1<<20)
	fill(&c.MaxFrames, 32)
	return c
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (c Config) validate() error {
	var all []error
	wrong := func(name string, value, least, most any) {
		all = append(all, fmt.Errorf("%w: %s is %v, must be %v to %v", ErrConfig, name, value, least, most))
	}
	number := func(name string, n, least, most int) {
		if n < least || n > most {
			wrong(name, n, least, most)
		}
	}
	duration := func(name string, d, least, most time.Duration) {
		if d < least || d > most {
			wrong(name, d, least, most)
		}
	}
	if c.Source == nil {
		all = append(all, fmt.Errorf("%w: Source is nil", ErrConfig))
	}
	duration("Period", c.Period, 10*time.Millisecond, 10*time.Second)
	number("Burst", c.Burst, 1, 1000)
	duration("Every", c.Every, time.Second, time.Hour)
	number("Lines", c.Lines, 1, 1000)
	number("MaxCalls", c.MaxCalls, 1, 1_000_000)
	number("MaxGoroutines", c.MaxGoroutines, 1, 1<<31-1)
	number("MaxBytes", c.MaxBytes, 1<<10, 64<<20)
	number("MaxFrames", c.MaxFrames, 1, 1000)
	return errors.Join(all...)
}
