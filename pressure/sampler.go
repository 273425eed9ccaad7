package pressure

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/internal/clock"
)

// A Source brings readings up to date. Read is called by one goroutine at a time, once a period; now is the time since the sampler
// was made, and r holds what Read left there the last time. A reading's Age counts from now. A source that is
// an io.Closer is closed with its sampler.
type Source interface {
	Read(now time.Duration, r *Readings)
}

// Sampler looks at its source once a period and keeps what it saw for any number of readers. All methods are safe for concurrent use.
// Of the methods that read, only Latest, Reasons and Why do more than a few atomic loads.
type Sampler struct {
	period int64 // ns
	stale  int64 // ns, the greatest age of the newest sample
	base   int64 // the clock when the sampler was made
	source Source
	state  atomic.Int32
	stop   chan struct{}
	done   chan struct{}

	verdict atomic.Uint64 // see judge.go
	board   board

	// Of the sampling goroutine alone.
	readings Readings
	judge    judge
}

// States of a sampler.
const (
	fresh = iota
	started
	closed
)

// New checks the configuration and returns a sampler that does not look yet: Start makes it.
func New(cfg Config) (*Sampler, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Source == nil {
		cfg.Source = newMachine(machineConfig{period: cfg.Period})
	}
	s := &Sampler{
		period: int64(cfg.Period),
		stale:  int64(stalePeriods * cfg.Period),
		base:   clock.Now(),
		source: cfg.Source,
		stop:   make(chan struct{}),
		done:   make(chan struct{}),
		judge:  newJudge(cfg.Limits),
	}
	s.verdict.Store(cpuTight) // nothing is known, least of all that there is room
	return s, nil
}

// Start takes the first sample before it returns and then one every period, until Close. A second Start does nothing, nor
// does one after Close.
func (s *Sampler) Start() {
	if !s.state.CompareAndSwap(fresh, started) {
		return
	}
	s.sample()
	go s.run()
}

// Close ends the sampling and waits for its end. From then on the newest sample ages, so that everything reads as overload.
func (s *Sampler) Close() {
	switch s.state.Swap(closed) {
	case fresh:
		s.closeSource()
		close(s.done)
	case started:
		close(s.stop)
	}
	<-s.done
}

func (s *Sampler) run() {
	defer close(s.done)
	defer s.closeSource()
	ticker := time.NewTicker(time.Duration(s.period))
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
		}
		s.sample()
	}
}

func (s *Sampler) closeSource() {
	if c, ok := s.source.(io.Closer); ok {
		_ = c.Close() // what was read is read
	}
}

// now is the time since the sampler was made.
func (s *Sampler) now() int64 { return clock.Now() - s.base }

func (s *Sampler) sample() {
	now := s.now()
	s.source.Read(time.Duration(now), &s.readings)
	flags, alarms := s.judge.look(&s.readings)
	s.board.write(now, &s.readings, alarms)
	s.verdict.Store(uint64(now)<<flagBits | flags)
}

// Normal reports whether there is room for more: every required signal, and every veto that was switched on, is known
// and below its limit. A signal that is Unsupported or Pending does not count, the others stand in for it; so Normal can be
// true from the first sample on, when only Memory and Runnable are known.
func (s *Sampler) Normal() bool {
	v := s.verdict.Load()
	return v&normal != 0 && !s.late(v)
}

// CPUTight reports whether CPU is known to be short: CPU, Throttled or Runnable is at its limit, or the sampler itself
// does not get to run.
func (s *Sampler) CPUTight() bool {
	v := s.verdict.Load()
	return v&cpuTight != 0 || s.late(v)
}

// MemoryTight reports whether memory is known to be short. It does not look at the sample's age: memory does not come back
// because the sampler is late, nor go away.
func (s *Sampler) MemoryTight() bool { return s.verdict.Load()&memoryTight != 0 }

// Number counts the samples: 0 before the first. Whoever acts at most once a sample compares it.
func (s *Sampler) Number() uint64 { return s.board.written.Load() }

func (s *Sampler) late(verdict uint64) bool { return s.now()-int64(verdict>>flagBits) > s.stale }

// Latest returns the newest sample.
func (s *Sampler) Latest() Sample {
	var out Sample
	s.latest(&out)
	return out
}

func (s *Sampler) latest(out *Sample) {
	at := s.board.read(&out.Readings, &out.Number, &out.alarms)
	lag := &out.Readings[Lag]
	*lag = Reading{State: Known, From: "sampler"}
	out.limits = &s.judge.limits
	if out.Number == 0 {
		*lag = Reading{From: "sampler", Why: "the sampler has not been started"}
		return
	}
	// The clock is read after the sample, so that no age is below zero.
	now := s.now()
	for i := range out.Readings[:Lag] {
		r := &out.Readings[i]
		r.Age += time.Duration(now - at)
	}
	lag.Value = float64(now-at) / 1e6
	lag.Limit = float64(s.stale) / 1e6
	if now-at > s.stale {
		out.alarms |= 1 << Lag
		if s.state.Load() == closed {
			lag.Of = "closed"
		}
	}
}
