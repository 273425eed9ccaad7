package pressure

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Off is a limit that keeps a signal from being judged.
const Off = -1

// DefaultPeriod is the time between two samples unless Config says otherwise.
const DefaultPeriod = 100 * time.Millisecond

// Ranges of Config.
const (
	MinPeriod = 10 * time.Millisecond
	MaxPeriod = 10 * time.Second
)

// stalePeriods is how many periods old the newest sample may be.
const stalePeriods = 3

// Config says how often a sampler looks, and what it takes for normal. The zero value is the default.
type Config struct {
	// Period is the time between two samples, 10 ms..10 s; 0 means 100 ms. Slower signals keep their own pace, and a window is never
	// shorter than a period. A sample that is older than three periods counts as overload.
	Period time.Duration
	// Limits are the values from which on a signal is not normal.
	Limits Limits
	// Source is where readings come from; nil means this machine. A Manual is one for tests and drills.
	Source Source
}

// Limits are the values from which on a signal is not normal. It is normal again below the value in the last column, so that it does
// not flap.
//
//	field           0 means   range          normal again below
//	CPU             95 %      1..1000        95 % of the limit
//	Throttled       25 %      1..100         half of the limit
//	Memory          90 %      1..1000        95 % of the limit
//	Runnable        2 per P   0.1..10,000    half of the limit
//	Latency         off       0.01..60,000   half of the limit
//	HostCPU         off       1..100         95 % of the limit
//	Load1, GoLoad1  off       0.1..100,000   90 % of the limit
//	PressureCPU     off       1..100         half of the limit
//	PressureMemory  off       1..100         half of the limit
//	GC              off       1..100         half of the limit
//
// Off (-1) switches any of them off. A veto that was switched on is required like the first four: it then has to be known.
type Limits struct {
	CPU            float64
	Throttled      float64
	Memory         float64
	Runnable       float64
	Latency        float64
	HostCPU        float64
	Load1          float64
	GoLoad1        float64
	PressureCPU    float64
	PressureMemory float64
	GC             float64
}

// limit is one line of the table above.
type limit struct {
	signal   Signal
	field    string
	value    func(*Limits) *float64
	standard float64
	min, max float64
	release  float64 // of the limit: normal again below
}

var limitTable = []limit{
	{Memory, "Memory", func(l *Limits) *float64 { return &l.Memory }, 90, 1, 1000, 0.95},
	{CPU, "CPU", func(l *Limits) *float64 { return &l.CPU }, 95, 1, 1000, 0.95},
	{Throttled, "Throttled", func(l *Limits) *float64 { return &l.Throttled }, 25, 1, 100, 0.5},
	{Runnable, "Runnable", func(l *Limits) *float64 { return &l.Runnable }, 2, 0.1, 10_000, 0.5},
	{Latency, "Latency", func(l *Limits) *float64 { return &l.Latency }, Off, 0.01, 60_000, 0.5},
	{HostCPU, "HostCPU", func(l *Limits) *float64 { return &l.HostCPU }, Off, 1, 100, 0.95},
	{Load1, "Load1", func(l *Limits) *float64 { return &l.Load1 }, Off, 0.1, 100_000, 0.9},
	{GoLoad1, "GoLoad1", func(l *Limits) *float64 { return &l.GoLoad1 }, Off, 0.1, 100_000, 0.9},
	{PressureCPU, "PressureCPU", func(l *Limits) *float64 { return &l.PressureCPU }, Off, 1, 100, 0.5},
	{PressureMemory, "PressureMemory", func(l *Limits) *float64 { return &l.PressureMemory }, Off, 1, 100, 0.5},
	{GC, "GC", func(l *Limits) *float64 { return &l.GC }, Off, 1, 100, 0.5},
}

// WithDefaults returns the limits with every unset field filled in.
func (l Limits) WithDefaults() Limits {
	for _, t := range limitTable {
		if v := t.value(&l); *v == 0 {
			*v = t.standard
		}
	}
	return l
}

func (c Config) withDefaults() Config {
	if c.Period == 0 {
		c.Period = DefaultPeriod
	}
	c.Limits = c.Limits.WithDefaults()
	return c
}

// validate expects defaults to be filled in. It reports every problem at once.
func (c Config) validate() error {
	var problems []error
	if c.Period < MinPeriod || c.Period > MaxPeriod {
		problems = append(problems, fmt.Errorf("pressure: Period is %v, must be %v..%v", c.Period, MinPeriod, MaxPeriod))
	}
	for _, t := range limitTable {
		v := *t.value(&c.Limits)
		if v == Off {
			continue
		}
		if math.IsNaN(v) || v < t.min || v > t.max {
			problems = append(problems, fmt.Errorf("pressure: Limits.%s is %v, must be %v..%v%s, or -1 (off)",
				t.field, v, t.min, t.max, signals[t.signal].unit))
		}
	}
	return errors.Join(problems...)
}
