package pressure

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

func TestV2Container(t *testing.T) {
	f := open(t, "v2")
	f.run(0, nil)
	f.wantAbsent(CPU, Pending, "second look")
	f.wantAbsent(Throttled, Pending, "second look")
	f.wantAbsent(PressureCPU, Pending, "second look")
	f.want(Memory, 50, "the cgroup's 512 MiB", "cgroup v2 /") // (409.6 - 153.6) MiB of 512

	f.run(2*time.Second, func(at time.Duration) {
		f.useV2("sys/fs/cgroup/cpu.stat", 0.4, 1_000_000, 3)(at)
		f.write("sys/fs/cgroup/cpu.pressure", fmt.Sprintf("some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n", at.Microseconds()/10))
		f.own = at / 10
	})
	f.want(CPU, 80, "quota", "cgroup v2 /")
	if r := f.r[CPU]; r.Limit != 0.5 || r.Used < 0.39 || r.Used > 0.41 {
		t.Errorf("used %v of %v CPUs", r.Used, r.Limit)
	}
	f.want(Throttled, 30, "", "cgroup v2 /")
	f.want(PressureCPU, 10, "", "cgroup v2")
	f.want(PressureMemory, 0, "", "cgroup v2")
}

func TestV2NestedTakesTheFullestLevel(t *testing.T) {
	f := open(t, "v2-nested")
	const base = "sys/fs/cgroup/kubepods.slice"
	use := func(app, pod, slice float64) func(time.Duration) {
		return func(at time.Duration) {
			f.useV2(base+"/pod7/app/cpu.stat", app, 0, 0)(at)
			f.useV2(base+"/pod7/cpu.stat", pod, 0, 1)(at)
			f.useV2(base+"/cpu.stat", slice, 0, 2)(at)
		}
	}
	f.run(time.Second, use(0.6, 0.7, 1.5)) // 15 % of 4, 70 % of 1, 50 % of 3
	f.want(CPU, 70, "quota", "cgroup v2 /kubepods.slice/pod7")
	f.want(Throttled, 20, "", "cgroup v2 /kubepods.slice")
	f.want(Memory, 90, "the cgroup's 1 GiB", "cgroup v2 /kubepods.slice")

	f.now += DefaultPeriod
	f.run(time.Second, use(0.6, 0.7, 2.7)) // a neighbour in the slice
	f.want(CPU, 90, "quota", "cgroup v2 /kubepods.slice")
}

func TestV2MemoryHighIsALimit(t *testing.T) {
	f := open(t, "v2")
	f.write("sys/fs/cgroup/memory.high", "268435456\n")
	f.run(0, nil)
	f.want(Memory, 100, "the cgroup's 256 MiB", "cgroup v2 /")
}

func TestV1Container(t *testing.T) {
	f := open(t, "v1")
	f.run(time.Second, func(at time.Duration) {
		f.write("sys/fs/cgroup/cpu,cpuacct/cpuacct.usage", fmt.Sprintln(5_000_000_000+at.Nanoseconds()))
		f.write("sys/fs/cgroup/cpu,cpuacct/cpu.stat", fmt.Sprintf("nr_periods 10\nnr_throttled %d\nthrottled_time 100\n", 2+at/DefaultPeriod/2))
	})
	f.want(CPU, 66.7, "quota", "cgroup v1 /docker/3f4e")
	f.want(Throttled, 50, "", "cgroup v1 /docker/3f4e")
	f.want(Memory, 50, "the cgroup's 256 MiB", "cgroup v1 /docker/3f4e")
	f.wantAbsent(PressureCPU, Unsupported, "no cgroup v2")
}

func TestV1NestedAndEscapedMount(t *testing.T) {
	f := open(t, "v1-nested")
	f.run(time.Second, func(at time.Duration) {
		f.write("sys/fs/cgroup/cpu acct/system/cpuacct.usage", fmt.Sprintln(5_000_000_000+at.Nanoseconds()))
	})
	f.want(CPU, 50, "quota", "cgroup v1 /system") // one CPU of 100 ms in 50 ms
	f.want(Memory, 60, "the cgroup's 954 MiB", "cgroup v1 /system")
}

func TestV1BehindSymlinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symlinks need a privilege on Windows")
	}
	f := open(t, "v1")
	// The mount point as mountinfo has it is a link, as /sys/fs/cgroup/cpu is one to cpu,cpuacct.
	f.must(os.Rename(f.path("sys/fs/cgroup/cpu,cpuacct"), f.path("sys/fs/cgroup/both")))
	f.must(os.Symlink("both", f.path("sys/fs/cgroup/cpu,cpuacct")))
	f.run(time.Second, func(at time.Duration) {
		f.write("sys/fs/cgroup/both/cpuacct.usage", fmt.Sprintln(5_000_000_000+at.Nanoseconds()))
	})
	f.want(CPU, 66.7, "quota", "cgroup v1 /docker/3f4e")
}

func TestV1WithoutThrottlingCounters(t *testing.T) {
	f := open(t, "v1")
	f.remove("sys/fs/cgroup/cpu,cpuacct/cpu.stat")
	f.run(time.Second, nil)
	f.want(CPU, 0, "quota", "cgroup v1 /docker/3f4e")
	f.wantAbsent(Throttled, Unsupported, "no CPU quota that would throttle")
}

func TestHybrid(t *testing.T) {
	f := open(t, "hybrid")
	f.run(time.Second, func(at time.Duration) {
		f.own = at / 4 // cpuacct has no group of ours: the process's own time has to do
		f.write("sys/fs/cgroup/unified/app.scope/cpu.pressure", fmt.Sprintf("some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n", 500_000+at.Microseconds()/2))
	})
	f.want(CPU, 50, "quota", "cgroup v1 /app")
	f.want(Throttled, 0, "", "cgroup v1 /app")
	f.want(Memory, 25, "the cgroup's 954 MiB", "cgroup v1 /mem")
	f.want(PressureCPU, 50, "", "cgroup v2")
}

func TestRootGroup(t *testing.T) {
	f := open(t, "root")
	f.m.scheduler.procs = 2
	f.run(time.Second, func(at time.Duration) { f.own = at })
	cpus := min(f.m.scheduler.procs, 4)
	f.want(CPU, 100/cpus, cpusText(int(cpus)), "process")
	f.wantAbsent(Throttled, Unsupported, "no CPU quota")
	f.want(Memory, 75, "the host's 8 GiB", "host")
	f.wantAbsent(PressureCPU, Unsupported, "root cgroup")
	f.wantAbsent(PressureMemory, Unsupported, "root cgroup")
}

func TestNoCgroups(t *testing.T) {
	f := open(t, "none")
	f.run(time.Second, nil)
	f.want(CPU, 0, cpusText(int(min(f.m.scheduler.procs, 4))), "process")
	f.wantAbsent(Throttled, Unsupported, "no CPU quota")
	f.want(Memory, 25, "the host's 8 GiB", "host")
	f.wantAbsent(PressureCPU, Unsupported, "no cgroups")
}

// A /proc that tells the host's paths inside a container that mounts only its own group.
func TestPathThatTheMountDoesNotShow(t *testing.T) {
	for _, self := range []string{"0::/kubepods/pod/app\n", "0::/../other\n", "0::/gone/for/ever\n"} {
		f := open(t, "v2")
		f.write("proc/self/cgroup", self)
		f.run(0, nil)
		if r := f.r[Memory]; r.State != Known || r.Of != "the cgroup's 512 MiB" {
			t.Errorf("%q: %+v", self, r)
		}
	}
}

func TestLimitAboveTheHostIsNone(t *testing.T) {
	f := open(t, "v2")
	f.write("sys/fs/cgroup/memory.max", "17179869184\n")
	f.run(0, nil)
	f.want(Memory, 25, "the host's 8 GiB", "host")
}

func TestMaxIsNoQuota(t *testing.T) {
	f := open(t, "v2")
	f.write("sys/fs/cgroup/cpu.max", "max 100000\n")
	f.write("sys/fs/cgroup/memory.max", "max\n")
	f.run(time.Second, nil)
	f.want(CPU, 0, cpusText(int(min(f.m.scheduler.procs, 4))), "process")
	f.wantAbsent(Throttled, Unsupported, "no CPU quota")
	f.want(Memory, 25, "the host's 8 GiB", "host")
}

// What a hypervisor takes away is not there to be used.
func TestStealIsTakenOff(t *testing.T) {
	f := open(t, "none")
	f.run(3*time.Second, func(at time.Duration) {
		f.own = at
		f.write("proc/stat", fmt.Sprintf("cpu  %d 0 500 8000 100 0 50 %d 0 0\n", 1000+at.Milliseconds()*3/10, at.Milliseconds()/10))
	})
	f.want(Steal, 25, "", "host")
	f.want(HostCPU, 100, "", "host")
	cpus := min(f.m.scheduler.procs, 4)
	f.want(CPU, 100/(cpus*0.75), cpusText(int(cpus)), "process")
}

func TestHostFigures(t *testing.T) {
	f := open(t, "none")
	f.run(0, nil)
	f.wantAbsent(HostCPU, Pending, "second look")
	f.run(2*time.Second, func(at time.Duration) {
		f.write("proc/stat", fmt.Sprintf("cpu  %d 0 500 %d 100 0 50 0 0 0\n", 1000+at.Milliseconds()/10, 8000+at.Milliseconds()/10))
	})
	f.want(HostCPU, 50, "", "host")
	if runtime.GOOS == "linux" {
		f.want(Load1, 0.5, "", "host")
		f.want(Load15, 0.3, "", "host")
	}
}
