package pressure

import (
	"runtime"
	"time"
)

// How often the slower signals are read, and over which time the quicker ones are taken. Each is at least one period.
const (
	cpuSpan       = 800 * time.Millisecond
	throttledSpan = time.Second
	stallSpan     = time.Second
	runnableSpan  = 400 * time.Millisecond
	latencySpan   = 2 * time.Second
	latencyEvery  = 500 * time.Millisecond
	memoryEvery   = 500 * time.Millisecond
	limitsEvery   = time.Second
	hostEvery     = time.Second // the host's CPU and memory, and GC
	loadEvery     = 5 * time.Second
)

type machineConfig struct {
	period time.Duration
	root   string // stands before every path of a kernel file; "" but in tests
}

// machine is the Source that reads this machine. It is put together from gauges, each of which knows one thing; what several of
// them need (steal, what the runtime could free) travels through its fields.
type machine struct {
	now      time.Duration
	readings Readings
	at       [numSignals]time.Duration

	scheduler scheduler
	heap      heap
	host      host
	cgroups   *cgroups // nil where there is no such thing
	process   process

	limits, memory, virtual, times, load schedule

	// Sentences are made when a number changes, not at each look.
	goLimit, hostMemory     float64
	ofGoLimit, ofHostMemory string

	hostUsed float64 // of hostMemory, when it was last looked at
	hostWhy  string  // it was not to be had
	hostIs   State
}

// schedule says when something slow is due: at once, then after its phase, so that what is slow does not come all in one
// sample, then regularly.
type schedule struct{ every, phase, next time.Duration }

func (s *schedule) due(now time.Duration) bool {
	// Ticks come early as often as late.
	if now < s.next-s.every/50 {
		return false
	}
	step := s.every
	if s.phase > 0 {
		step, s.phase = s.phase, 0
	}
	if s.next += step; s.next <= now {
		s.next = now + step
	}
	return true
}

func newMachine(cfg machineConfig) *machine {
	m := &machine{
		scheduler: newScheduler(cfg.period),
		heap:      newHeap(),
		host:      newHost(cfg.root),
		process:   newProcess(cfg.period),
		limits:    schedule{every: limitsEvery},
		memory:    schedule{every: memoryEvery, phase: 300 * time.Millisecond},
		virtual:   schedule{every: hostEvery, phase: 800 * time.Millisecond},
		times:     schedule{every: hostEvery, phase: 600 * time.Millisecond},
		load:      schedule{every: loadEvery, phase: 5900 * time.Millisecond},
	}
	if runtime.GOOS == "linux" {
		m.cgroups = newCgroups(cfg.root, cfg.period)
	}
	return m
}

// Read implements Source.
func (m *machine) Read(now time.Duration, r *Readings) {
	m.now = now
	m.scheduler.read(m)
	if m.times.due(now) {
		m.heap.readGC(m)
		m.host.readCPU(m)
	}
	if m.limits.due(now) {
		m.process.may = float64(m.process.cpus())
		if m.cgroups != nil {
			m.cgroups.look(now)
		}
	}
	m.readCPU()
	m.readStall()
	if m.memory.due(now) {
		m.readMemory()
	}
	if m.load.due(now) {
		m.host.readLoad(m)
	}
	for i := range m.readings {
		m.readings[i].Age = now - m.at[i]
	}
	*r = m.readings
}

// Close implements io.Closer.
func (m *machine) Close() error {
	if m.cgroups != nil {
		m.cgroups.close()
	}
	return nil
}

func (m *machine) set(s Signal, r Reading) {
	m.readings[s] = r
	m.at[s] = m.now
}

func (m *machine) known(s Signal, value float64, from string) {
	m.set(s, Reading{State: Known, Value: value, From: from})
}

func (m *machine) absent(s Signal, state State, from, why string) {
	m.set(s, Reading{State: state, From: from, Why: why})
}
