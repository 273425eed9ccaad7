package pressure

import (
	"testing"
	"time"
)

// A sample allocates nothing, with quota, limits and stall information to read. What gopsutil reads once a second allocates.
func TestSampleAllocatesNothing(t *testing.T) {
	for _, tree := range []string{"v2", "v2-nested", "v1", "v1-nested", "hybrid"} {
		f := open(t, tree)
		s := newSampler(t, Config{Source: f.m})
		f.run(2*time.Second, nil)
		s.sample()
		if n := testing.AllocsPerRun(200, func() {
			// Limits and memory are read again with every call, the host's figures are not.
			f.m.limits.next, f.m.memory.next = 0, 0
			f.m.Read(f.now, &s.readings)
			flags, alarms := s.judge.look(&s.readings)
			s.board.write(int64(f.now), &s.readings, alarms)
			s.verdict.Store(flags)
		}); n != 0 {
			t.Errorf("%s: a sample allocates %v times", tree, n)
		}
	}
}

func TestReadingAllocatesNothing(t *testing.T) {
	s := newSampler(t, Config{Source: NewManual()})
	s.sample()
	if n := testing.AllocsPerRun(100, func() {
		s.Normal()
		s.CPUTight()
		s.MemoryTight()
		s.Number()
		if sample := s.Latest(); sample.Readings[CPU].State != Known {
			t.Error("cpu is not known")
		}
	}); n != 0 {
		t.Errorf("reading allocates %v times", n)
	}
}

// BenchmarkSampler shows what the sampler costs on this machine, as it comes: every sample and every slower reading at its own pace,
// one period after the other. "%core" is the share of one core at the default period.
func BenchmarkSampler(b *testing.B) {
	m := ownMachine(b)
	s, err := New(Config{Source: m})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	now := time.Duration(0)
	for b.Loop() {
		now += DefaultPeriod
		m.Read(now, &s.readings)
		_, alarms := s.judge.look(&s.readings)
		s.board.write(int64(now), &s.readings, alarms)
	}
	perSample := float64(b.Elapsed()) / float64(b.N)
	b.ReportMetric(100*perSample/float64(DefaultPeriod), "%core")
	s.Close()
}

// BenchmarkSample is one of the ordinary samples, of which there are ten a second.
func BenchmarkSample(b *testing.B) {
	m := ownMachine(b)
	var r Readings
	m.Read(0, &r)
	b.ReportAllocs()
	for b.Loop() {
		m.Read(DefaultPeriod, &r)
	}
}

func BenchmarkRead(b *testing.B) {
	s, err := New(Config{Source: NewManual()})
	if err != nil {
		b.Fatal(err)
	}
	s.Start()
	defer s.Close()
	b.Run("Normal", func(b *testing.B) {
		for b.Loop() {
			s.Normal()
		}
	})
	b.Run("Latest", func(b *testing.B) {
		for b.Loop() {
			s.Latest()
		}
	})
	b.Run("Why", func(b *testing.B) {
		for b.Loop() {
			_ = s.Why()
		}
	})
}
