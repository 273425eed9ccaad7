package pressure

import (
	"fmt"
	"path/filepath"
	"strconv"
	"time"
)

// cpuLevel is one cgroup that may have a CPU quota.
type cpuLevel struct {
	v2        bool
	dir, from string

	max    kernelFile // v2: quota and period
	quota  kernelFile // v1
	every  kernelFile // v1: the period
	stat   kernelFile // throttled periods, with v2 also the usage
	usage  kernelFile // v1, in another hierarchy
	orphan bool       // v1: the other hierarchy has no such group, the process's own usage must do

	cpus      float64 // the quota; 0: none
	period    time.Duration
	err       error // of the limit
	used      ring  // seconds
	throttled ring  // periods
	uncounted bool  // there is a quota, but nobody counts throttled periods
}

func newCPULevel(v2 bool, g group, usage string, period time.Duration) *cpuLevel {
	file := func(name string) kernelFile { return kernelFile{path: filepath.Join(g.dir, name)} }
	l := &cpuLevel{
		v2:        v2,
		dir:       g.dir,
		from:      "cgroup v1 " + g.path,
		stat:      file("cpu.stat"),
		used:      newRing(cpuSpan, period),
		throttled: newRing(throttledSpan, period),
	}
	if v2 {
		l.from = "cgroup v2 " + g.path
		l.max = file("cpu.max")
		return l
	}
	l.quota, l.every = file("cpu.cfs_quota_us"), file("cpu.cfs_period_us")
	if l.orphan = usage == ""; !l.orphan {
		l.usage = kernelFile{path: filepath.Join(usage, "cpuacct.usage")}
	}
	return l
}

func (l *cpuLevel) close() {
	for _, f := range []*kernelFile{&l.max, &l.quota, &l.every, &l.stat, &l.usage} {
		f.close()
	}
}

// readLimit keeps the quota. A group without the file has no quota: the controller is not switched on for it.
func (l *cpuLevel) readLimit(c *cgroups) {
	quota, period, err := l.limit(c.buf)
	l.err = err
	cpus := 0.0
	if err == nil && quota > 0 {
		cpus = float64(quota) / float64(period)
		l.period = time.Duration(period) * time.Microsecond
	}
	if cpus > 0 && l.cpus == 0 {
		l.used.reset()
		l.throttled.reset()
	}
	l.cpus = cpus
	c.broken = c.broken || err != nil
}

func (l *cpuLevel) limit(buf []byte) (quota, period uint64, err error) {
	if l.v2 {
		b, err := l.max.read(buf)
		if missing(err) {
			return 0, 0, nil
		} else if err != nil {
			return 0, 0, err
		}
		quota, period, _, ok := parseCPUMax(b)
		if !ok {
			return 0, 0, malformed(l.max.path, trim(b))
		}
		return quota, period, nil
	}
	quota, limited, err := l.quota.number(buf, "-1")
	if missing(err) {
		return 0, 0, nil
	} else if err != nil || !limited {
		return 0, 0, err
	}
	period, _, err = l.every.number(buf, "")
	if err == nil && (quota == 0 || period == 0) {
		err = fmt.Errorf("%s: a quota of %d us in a period of %d us makes no sense", l.dir, quota, period)
	}
	return quota, period, err
}

// readUse adds a point to what was used and throttled.
func (l *cpuLevel) readUse(m *machine, own float64) error {
	b, err := l.stat.read(m.cgroups.buf)
	l.uncounted = missing(err) && !l.v2 // sandboxes leave it out
	if !l.uncounted {
		if err != nil {
			return err
		}
		throttled, ok := parseField(b, "nr_throttled")
		if !ok {
			return malformed(l.stat.path, b)
		}
		l.throttled.add(m.now, float64(throttled))
	}
	used := own
	switch {
	case l.v2:
		us, ok := parseField(b, "usage_usec")
		if !ok {
			return malformed(l.stat.path, b)
		}
		used = float64(us) / 1e6
	case !l.orphan:
		ns, _, err := l.usage.number(m.cgroups.buf, "")
		if err != nil {
			return err
		}
		used = float64(ns) / 1e9
	}
	l.used.add(m.now, used)
	return nil
}

// readCPU finds the fullest of the process's limits.
func (m *machine) readCPU() {
	p := &m.process
	own, ok := p.times()
	if ok {
		p.used.add(m.now, own.Seconds())
	}
	cpu := fullest{}
	if c := m.cgroups; c != nil {
		if c.state == Unknown {
			cpu.fail(c.why)
		}
		m.readThrottled(&cpu, own.Seconds())
	}
	if ok {
		may := min(m.scheduler.procs, p.may)
		if p.of == "" || p.ofCPUs != may {
			p.ofCPUs, p.of = may, cpusText(int(may))
		}
		cpu.add(&p.used, may*(1-m.host.steal), p.of, "process")
	} else {
		cpu.absent = "the CPU time of a process is not known on this platform"
	}
	m.set(CPU, cpu.reading())
}

// readThrottled also adds each group with a quota to cpu.
func (m *machine) readThrottled(cpu *fullest, own float64) {
	var throttled Reading
	counted, pending := false, false
	for _, l := range m.cgroups.cpu {
		if l.err != nil {
			cpu.fail(l.err.Error())
			throttled, counted = Reading{Why: l.err.Error()}, true
			break
		}
		if l.cpus == 0 {
			continue
		}
		if err := l.readUse(m, own); err != nil {
			m.cgroups.broken = true
			cpu.fail(err.Error())
			throttled, counted = Reading{Why: err.Error()}, true
			break
		}
		// A hypervisor's steal counts when the quota is more than the machine has left.
		cpu.add(&l.used, min(l.cpus, m.process.may*(1-m.host.steal)), "quota", l.from)
		if l.uncounted {
			continue
		}
		counted = true
		n, over, ok := l.throttled.growth()
		if !ok {
			pending = true
			continue
		}
		share := 100 * min(1, n*float64(l.period)/float64(over))
		if throttled.State != Known || share > throttled.Value {
			throttled = Reading{State: Known, Value: share, From: l.from}
		}
	}
	switch {
	case m.cgroups.state == Unknown:
		m.absent(Throttled, Unknown, "cgroup", m.cgroups.why)
	case !counted:
		m.absent(Throttled, Unsupported, "cgroup", "there is no CPU quota that would throttle")
	case throttled.Why != "":
		m.set(Throttled, throttled)
	case pending:
		m.absent(Throttled, Pending, "cgroup", needsASecond)
	default:
		m.set(Throttled, throttled)
	}
}

func cpusText(n int) string {
	if n == 1 {
		return "1 CPU"
	}
	return strconv.Itoa(n) + " CPUs"
}

const needsASecond = "needs a second look"

// fullest gathers what is used of several limits, and keeps the one with least room. One that cannot be read makes the
// whole unknown: it might be the tightest.
type fullest struct {
	best    Reading
	pending bool
	why     string // a limit could not be read
	absent  string // and there was nothing to add
}

func (f *fullest) fail(why string) {
	if f.why == "" {
		f.why = why
	}
}

// add takes a ring of used seconds and how many seconds may be used in one.
func (f *fullest) add(used *ring, limit float64, of, from string) {
	by, over, ok := used.growth()
	if !ok {
		f.pending = true
		return
	}
	f.put(by/over.Seconds(), limit, of, from)
}

func (f *fullest) put(used, limit float64, of, from string) {
	if limit <= 0 {
		return
	}
	if v := 100 * used / limit; f.best.State != Known || v > f.best.Value {
		f.best = Reading{State: Known, Value: v, Used: used, Limit: limit, Of: of, From: from}
	}
}

func (f *fullest) reading() Reading {
	switch {
	case f.why != "":
		return Reading{State: Unknown, Why: f.why}
	case f.pending:
		return Reading{State: Pending, Why: needsASecond}
	case f.best.State != Known:
		return Reading{State: Unsupported, Why: f.absent}
	}
	return f.best
}
