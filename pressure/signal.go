package pressure

import (
	"iter"
	"time"
)

// Signal names one thing that the sampler looks at.
type Signal uint8

// The signals. "Required" ones decide whether the machine is normal, "vetoes" only where a limit was set for them.
const (
	// CPU is the CPU time used, in per cent of what may be used, over the last 800 ms. It is the fullest of: each cgroup
	// with a quota that the process is in, from its own up to the root, and the process against its CPUs (the smaller of GOMAXPROCS
	// and the CPUs that it may run on). Time that a hypervisor steals is taken off what may be used. Required.
	CPU Signal = iota
	// Throttled is the share of the last second, in per cent, that lay in quota periods in which the cgroup was stopped
	// because its quota was used up. Required where there is a quota, unsupported elsewhere.
	Throttled
	// Memory is the memory used, in per cent of the tightest limit: of each cgroup with a limit (without swap and without file
	// cache that is not in active use) and of GOMEMLIMIT; the host's where no cgroup has one. Read every 500 ms. Required.
	Memory
	// Runnable is the number of goroutines that are ready and wait for a CPU, per P, as a mean over 400 ms. A single P counts
	// as two. Required.
	Runnable
	// Latency is how long goroutines waited for a CPU, in milliseconds: the 99th percentile of the last two seconds, from
	// the one goroutine in eight that the runtime samples. Veto.
	Latency
	// HostCPU is the host's CPU, in per cent of all its CPUs, over one second. It sees everybody's work. Veto.
	HostCPU
	// Steal is the share of the host's CPU time that its hypervisor gave to others, in per cent, over one second.
	Steal
	// Load1, Load5 and Load15 are the host's load averages, read every five seconds. Load1 is a veto.
	Load1
	Load5
	Load15
	// GoLoad1, GoLoad5 and GoLoad15 are running and runnable goroutines of this process, averaged as the kernel averages its
	// load: a value every five seconds, decaying over 1, 5 and 15 minutes, starting at 0. GoLoad1 is a veto.
	GoLoad1
	GoLoad5
	GoLoad15
	// PressureCPU and PressureMemory are the share of the last second, in per cent, in which something in the process's own
	// cgroup waited for CPU or memory (the kernel's "some"; cgroup v2 only). Vetoes.
	PressureCPU
	PressureMemory
	// GC is the share of the process's CPU time that the garbage collector took between its last two runs, in per cent. Veto.
	GC
	// Lag is the age of the newest sample in milliseconds. It is worked out when somebody asks. Required.
	Lag

	numSignals = iota
)

type signalInfo struct{ name, unit string }

var signals = [numSignals]signalInfo{
	CPU:            {"cpu", " %"},
	Throttled:      {"throttled", " %"},
	Memory:         {"memory", " %"},
	Runnable:       {"runnable", " per P"},
	Latency:        {"sched_latency", " ms"},
	HostCPU:        {"host_cpu", " %"},
	Steal:          {"steal", " %"},
	Load1:          {"load1", ""},
	Load5:          {"load5", ""},
	Load15:         {"load15", ""},
	GoLoad1:        {"go_load1", ""},
	GoLoad5:        {"go_load5", ""},
	GoLoad15:       {"go_load15", ""},
	PressureCPU:    {"psi_cpu", " %"},
	PressureMemory: {"psi_memory", " %"},
	GC:             {"gc", " %"},
	Lag:            {"lag", " ms"},
}

// Signals yields every signal in order.
func Signals() iter.Seq[Signal] {
	return func(yield func(Signal) bool) {
		for s := range Signal(numSignals) {
			if !yield(s) {
				return
			}
		}
	}
}

// String is a stable short name, fit for a metric's label: "cpu", "psi_memory".
func (s Signal) String() string {
	if int(s) >= numSignals {
		return "invalid"
	}
	return signals[s].name
}

// Unit is "%", "per P", "ms" or "", for a load average.
func (s Signal) Unit() string {
	if int(s) >= numSignals || signals[s].unit == "" {
		return ""
	}
	return signals[s].unit[1:]
}

// State says what a Reading is worth.
type State uint8

const (
	// Unknown means that the source is there but could not be read, or made no sense. Why says which and how.
	Unknown State = iota
	// Known means that Value holds.
	Known
	// Pending means that it needs a second look and will be known within a second or two of the start (GC: after two collections).
	Pending
	// Unsupported means that this platform, or this process's place on it, has no such thing. Nothing is wrong.
	Unsupported
)

// String returns "unknown", "known", "pending" or "unsupported".
func (s State) String() string {
	switch s {
	case Known:
		return "known"
	case Pending:
		return "pending"
	case Unsupported:
		return "unsupported"
	default:
		return "unknown"
	}
}

// Reading is what one signal says. The zero value is Unknown.
type Reading struct {
	State State
	// Value is in the signal's unit. It means nothing unless State is Known.
	Value float64
	// Used and Limit are what a percentage was made of: CPUs for CPU, bytes for Memory. 0 elsewhere.
	Used, Limit float64
	// Age is the time since the signal was read.
	Age time.Duration
	// Of says what a percentage is a part of, as in "cpu 83 % of quota".
	Of string
	// From says where it was read: "cgroup v2 /app", "process", "host".
	From string
	// Why is one sentence that says why the reading is not Known.
	Why string
}

// Readings holds one Reading for each Signal.
type Readings [numSignals]Reading
