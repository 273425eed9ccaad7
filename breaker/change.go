package breaker

import (
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/spillway-go/spillway/internal/clock"
)

// change follows every change of machine's state. It runs under machine's lock and mu.
func (b *Breaker) change(_ string, from, to gobreaker.State) {
	c := Change{Name: b.cfg.Name, Time: time.Now(), From: stateOf(from), To: stateOf(to), Why: b.why}
	now := clock.Now()
	if c.From == Closed {
		c.Calls, c.Failures = b.inWindow()
	}
	b.since.Store(now)
	clear(b.probes)
	if c.To == Open {
		b.until.Store(now + int64(b.cfg.Open))
	}
	if c.To == Closed {
		b.restart(now)
	}
	w := b.word.Load()
	b.publish((w>>genShift+1)<<genShift | w&modeMask | uint64(c.To))
	b.changes = append(b.changes, c)
}

func stateOf(s gobreaker.State) State {
	switch s {
	case gobreaker.StateClosed:
		return Closed
	case gobreaker.StateHalfOpen:
		return HalfOpen
	default:
		return Open
	}
}

// publish shows the state to those who do not take the lock. Under mu.
func (b *Breaker) publish(word uint64) {
	b.word.Store(word)
	mode := Mode(word & modeMask >> modeShift)
	b.cfg.Shut(mode == ForceOpen || mode == Normal && State(word&stateMask) != Closed)
}

// unlock ends mu and tells what changed under it, in order, by one goroutine at a time. What changes while somebody tells is told by that one.
func (b *Breaker) unlock() {
	if b.telling || len(b.changes) == 0 {
		b.mu.Unlock()
		return
	}
	b.telling = true
	for len(b.changes) > 0 {
		c := b.changes[0] // one at a time: the rest is not lost if OnChange ends the goroutine
		b.changes = b.changes[1:]
		b.mu.Unlock()
		b.tell(c)
		b.mu.Lock()
	}
	b.telling = false
	b.mu.Unlock()
}

// tell calls OnChange, whose panic must not be that of a call.
func (b *Breaker) tell(c Change) {
	if b.cfg.OnChange == nil {
		return
	}
	returned := false
	defer func() {
		if recover() == nil && !returned { // it ended the goroutine
			b.mu.Lock()
			b.telling = false
			b.mu.Unlock()
		}
	}()
	b.cfg.OnChange(c)
	returned = true
}

// SetMode lays a mode over the state. With Normal the state decides again. Other values change nothing.
func (b *Breaker) SetMode(m Mode) {
	if m > ForceClosed {
		return
	}
	b.mu.Lock()
	b.publish(b.word.Load()&^modeMask | uint64(m)<<modeShift)
	b.mu.Unlock()
}

// Snapshot returns the breaker at this moment.
func (b *Breaker) Snapshot() Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, w := clock.Now(), b.word.Load()
	s := Snapshot{
		State: State(w & stateMask), Mode: Mode(w & modeMask >> modeShift), Probes: len(b.probes),
		Since: time.Duration(now - b.since.Load()),
	}
	if s.State == Closed {
		b.step(now)
		s.Calls, s.Failures = b.inWindow()
		s.Consecutive = int(b.run.Load())
	}
	if s.State == Open {
		s.RetryAfter = time.Duration(max(0, b.until.Load()-now))
	}
	return s
}
