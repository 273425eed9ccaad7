package pressure

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestConfig(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, ""},
		{Config{Period: MinPeriod}, ""},
		{Config{Limits: Limits{CPU: 100, Throttled: Off, Memory: 99.5, Runnable: 0.1, HostCPU: 90, Load1: 64, GC: 30}}, ""},
		{Config{Period: time.Millisecond}, "pressure: Period is 1ms, must be 10ms..10s"},
		{Config{Period: -time.Second}, "pressure: Period is -1s, must be 10ms..10s"},
		{Config{Period: time.Minute}, "pressure: Period is 1m0s, must be 10ms..10s"},
		{Config{Limits: Limits{CPU: 0.8}}, "pressure: Limits.CPU is 0.8, must be 1..1000 %, or -1 (off)"},
		{Config{Limits: Limits{Memory: -2}}, "pressure: Limits.Memory is -2, must be 1..1000 %, or -1 (off)"},
		{Config{Limits: Limits{Runnable: 1e6}}, "pressure: Limits.Runnable is 1e+06, must be 0.1..10000 per P, or -1 (off)"},
		{Config{Limits: Limits{Load1: math.NaN()}}, "pressure: Limits.Load1 is NaN, must be 0.1..100000, or -1 (off)"},
		{Config{Limits: Limits{Throttled: 101, GC: 101}}, "pressure: Limits.Throttled is 101, must be 1..100 %, or -1 (off)\n" +
			"pressure: Limits.GC is 101, must be 1..100 %, or -1 (off)"},
	} {
		c.cfg.Source = NewManual()
		s, err := New(c.cfg)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v:\ngot  %s\nwant %s", c.cfg, got, c.want)
		}
		if (s == nil) != (err != nil) {
			t.Errorf("%+v: %v, %v", c.cfg, s, err)
		}
	}
}

// The table in the documentation of Limits and the code say the same, and every signal that can be judged is in it.
func TestDefaults(t *testing.T) {
	got := Limits{}.WithDefaults()
	want := Limits{CPU: 95, Throttled: 25, Memory: 90, Runnable: 2, Latency: Off, HostCPU: Off, Load1: Off, GoLoad1: Off,
		PressureCPU: Off, PressureMemory: Off, GC: Off}
	if got != want {
		t.Errorf("%+v", got)
	}
	if again := got.WithDefaults(); again != got {
		t.Errorf("twice is %+v", again)
	}
}

func TestSignalNames(t *testing.T) {
	seen := map[string]bool{}
	for s := range Signals() {
		name := s.String()
		if name == "" || name == "invalid" || seen[name] || strings.ContainsAny(name, " -.") {
			t.Errorf("signal %d is called %q", s, name)
		}
		seen[name] = true
	}
	if len(seen) != numSignals || Signal(200).String() != "invalid" || Signal(200).Unit() != "" {
		t.Errorf("%d names", len(seen))
	}
	for s, unit := range map[Signal]string{CPU: "%", Runnable: "per P", Latency: "ms", Load1: ""} {
		if s.Unit() != unit {
			t.Errorf("the unit of %v is %q", s, s.Unit())
		}
	}
	for s := range Signals() {
		if s == Memory {
			break // an iterator that is left early stops
		}
	}
	for state, name := range map[State]string{Unknown: "unknown", Known: "known", Pending: "pending", Unsupported: "unsupported", State(9): "unknown"} {
		if state.String() != name {
			t.Errorf("%d is %q", state, state)
		}
	}
}

func TestManual(t *testing.T) {
	m := NewManual()
	m.Set(CPU, 42)
	m.Set(Lag, 1) // the sampler's own
	m.Put(Memory, Reading{Why: "a drill"})
	var r Readings
	m.Read(0, &r)
	if r[CPU].Value != 42 || r[CPU].State != Known || r[Memory].State != Unknown || r[Lag].State == Known || r[GC].State != Unsupported {
		t.Errorf("%+v", r)
	}
}
