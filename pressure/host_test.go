package pressure

import (
	"context"
	"errors"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/load"
	"github.com/shirou/gopsutil/v3/mem"
)

func TestHostCPUDifferences(t *testing.T) {
	m := ownMachine(t)
	var next []cpu.TimesStat
	var err error
	m.host.times = func(context.Context) ([]cpu.TimesStat, error) { return next, err }
	step := func(s ...cpu.TimesStat) Reading {
		next = s
		m.now += time.Second
		m.host.readCPU(m)
		return m.readings[HostCPU]
	}
	if r := step(cpu.TimesStat{User: 100, Idle: 100}); r.State != Pending {
		t.Errorf("first: %+v", r)
	}
	if r := step(cpu.TimesStat{User: 103, Idle: 101, Guest: 50}); r.State != Known || r.Value != 75 {
		t.Errorf("a guest's time is in User already: %+v", r)
	}
	if r := step(cpu.TimesStat{User: 104, Idle: 101, Iowait: 1, Steal: 2}); r.Value != 75 || m.readings[Steal].Value != 50 {
		t.Errorf("steal is not idle, waiting for a disk is: %+v, %+v", r, m.readings[Steal])
	}
	before := m.at[HostCPU]
	if r := step(next...); r.State != Known || r.Value != 75 || m.at[HostCPU] != before {
		t.Errorf("without a tick the last figure stands, and ages: %+v", r)
	}
	if r := step(cpu.TimesStat{User: 1, Idle: 1}); r.State != Known || r.Value != 75 {
		t.Errorf("counters that went back: %+v", r)
	}
	if r := step(cpu.TimesStat{User: 1, Idle: 3}); r.Value != 0 {
		t.Errorf("and on from there: %+v", r)
	}
	if r := step(); r.State != Unknown || r.Why == "" || m.host.steal != 0 {
		t.Errorf("an empty list without an error: %+v", r)
	}
	if r := step(cpu.TimesStat{User: 9, Idle: 9}); r.State != Pending {
		t.Errorf("back again: %+v", r)
	}
	err = errors.New("not implemented yet")
	if r := step(); r.State != Unsupported {
		t.Errorf("not on this platform: %+v", r)
	}
	err = errors.New("permission denied")
	if r := step(); r.State != Unknown || r.Why != "permission denied" {
		t.Errorf("unreadable: %+v", r)
	}
}

func TestHostMemory(t *testing.T) {
	if runtime.GOOS == "darwin" && !cgo {
		t.Skip("unsupported here")
	}
	for _, c := range []struct {
		v     *mem.VirtualMemoryStat
		err   error
		state State
		used  float64
	}{
		{&mem.VirtualMemoryStat{Total: 100, Available: 40, UsedPercent: math.NaN()}, nil, Known, 60},
		{&mem.VirtualMemoryStat{UsedPercent: math.NaN()}, nil, Unknown, 0},
		{&mem.VirtualMemoryStat{Total: 1, Available: 2}, nil, Unknown, 0},
		{nil, nil, Unknown, 0},
		{nil, errors.New("no"), Unknown, 0},
		{nil, errors.New("not implemented yet"), Unsupported, 0},
	} {
		h := host{virtual: func(context.Context) (*mem.VirtualMemoryStat, error) { return c.v, c.err }}
		used, _, state, why := h.readMemory()
		if state != c.state || used != c.used || (state == Known) != (why == "") {
			t.Errorf("%+v, %v: %v %v %q", c.v, c.err, used, state, why)
		}
	}
}

func TestHostLoad(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("unsupported here")
	}
	m := ownMachine(t)
	for _, c := range []struct {
		a     *load.AvgStat
		err   error
		state State
	}{
		{&load.AvgStat{Load1: 3, Load5: 2, Load15: 1}, nil, Known},
		{nil, nil, Unknown},
		{nil, errors.New("no"), Unknown},
		{nil, errors.New("not implemented yet"), Unsupported},
	} {
		m.host.average = func(context.Context) (*load.AvgStat, error) { return c.a, c.err }
		m.host.readLoad(m)
		for i, s := range []Signal{Load1, Load5, Load15} {
			if r := m.readings[s]; r.State != c.state || c.state == Known && r.Value != float64(3-i) {
				t.Errorf("%v with %+v, %v: %+v", s, c.a, c.err, r)
			}
		}
	}
}

func TestAPanicInsideIsAnError(t *testing.T) {
	_, err := careful(func() (int, error) { return []int{}[len(t.Name())], nil })
	if err == nil {
		t.Error("no error")
	}
	if state, why := failure(err); state != Unknown || why == "" {
		t.Errorf("%v %q", state, why)
	}
}

// The process's CPU time moves when the process works.
func TestProcessCPUTime(t *testing.T) {
	first, ok := cpuTime()
	if !ok {
		t.Skip("unknown on this platform")
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		if now, ok := cpuTime(); ok && now >= first+20*time.Millisecond {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("ten seconds of work cost no CPU time")
		}
	}
	if n := allowedCPUs(); n < 1 || n > 1<<16 {
		t.Errorf("%d CPUs", n)
	}
}
