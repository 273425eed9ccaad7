package pressure

import (
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"
)

// The kernel's own figures: a constant load of 4 reads 2.53 after a minute, 63 % of it, and 95 % of 4 after three; then
// it decays by the same.
func TestGoLoadAveragesAsTheKernelDoes(t *testing.T) {
	var l goLoad
	now := time.Duration(0)
	run := func(d time.Duration, count float64) {
		for end := now + d; now < end; {
			now += DefaultPeriod
			l.add(now, count)
		}
	}
	l.add(now, 0)
	run(time.Minute, 4)
	for i, want := range []float64{4 * (1 - math.Exp(-1)), 4 * (1 - math.Exp(-1.0/5)), 4 * (1 - math.Exp(-1.0/15))} {
		if got := l.averages[i]; math.Abs(got-want) > 0.001 {
			t.Errorf("average %d after a minute: %v, want %v", i, got, want)
		}
	}
	run(2*time.Minute, 4)
	if got, want := l.averages[0], 4*(1-math.Exp(-3)); math.Abs(got-want) > 0.001 {
		t.Errorf("after three minutes: %v, want %v", got, want)
	}
	before := l.averages[0]
	run(time.Minute, 0)
	if got, want := l.averages[0], before*math.Exp(-1); math.Abs(got-want) > 0.001 {
		t.Errorf("a minute later: %v, want %v", got, want)
	}
}

func TestGoLoadMovesEveryFiveSeconds(t *testing.T) {
	var l goLoad
	var moved []time.Duration
	for now := time.Duration(0); now <= 16*time.Second; now += DefaultPeriod {
		if l.add(now, 1) {
			moved = append(moved, now)
		}
	}
	if want := []time.Duration{5 * time.Second, 10 * time.Second, 15 * time.Second}; !slices.Equal(moved, want) {
		t.Errorf("moved at %v", moved)
	}
	// After a gap the average is where it would be without one.
	gap := l
	for now := 16 * time.Second; now <= 40*time.Second; now += DefaultPeriod {
		l.add(now, 1)
	}
	gap.add(40*time.Second, 1)
	if math.Abs(gap.averages[0]-l.averages[0]) > 0.001 {
		t.Errorf("with a gap %v, without %v", gap.averages[0], l.averages[0])
	}
}

func TestLatencyTail(t *testing.T) {
	edges := []float64{math.Inf(-1), 0, 0.001, 0.01, 0.1, math.Inf(1)}
	var tail latencyTail
	counts := make([]uint64, 5)
	add := func(at time.Duration, more ...uint64) (float64, bool) {
		for i, n := range more {
			counts[i] += n
		}
		return tail.add(at, counts, edges)
	}
	if _, ok := add(0, 0, 1000, 0, 1000); ok {
		t.Error("known on the first look")
	}
	for i, c := range []struct {
		more []uint64
		want float64
	}{
		{[]uint64{0, 0, 0, 0, 0}, 0},     // nobody waited
		{[]uint64{0, 990, 10}, 0.001},    // 1 % may be above
		{[]uint64{0, 0, 10}, 0.01},       // 20 of 1010 are
		{[]uint64{0, 0, 0, 0, 50}, 0.1},  // above the last edge that there is
		{[]uint64{0, 5000}, 0.01},        // 70 of 6060, 50 of them high up
		{[]uint64{0, 0, 0, 0, 0}, 0.01},  // the 1,000 have left the window: 50 of 5060
		{[]uint64{0, 0, 0, 0, 0}, 0.001}, // and the 10
		{[]uint64{0, 0, 0, 0, 0}, 0.001}, // and the 50
		{[]uint64{0, 0, 0, 0, 0}, 0},     // all of them
		{[]uint64{0, 0, 0, 3}, 0.1},      // few, and all late
	} {
		if got, ok := add(time.Duration(i+1)*latencyEvery, c.more...); !ok || got != c.want {
			t.Errorf("look %d: %v, %v, want %v", i+1, got, ok, c.want)
		}
	}
	// After a long gap only what came since counts.
	if got, ok := add(time.Hour, 0, 7); !ok || got == 0 {
		t.Errorf("after a gap: %v, %v", got, ok)
	}
	if _, ok := tail.add(2*time.Hour, counts[:3], edges); ok {
		t.Error("a histogram of another shape was compared")
	}
}

// Goroutines that spin are seen as waiting for a P.
func TestRunnableIsCounted(t *testing.T) {
	m := ownMachine(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	stop := make(chan struct{})
	done := make(chan struct{})
	const spinners = 12
	for range spinners {
		go func() {
			defer func() { done <- struct{}{} }()
			spin := 0
			for {
				select {
				case <-stop:
					return
				default:
					spin++
				}
			}
		}()
	}
	var r Readings
	deadline := time.Now().Add(10 * time.Second)
	for now := time.Duration(0); ; now += DefaultPeriod {
		m.Read(now, &r)
		if v := r[Runnable].Value; v > spinners*3/4 { // a single P counts as two, and others may wait as well
			t.Errorf("%d goroutines on one P read as %v", spinners, v)
			break
		} else if v >= 4 {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("with %d goroutines on one P runnable is %+v", spinners, r[Runnable])
			break
		}
		runtime.Gosched()
	}
	close(stop)
	for range spinners {
		<-done
	}
}

func TestGCShare(t *testing.T) {
	m := ownMachine(t)
	m.heap.readGC(m)
	if r := m.readings[GC]; r.State != Pending {
		t.Errorf("at first: %+v", r)
	}
	runtime.GC()
	runtime.GC()
	m.heap.readGC(m)
	r := m.readings[GC]
	if r.State != Known || r.Value <= 0 || r.Value > 100 {
		t.Errorf("after two collections: %+v", r)
	}
	m.now = time.Minute
	m.heap.readGC(m)
	if m.readings[GC] != r || m.at[GC] != 0 {
		t.Errorf("without a collection: %+v", m.readings[GC])
	}
}

// Garbage is not memory in need: near GOMEMLIMIT only what a collection cannot give back counts.
func TestMemoryAgainstGoLimit(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 40))
	f := open(t, "v2")
	runtime.GC()
	limit, floor, garbage := f.m.heap.readMemory()
	if limit != 1<<40 || floor <= 0 || garbage < 0 {
		t.Fatalf("%v %v %v", limit, floor, garbage)
	}
	debug.SetMemoryLimit(int64(floor * 2))
	f.write("sys/fs/cgroup/memory.max", "max\n")
	f.run(0, nil)
	r := f.r[Memory]
	if r.State != Known || r.From != "go runtime" || r.Value < 30 || r.Value > 70 {
		t.Errorf("half full: %+v", r)
	}

	keep := make([]byte, int(floor*4))
	runtime.GC()
	f.run(time.Second, nil)
	if r := f.r[Memory]; r.Value < 150 {
		t.Errorf("with live memory above the limit: %+v", r)
	}
	runtime.KeepAlive(keep)
	debug.SetMemoryLimit(math.MaxInt64)
	f.run(time.Second, nil)
	f.want(Memory, 25, "the host's 8 GiB", "host")
}

// Below a cgroup's limit, what the runtime will collect before it gets there is as good as free.
func TestGarbageUnderTheGroupsLimit(t *testing.T) {
	f := open(t, "v2")
	f.m.heap.memory[heapLimit].Name = "/gc/gomemlimit:bytes"
	debug.SetMemoryLimit(400 << 20)
	defer debug.SetMemoryLimit(math.MaxInt64)
	_, _, garbage := f.m.heap.readMemory()
	f.run(0, nil)
	want := 100 * (429496729.0 - 161061273 - garbage) / 536870912
	if r := f.r[Memory]; r.State != Known || math.Abs(r.Value-want) > 1 {
		t.Errorf("%+v, want %v", r, want)
	}
}
