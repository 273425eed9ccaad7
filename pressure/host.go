package pressure

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/shirou/gopsutil/v3/common"
	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/load"
	"github.com/shirou/gopsutil/v3/mem"
)

// host reads the whole host through gopsutil. Its figures include everybody's work. cpu.Percent would keep its last look
// in a variable of the whole process, where the next caller ruins it, so the differences are made here.
type host struct {
	ctx context.Context // says where /proc is

	times   func(context.Context) ([]cpu.TimesStat, error)
	average func(context.Context) (*load.AvgStat, error)
	virtual func(context.Context) (*mem.VirtualMemoryStat, error)

	last   cpu.TimesStat
	looked bool
	steal  float64 // share of the host's time, 0..1
}

const fromHost = "host"

func newHost(root string) host {
	h := host{
		ctx: context.Background(),
		times: func(ctx context.Context) ([]cpu.TimesStat, error) {
			return careful(func() ([]cpu.TimesStat, error) { return cpu.TimesWithContext(ctx, false) })
		},
		average: func(ctx context.Context) (*load.AvgStat, error) {
			return careful(func() (*load.AvgStat, error) { return load.AvgWithContext(ctx) })
		},
		virtual: func(ctx context.Context) (*mem.VirtualMemoryStat, error) {
			return careful(func() (*mem.VirtualMemoryStat, error) { return mem.VirtualMemoryWithContext(ctx) })
		},
	}
	if root != "" {
		h.ctx = context.WithValue(h.ctx, common.EnvKey, common.EnvMap{common.HostProcEnvKey: filepath.Join(root, "proc")})
	}
	return h
}

func (h *host) readCPU(m *machine) {
	list, err := h.times(h.ctx)
	// Without /proc/stat gopsutil returns an empty list and no error.
	if err == nil && len(list) == 0 {
		err = errors.New("the host's CPU times cannot be read")
	}
	if err != nil {
		h.looked, h.steal = false, 0
		state, why := failure(err)
		m.absent(HostCPU, state, fromHost, why)
		m.absent(Steal, state, fromHost, why)
		return
	}
	now, before := list[0], h.last
	h.last = now
	all := sum(now) - sum(before)
	switch {
	case !h.looked:
		h.looked = true
		m.absent(HostCPU, Pending, fromHost, needsASecond)
		m.absent(Steal, Pending, fromHost, needsASecond)
	case all > 0:
		idle := now.Idle + now.Iowait - before.Idle - before.Iowait
		m.known(HostCPU, percent(all-idle, all), fromHost)
		steal := percent(now.Steal-before.Steal, all)
		h.steal = steal / 100
		m.known(Steal, steal, fromHost)
	default: // no tick since, or a counter that went back: the last figures stand, and age
	}
}

// sum leaves out guests: the time they get is in User and Nice already.
func sum(t cpu.TimesStat) float64 {
	return t.User + t.Nice + t.System + t.Idle + t.Iowait + t.Irq + t.Softirq + t.Steal
}

func percent(part, of float64) float64 { return 100 * min(1, max(0, part/of)) }

func (h *host) readLoad(m *machine) {
	signals := [3]Signal{Load1, Load5, Load15}
	absent := func(state State, why string) {
		for _, s := range signals {
			m.absent(s, state, fromHost, why)
		}
	}
	if runtime.GOOS == "windows" {
		// gopsutil would start a goroutine that never ends, for an estimate that begins at 0.
		absent(Unsupported, "Windows has no load average; go_load1 is one of this process")
		return
	}
	a, err := h.average(h.ctx)
	if err == nil && a == nil {
		err = errors.New("the load average cannot be read")
	}
	if err != nil {
		absent(failure(err))
		return
	}
	for i, v := range [3]float64{a.Load1, a.Load5, a.Load15} {
		m.known(signals[i], v, fromHost)
	}
}

// readMemory returns the host's memory, and what of it is taken.
func (h *host) readMemory() (used, total float64, state State, why string) {
	if runtime.GOOS == "darwin" && !cgo {
		return 0, 0, Unsupported, "without cgo, gopsutil would start a program for each look at this system's memory"
	}
	v, err := h.virtual(h.ctx)
	if err == nil && (v == nil || v.Total == 0 || v.Available > v.Total) {
		err = errors.New("the host's memory makes no sense")
	}
	if err != nil {
		state, why = failure(err)
		return 0, 0, state, why
	}
	// Not v.UsedPercent: it can be NaN, and it does not count what the kernel could free at once.
	return float64(v.Total - v.Available), float64(v.Total), Known, ""
}

// careful turns a panic into an error: gopsutil takes the form of kernel files for granted here and there, and an empty
// /proc/loadavg would end the process.
func careful[T any](read func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("gopsutil cannot make sense of it: %v", p)
		}
	}()
	return read()
}

// failure tells "there is no such thing here" from "it could not be read".
func failure(err error) (State, string) {
	if err.Error() == "not implemented yet" { // gopsutil's error is in an internal package
		return Unsupported, "gopsutil does not know this on " + runtime.GOOS + describeCgo()
	}
	return Unknown, err.Error()
}

func describeCgo() string {
	if cgo {
		return ""
	}
	return " without cgo"
}
