package pressure

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// pass lets time go by in a bubble.
func pass(d time.Duration) { <-time.After(d) }

func newSampler(t *testing.T, cfg Config) *Sampler {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// stuck is a source that can be made to hang, as a sampler hangs that gets no CPU.
type stuck struct {
	*Manual
	hold   atomic.Pointer[chan struct{}]
	reads  atomic.Int64
	closed atomic.Int64
}

func (s *stuck) Read(now time.Duration, r *Readings) {
	s.reads.Add(1)
	if c := s.hold.Load(); c != nil {
		<-*c
	}
	s.Manual.Read(now, r)
}

func (s *stuck) Close() error { s.closed.Add(1); return nil }

func TestNothingBeforeStart(t *testing.T) {
	s := newSampler(t, Config{Source: NewManual()})
	if s.Normal() || !s.CPUTight() || s.MemoryTight() || s.Number() != 0 || s.Latest().Number != 0 {
		t.Error("a sampler that has not looked knows something")
	}
	if got := s.Why(); got != "the sampler has not been started" {
		t.Errorf("why: %q", got)
	}
	if r := s.Latest().Readings[CPU]; r.State != Unknown {
		t.Errorf("cpu is %+v", r)
	}
	if list := (Sample{}).Reasons(); len(list) != 1 || list[0].String() == "" {
		t.Errorf("a zero sample is not normal because of %v", list)
	}
}

func TestUsableFromTheFirstSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewManual()
		m.Put(CPU, Reading{State: Pending, Why: "needs a second look"})
		m.Put(Throttled, Reading{State: Pending, Why: "needs a second look"})
		s := newSampler(t, Config{Source: m})
		s.Start()
		if !s.Normal() || s.Number() != 1 || s.Why() != "" || s.Reasons() != nil {
			t.Errorf("after Start: %v", s.Reasons())
		}
		m.Set(Runnable, 2)
		pass(DefaultPeriod)
		synctest.Wait()
		if s.Normal() || !s.CPUTight() || s.Why() != "runnable 2 per P, limit 2 per P" {
			t.Errorf("the scheduler's signal stands in: %q", s.Why())
		}
	})
}

// The machine's own source, too, is usable at once.
func TestMachineFirstSample(t *testing.T) {
	s := newSampler(t, Config{})
	s.Start()
	latest := s.Latest()
	if r := latest.Readings[Runnable]; r.State != Known {
		t.Errorf("runnable is %+v", r)
	}
	if r := latest.Readings[CPU]; r.State != Pending && r.State != Unsupported {
		t.Errorf("cpu is %+v", r)
	}
	for _, r := range s.Reasons() {
		if r.State == Unknown {
			t.Errorf("not known at once: %v", r)
		}
	}
}

// A sampler that gets no CPU is itself a sign of overload, and the sample it left says the contrary.
func TestStaleSampleIsOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &stuck{Manual: NewManual()}
		s := newSampler(t, Config{Source: src})
		s.Start()
		hold := make(chan struct{})
		src.hold.Store(&hold)
		pass(3 * DefaultPeriod)
		if !s.Normal() || s.CPUTight() {
			t.Errorf("three periods old: %q", s.Why())
		}
		pass(time.Millisecond)
		if s.Normal() || !s.CPUTight() || s.MemoryTight() {
			t.Error("older than three periods, and still normal")
		}
		pass(211 * time.Millisecond)
		if got := s.Why(); got != "no sample for 512 ms, limit 300 ms: the sampler itself gets no CPU" {
			t.Errorf("why: %q", got)
		}
		lag := s.Latest().Readings[Lag]
		if lag.State != Known || lag.Value != 512 || lag.Limit != 300 {
			t.Errorf("lag is %+v", lag)
		}
		if age := s.Latest().Readings[CPU].Age; age != 512*time.Millisecond {
			t.Errorf("cpu was read %v ago", age)
		}
		src.hold.Store(nil)
		close(hold)
		synctest.Wait()
		if !s.Normal() || s.CPUTight() || s.Why() != "" {
			t.Errorf("running again: %q", s.Why())
		}
	})
}

func TestStartTwiceCloseTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &stuck{Manual: NewManual()}
		s := newSampler(t, Config{Source: src, Period: time.Second})
		s.Start()
		s.Start()
		pass(10*time.Second + time.Millisecond)
		if n := src.reads.Load(); n != 11 || s.Number() != 11 {
			t.Errorf("%d reads, %d samples in ten seconds", n, s.Number())
		}
		s.Close()
		s.Close()
		s.Start()
		pass(time.Minute)
		if n := src.reads.Load(); n != 11 {
			t.Errorf("%d reads after Close", n-11)
		}
		if n := src.closed.Load(); n != 1 {
			t.Errorf("the source was closed %d times", n)
		}
		if s.Normal() || s.Why() != "the sampler is closed" {
			t.Errorf("closed: %q", s.Why())
		}
	})
}

func TestCloseWithoutStart(t *testing.T) {
	src := &stuck{Manual: NewManual()}
	s := newSampler(t, Config{Source: src})
	s.Close()
	s.Start()
	if src.reads.Load() != 0 || src.closed.Load() != 1 {
		t.Errorf("%d reads, closed %d times", src.reads.Load(), src.closed.Load())
	}
}

// Close waits for a sample that is being taken.
func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &stuck{Manual: NewManual()}
		s := newSampler(t, Config{Source: src})
		s.Start()
		hold := make(chan struct{})
		src.hold.Store(&hold)
		pass(DefaultPeriod + time.Millisecond)
		done := false
		go func() { s.Close(); done = true }()
		synctest.Wait()
		if done {
			t.Error("Close did not wait")
		}
		close(hold)
		synctest.Wait()
		if !done {
			t.Error("Close waits for ever")
		}
	})
}

// The real source in a bubble: time is not real there, so nothing but its liveness is asked for.
func TestMachineInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSampler(t, Config{})
		s.Start()
		pass(time.Minute)
		synctest.Wait()
		if n := s.Number(); n != 601 {
			t.Errorf("%d samples in a minute", n)
		}
		if r := s.Latest().Readings[GoLoad1]; r.State != Known {
			t.Errorf("go_load1 is %+v", r)
		}
	})
}

// Readers never see half of one sample and half of another.
func TestReadersSeeWholeSamples(t *testing.T) {
	var b board
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			last := uint64(0)
			for running := true; running; {
				select {
				case <-stop:
					running = false
				default:
					last = checkWhole(t, &b, last)
				}
			}
		})
	}
	for n := range 4000 {
		n++
		var r Readings
		for i := range r {
			r[i] = Reading{Value: float64(n), Used: float64(n), Limit: float64(n), Age: time.Duration(n), Why: strings.Repeat("x", n%3)}
		}
		b.write(int64(n), &r, uint32(n))
	}
	close(stop)
	wg.Wait()
}

// checkWhole reads a sample in which every number is the sample's own.
func checkWhole(t *testing.T, b *board, last uint64) uint64 {
	t.Helper()
	var r Readings
	var n uint64
	var alarms uint32
	at := b.read(&r, &n, &alarms)
	if n < last {
		t.Errorf("sample %d after %d", n, last)
	}
	if n == 0 {
		return n
	}
	if at != int64(n) || alarms != uint32(n) {
		t.Errorf("sample %d is of %d with %d", n, at, alarms)
	}
	want := Reading{Value: float64(n), Used: float64(n), Limit: float64(n), Age: time.Duration(n), Why: strings.Repeat("x", int(n%3))}
	for _, got := range r[:Lag] {
		if got != want {
			t.Errorf("sample %d has %+v", n, got)
			break
		}
	}
	return n
}

func TestManyReadersOfARunningSampler(t *testing.T) {
	m := NewManual()
	s := newSampler(t, Config{Source: m, Period: MinPeriod})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for s.Number() < 5 {
				s.Normal()
				s.CPUTight()
				s.MemoryTight()
				s.Why()
				m.Set(CPU, float64(s.Latest().Number))
			}
		})
	}
	s.Start()
	wg.Wait()
}
