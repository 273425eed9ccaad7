package pressure

import (
	"sync"
	"time"
)

// Manual is a Source that says what it was told: for tests, and for drills that pretend that the machine is full.
// What is set counts from the next sample on. It is safe for concurrent use.
type Manual struct {
	mu       sync.Mutex // guards readings; nothing is called under it
	readings Readings
}

// NewManual returns a source in which all is well: cpu 10 %, memory 10 %, nothing runnable; all else is unsupported.
func NewManual() *Manual {
	m := &Manual{}
	for s := range Signals() {
		m.readings[s] = Reading{State: Unsupported, From: "manual", Why: "not set"}
	}
	m.Set(CPU, 10)
	m.Set(Memory, 10)
	m.Set(Runnable, 0)
	return m
}

// Set gives a signal a known value, in its unit.
func (m *Manual) Set(s Signal, value float64) {
	m.Put(s, Reading{State: Known, Value: value, From: "manual"})
}

// Put gives a signal any reading, for example one that is Unknown. Lag is the sampler's own and cannot be set.
func (m *Manual) Put(s Signal, r Reading) {
	if s >= Lag {
		return
	}
	m.mu.Lock()
	m.readings[s] = r
	m.mu.Unlock()
}

// Read implements Source.
func (m *Manual) Read(_ time.Duration, r *Readings) {
	m.mu.Lock()
	*r = m.readings
	m.mu.Unlock()
}
