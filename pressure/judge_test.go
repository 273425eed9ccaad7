package pressure

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// feed judges one reading after another and returns the sentences of the reasons.
type bench struct {
	judge    judge
	readings Readings
	flags    uint64
	sample   Sample
}

func newBench(l Limits) *bench {
	b := &bench{judge: newJudge(l.WithDefaults())}
	m := NewManual()
	m.Read(0, &b.readings)
	return b
}

func (b *bench) look() string {
	flags, alarms := b.judge.look(&b.readings)
	b.flags = flags
	b.sample = Sample{Number: 1, Readings: b.readings, alarms: alarms, limits: &b.judge.limits}
	b.sample.Readings[Lag] = Reading{State: Known}
	var list []string
	for _, r := range b.sample.Reasons() {
		list = append(list, r.String())
	}
	return strings.Join(list, "; ")
}

func (b *bench) set(s Signal, v float64) *bench {
	b.readings[s] = Reading{State: Known, Value: v}
	return b
}

func TestHysteresis(t *testing.T) {
	for _, c := range []struct {
		signal Signal
		values []float64
		alarms string // one letter for each value
	}{
		{CPU, []float64{85, 94.9, 95, 94, 90.3, 90.2, 94.9, 120}, "..AAA..A"},
		{Memory, []float64{89.9, 90, 86, 85.4, 89, 91}, ".AA..A"},
		{Throttled, []float64{20, 25, 13, 12, 24, 100}, ".AA..A"},
		{Runnable, []float64{1.9, 2, 1, 0.9, 1.9, 500}, ".AA..A"},
	} {
		b := newBench(Limits{})
		var got []string
		for _, v := range c.values {
			b.set(c.signal, v).look()
			if b.flags&normal == 0 {
				got = append(got, "A")
			} else {
				got = append(got, ".")
			}
			if tight := b.flags&cpuTight != 0; tight != (b.flags&normal == 0 && c.signal != Memory) {
				t.Errorf("%v %v: cpu tight is %v", c.signal, v, tight)
			}
			if tight := b.flags&memoryTight != 0; tight != (b.flags&normal == 0 && c.signal == Memory) {
				t.Errorf("%v %v: memory tight is %v", c.signal, v, tight)
			}
		}
		if s := strings.Join(got, ""); s != c.alarms {
			t.Errorf("%v: %s, want %s", c.signal, s, c.alarms)
		}
	}
}

// Whatever the values, a signal goes on at its limit, off below its release and keeps what it was in between.
func TestHysteresisAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Float64Range(1, 100).Draw(t, "limit")
		b := newBench(Limits{CPU: limit})
		alarm := false
		for _, v := range rapid.SliceOfN(rapid.Float64Range(0, 150), 1, 50).Draw(t, "values") {
			b.set(CPU, v).look()
			switch {
			case v >= limit:
				alarm = true
			case v < limit*0.95:
				alarm = false
			}
			if got := b.flags&cpuTight != 0; got != alarm {
				t.Fatalf("at %v, limit %v: %v", v, limit, got)
			}
		}
	})
}

func TestReasonsInWords(t *testing.T) {
	b := newBench(Limits{CPU: 80, HostCPU: 90, Latency: 10, Load1: 8})
	if got := b.set(HostCPU, 10).set(Latency, 0.04).set(Load1, 3).look(); got != "" {
		t.Errorf("calm: %q", got)
	}
	b.readings[CPU] = Reading{State: Known, Value: 83.2, Used: 0.416, Limit: 0.5, Of: "quota"}
	b.readings[Memory] = Reading{State: Known, Value: 93.4, Of: "the cgroup's 512 MiB"}
	b.set(Throttled, 40).set(Runnable, 3.25).set(HostCPU, 99).set(Latency, 12.4).set(Load1, 9.96)
	const want = "memory 93 % of the cgroup's 512 MiB, limit 90 %; cpu 83 % of quota, limit 80 %; throttled 40 %, limit 25 %; " +
		"runnable 3.2 per P, limit 2 per P; sched_latency 12 ms, limit 10 ms; host_cpu 99 %, limit 90 %; load1 10, limit 8"
	if got := b.look(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	r := b.sample.Reasons()[1]
	if r.Signal != CPU || r.State != Known || r.Value != 83.2 || r.Limit != 80 || r.Clear != 76 {
		t.Errorf("%+v", r)
	}
	b = newBench(Limits{})
	b.set(CPU, 99).look()
	if got := b.set(CPU, 92).look(); got != "cpu 92 %, limit 95 %, normal again below 90 %" {
		t.Errorf("between the limits: %q", got)
	}
}

func TestUnknownIsNotNormal(t *testing.T) {
	for _, s := range []Signal{CPU, Throttled, Memory, Runnable} {
		b := newBench(Limits{})
		b.readings[s] = Reading{Why: "cpu.max makes no sense"}
		if got := b.look(); b.flags != 0 || got != s.String()+" unknown: cpu.max makes no sense" {
			t.Errorf("%v: flags %b, %q", s, b.flags, got)
		}
	}
	// A veto counts only where it was asked for, and then it must be known.
	b := newBench(Limits{})
	b.readings[HostCPU] = Reading{Why: "gone"}
	b.set(Load1, 1000).set(GC, 100)
	if got := b.look(); b.flags != normal {
		t.Errorf("vetoes that nobody switched on: %q", got)
	}
	b = newBench(Limits{HostCPU: 90})
	b.readings[HostCPU] = Reading{Why: "gone"}
	if b.look(); b.flags != 0 {
		t.Error("an unknown veto is normal")
	}
}

func TestAbsentStandsAside(t *testing.T) {
	for _, state := range []State{Pending, Unsupported} {
		b := newBench(Limits{HostCPU: 90})
		for _, s := range []Signal{CPU, Throttled, Memory, HostCPU} {
			b.readings[s] = Reading{State: state, Why: "not here"}
		}
		if got := b.look(); b.flags != normal {
			t.Errorf("%v: %q", state, got)
		}
		if b.set(Runnable, 3).look(); b.flags != cpuTight {
			t.Errorf("%v: the scheduler's signal does not stand in", state)
		}
	}
}

func TestOff(t *testing.T) {
	b := newBench(Limits{CPU: Off, Throttled: Off, Memory: Off, Runnable: Off})
	b.readings[CPU] = Reading{Why: "gone"}
	b.set(Memory, 100).set(Runnable, 100).set(Throttled, 100)
	if got := b.look(); b.flags != normal {
		t.Errorf("all off: %q", got)
	}
}

// A source that says NaN is one that does not know.
func TestNoNumber(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		b := newBench(Limits{})
		if got := b.set(Memory, v).look(); b.flags != 0 || got != "memory unknown: the source gave no number" {
			t.Errorf("%v: %q", v, got)
		}
	}
}

// An alarm does not outlive the knowledge that it came from.
func TestAlarmEndsWhenUnknown(t *testing.T) {
	b := newBench(Limits{})
	b.set(CPU, 99).look()
	b.readings[CPU] = Reading{Why: "gone"}
	if b.look(); b.flags&(cpuTight|normal) != 0 {
		t.Errorf("flags %b", b.flags)
	}
	if b.set(CPU, 92).look(); b.flags != normal {
		t.Error("it came back in alarm")
	}
}
