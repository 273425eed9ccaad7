package pressure

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Whatever stands in a kernel file, the signal that needs it is unknown with a reason, and the others go on.
func TestMalformedFiles(t *testing.T) {
	const (
		v2 = "sys/fs/cgroup/"
		v1 = "sys/fs/cgroup/cpu,cpuacct/"
		me = "sys/fs/cgroup/memory/"
	)
	for _, c := range []struct {
		tree, file, content string
		signals             []Signal
		why                 string
	}{
		{"v2", v2 + "cpu.max", "50000 0\n", []Signal{CPU, Throttled}, "makes no sense"},
		{"v2", v2 + "cpu.max", "0 100000\n", []Signal{CPU, Throttled}, "makes no sense"},
		{"v2", v2 + "cpu.max", "-1 100000\n", []Signal{CPU, Throttled}, "makes no sense"},
		{"v2", v2 + "cpu.max", "50000\n", []Signal{CPU, Throttled}, "makes no sense"},
		{"v2", v2 + "cpu.max", "half a one\n", []Signal{CPU, Throttled}, "makes no sense"},
		{"v2", v2 + "cpu.max", "99999999999999999999999 100000\n", []Signal{CPU, Throttled}, "makes no sense"},
		{"v2", v2 + "cpu.max", "", []Signal{CPU, Throttled}, "makes no sense"},
		{"v2", v2 + "cpu.max", "\x00\xff\n", []Signal{CPU, Throttled}, "makes no sense"},
		{"v2", v2 + "cpu.stat", "", []Signal{CPU, Throttled}, "makes no sense"},
		{"v2", v2 + "cpu.stat", "nr_throttled 3\nusage_usec many\n", []Signal{CPU, Throttled}, "makes no sense"},
		{"v2", v2 + "cpu.stat", "usage_usec 1000000\n", []Signal{CPU, Throttled}, "makes no sense"},
		{"v2", v2 + "cpu.stat", strings.Repeat("usage_usec 1\n", 3000), []Signal{CPU, Throttled}, "longer than"},
		{"v2", v2 + "memory.max", "lots\n", []Signal{Memory}, "makes no sense"},
		{"v2", v2 + "memory.max", "", []Signal{Memory}, "makes no sense"},
		{"v2", v2 + "memory.max", "0\n", []Signal{Memory}, "limit of 0"},
		{"v2", v2 + "memory.high", "-5\n", []Signal{Memory}, "makes no sense"},
		{"v2", v2 + "memory.current", "\n", []Signal{Memory}, "makes no sense"},
		{"v2", v2 + "memory.stat", "anon 1\n", []Signal{Memory}, "makes no sense"},
		{"v2", v2 + "cpu.pressure", "", []Signal{PressureCPU}, "makes no sense"},
		{"v2", v2 + "cpu.pressure", "some avg10=0.00\n", []Signal{PressureCPU}, "makes no sense"},
		{"v2", v2 + "memory.pressure", "some total=x\n", []Signal{PressureMemory}, "makes no sense"},
		{"v2", "proc/self/cgroup", "", []Signal{CPU, Throttled, Memory, PressureCPU, PressureMemory}, "no line"},
		{"v2", "proc/self/cgroup", "0::\n", []Signal{CPU, Throttled, Memory, PressureCPU}, "makes no sense"},
		{"v2", "proc/self/cgroup", "what is this\n", []Signal{CPU, Throttled, Memory, PressureCPU}, "makes no sense"},
		{"v1", v1 + "cpu.cfs_period_us", "0\n", []Signal{CPU, Throttled}, "makes no sense"},
		{"v1", v1 + "cpu.cfs_quota_us", "0\n", []Signal{CPU, Throttled}, "makes no sense"},
		{"v1", v1 + "cpu.cfs_quota_us", "-2\n", []Signal{CPU, Throttled}, "makes no sense"},
		{"v1", v1 + "cpu.cfs_quota_us", "", []Signal{CPU, Throttled}, "makes no sense"},
		{"v1", v1 + "cpuacct.usage", "1e9\n", []Signal{CPU, Throttled}, "makes no sense"},
		{"v1", v1 + "cpu.stat", "nr_throttled\n", []Signal{CPU, Throttled}, "makes no sense"},
		{"v1", me + "memory.limit_in_bytes", "\n", []Signal{Memory}, "makes no sense"},
		{"v1", me + "memory.usage_in_bytes", "x", []Signal{Memory}, "makes no sense"},
		{"v1", me + "memory.stat", "inactive_file 3\n", []Signal{Memory}, "makes no sense"},
		{"none", "proc/stat", "", []Signal{HostCPU, Steal}, "cannot be read"},
		{"none", "proc/stat", "cpu  a b c\n", []Signal{HostCPU, Steal}, "cannot be read"},
		{"none", "proc/meminfo", "", []Signal{Memory}, "makes no sense"},
		{"none", "proc/meminfo", "MemTotal: x kB\n", []Signal{Memory}, "parsing"},
		{"none", "proc/meminfo", "MemTotal: 0 kB\nMemAvailable: 0 kB\n", []Signal{Memory}, "makes no sense"},
		{"none", "proc/meminfo", "MemTotal: 10 kB\nMemAvailable: 11 kB\n", []Signal{Memory}, "makes no sense"},
		{"none", "proc/loadavg", "", []Signal{Load1, Load5, Load15}, "cannot make sense"},
		{"none", "proc/loadavg", "a b c\n", nil, ""}, // gopsutil then asks the kernel in another way
	} {
		t.Run(fmt.Sprintf("%s/%s=%.20q", c.tree, c.file, c.content), func(t *testing.T) {
			f := open(t, c.tree)
			f.write(c.file, c.content)
			f.run(2*time.Second, nil)
			for _, s := range c.signals {
				f.wantAbsent(s, Unknown, c.why)
			}
			if r := f.r[Runnable]; r.State != Known {
				t.Errorf("runnable is %+v", r)
			}
		})
	}
}

// What cannot be read is unknown; once it can be read again, it is known again.
func TestUnreadableFiles(t *testing.T) {
	for _, c := range []struct {
		tree, file string
		signals    []Signal
		gone       State // when the file is not there at all
	}{
		{"v2", "proc/self/cgroup", []Signal{PressureCPU}, Unsupported},
		{"v2", "proc/self/mountinfo", []Signal{CPU, Throttled, Memory, PressureCPU}, Unknown},
		{"v2", "sys/fs/cgroup/cpu.max", []Signal{Throttled}, Unsupported},
		{"v2", "sys/fs/cgroup/cpu.stat", []Signal{CPU, Throttled}, Unknown},
		{"v2", "sys/fs/cgroup/memory.current", []Signal{Memory}, Unknown},
		{"v2", "sys/fs/cgroup/memory.stat", []Signal{Memory}, Unknown},
		{"v2", "sys/fs/cgroup/cpu.pressure", []Signal{PressureCPU}, Unsupported},
		{"v1", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", []Signal{Throttled}, Unsupported},
		{"v1", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", []Signal{CPU, Throttled}, Unknown},
		{"v1", "sys/fs/cgroup/cpu,cpuacct/cpuacct.usage", []Signal{CPU, Throttled}, Unknown},
		{"v1", "sys/fs/cgroup/memory/memory.usage_in_bytes", []Signal{Memory}, Unknown},
		{"none", "proc/stat", []Signal{HostCPU, Steal}, Unknown},
		{"none", "proc/meminfo", []Signal{Memory}, Unknown},
	} {
		t.Run(c.tree+"/"+c.file, func(t *testing.T) {
			f := open(t, c.tree)
			content := string(f.read(c.file))
			f.folder(c.file)
			f.run(2*time.Second, nil)
			for _, s := range c.signals {
				f.wantAbsent(s, Unknown, "")
				if f.r[s].Why == "" {
					t.Errorf("%v does not say why", s)
				}
			}

			f.remove(c.file)
			f.write(c.file, content)
			f.run(4*time.Second, func(at time.Duration) {
				if c.file == "proc/stat" { // time passes
					f.write(c.file, fmt.Sprintf("cpu  %d 0 500 8000 100 0 50 0 0 0\n", 1000+at.Milliseconds()))
				}
			})
			for _, s := range c.signals {
				if r := f.r[s]; r.State != Known {
					t.Errorf("with the file back %v is %v: %s", s, r.State, r.Why)
				}
			}

			// Vanished in mid-run. A deleted file can still be read through its descriptor; the next scan notices.
			f.remove(c.file)
			f.run(rescanEvery+2*time.Second, nil)
			for _, s := range c.signals {
				f.wantAbsent(s, c.gone, "")
			}
		})
	}
}

// The whole folder goes, as when a container is taken down around its last process.
func TestVanishedGroup(t *testing.T) {
	f := open(t, "v2-nested")
	f.run(time.Second, nil)
	f.remove("sys/fs/cgroup/kubepods.slice/pod7")
	f.run(rescanEvery+2*time.Second, nil)
	f.want(CPU, 0, "quota", "cgroup v2 /kubepods.slice") // the nearest that is left
	f.remove("sys")
	f.run(rescanEvery+2*time.Second, nil)
	f.wantAbsent(Throttled, Unsupported, "no CPU quota")
	f.want(Memory, 25, "the host's 8 GiB", "host")
}

func TestMovedToAnotherGroup(t *testing.T) {
	f := open(t, "v2-nested")
	f.run(time.Second, nil)
	f.write("sys/fs/cgroup/new/cpu.max", "200000 100000\n")
	f.write("sys/fs/cgroup/new/cpu.stat", "usage_usec 0\nnr_periods 0\nnr_throttled 0\n")
	f.write("sys/fs/cgroup/new/memory.max", "1000000000\n")
	f.write("sys/fs/cgroup/new/memory.current", "400000000\n")
	f.write("sys/fs/cgroup/new/memory.stat", "inactive_file 0\n")
	f.write("proc/self/cgroup", "0::/new\n")
	seen := map[State]bool{}
	f.run(3*time.Second, func(at time.Duration) {
		f.useV2("sys/fs/cgroup/new/cpu.stat", 1, 0, 0)(at)
		seen[f.r[CPU].State] = true
	})
	f.want(CPU, 50, "quota", "cgroup v2 /new")
	f.want(Memory, 40, "the cgroup's 954 MiB", "cgroup v2 /new")
	if seen[Unknown] || !seen[Pending] {
		t.Errorf("on the way there: %v", seen)
	}
}

// In-place resizing: the limit changes under a running process.
func TestLimitsChange(t *testing.T) {
	f := open(t, "v2")
	use := func(at time.Duration) { f.useV2("sys/fs/cgroup/cpu.stat", 0.4, 0, 0)(f.now) }
	f.run(2*time.Second, use)
	f.want(CPU, 80, "quota", "cgroup v2 /")
	f.write("sys/fs/cgroup/cpu.max", "100000 100000\n")
	f.write("sys/fs/cgroup/memory.max", "1073741824\n")
	f.run(2*time.Second, use)
	f.want(CPU, 40, "quota", "cgroup v2 /")
	f.want(Memory, 25, "the cgroup's 1 GiB", "cgroup v2 /")
	f.write("sys/fs/cgroup/cpu.max", "max 100000\n")
	f.run(2*time.Second, use)
	f.want(CPU, 0, cpusText(int(min(f.m.scheduler.procs, 4))), "process")
	f.write("sys/fs/cgroup/cpu.max", "50000 100000\n")
	f.run(2*time.Second, use)
	f.want(CPU, 80, "quota", "cgroup v2 /")
}

// A regular look around keeps what is known.
func TestRescanIsSeamless(t *testing.T) {
	f := open(t, "v2")
	use := func(at time.Duration) {
		f.useV2("sys/fs/cgroup/cpu.stat", 0.4, 0, 0)(at)
		if at > time.Second {
			f.want(CPU, 80, "quota", "cgroup v2 /")
		}
	}
	f.run(2*rescanEvery+time.Second, use)
}
