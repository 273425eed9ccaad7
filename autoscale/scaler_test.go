package autoscale

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is a Pressure that a test sets.
type machine struct {
	mu     sync.Mutex
	bad    string // why not normal
	tight  string
	sample uint64
}

func (m *machine) Normal() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bad == "" && m.tight == ""
}

func (m *machine) CPUTight() bool { return false }

func (m *machine) MemoryTight() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tight != ""
}

func (m *machine) Why() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bad + m.tight
}

func (m *machine) Number() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sample
}

func (m *machine) set(bad, tight string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bad, m.tight = bad, tight
	m.sample++
}

func (m *machine) next() { m.set("", "") }

// key is a Target that a test drives: calls in flight come and go by use.
type key struct {
	bound, late, inFlight int
	sick                  bool
	watched               int
	exceeded              bool
}

func (k *key) Late() (int, int) { return k.late, k.inFlight }
func (k *key) Healthy() bool    { return !k.sick }
func (k *key) SetBound(n int)   { k.bound = n }
func (k *key) Watch(n int) bool {
	was := k.exceeded
	k.watched, k.exceeded = n, k.inFlight > n
	return was
}

func (k *key) use(n int) {
	k.inFlight = n
	k.exceeded = k.exceeded || n > k.watched
}

// pass lets the time of a bubble pass.
func pass(d time.Duration) { <-time.After(d) }

type fixture struct {
	*machine
	*Scaler
	steps []Step
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{machine: &machine{sample: 1}}
	s, err := New(Config{Pressure: f.machine, OnStep: func(s Step) { f.steps = append(f.steps, s) }})
	if err != nil {
		t.Fatal(err)
	}
	f.Scaler = s
	return f
}

func (f *fixture) last() Step {
	if len(f.steps) == 0 {
		return Step{}
	}
	return f.steps[len(f.steps)-1]
}

func (f *fixture) key(n int) (*key, *Key) {
	target := &key{bound: n}
	f.Count(n)
	return target, f.Key("k", n, target)
}

// ask is a call that finds the key full.
func ask(target *key, k *Key, expand int) time.Duration {
	target.use(target.bound)
	return k.Expand(Load{Max: expand * k.limit, Bound: target.bound, InFlight: target.bound, Weight: 1})
}

func TestA1StepsStayWithinTheCeiling(t *testing.T) {
	for expand, want := range map[int][]int{1: {20}, 2: {20, 40}, 3: {20, 40, 60}, 4: {20, 40, 80}} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			target, k := f.key(20)
			got := []int{target.bound}
			for range 5 {
				f.next()
				ask(target, k, expand)
				if target.bound != got[len(got)-1] {
					got = append(got, target.bound)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("expand=%d: bounds %v, want %v", expand, got, want)
			}
			if s := f.last(); s.Cause != Ceiling || s.From != s.To {
				t.Errorf("expand=%d: the last step is %+v, want the ceiling told of", expand, s)
			}
		})
	}
}

func TestNoStepThatLetsNobodyIn(t *testing.T) {
	f := newFixture(t)
	target, k := f.key(3)
	target.use(40) // N was 40 before
	k.Expand(Load{Max: 12, Bound: 3, InFlight: 40, Weight: 1})
	if target.bound != 3 || f.last().Cause != Ceiling {
		t.Errorf("bound %d, told %+v; want no step", target.bound, f.last())
	}
	target.use(2)
	k.Expand(Load{Max: 12, Bound: 3, InFlight: 2, Detached: 2, Weight: 8})
	if target.bound != 6 { // the first of the steps that the heavy call needs
		t.Errorf("bound %d, told %+v; want 6", target.bound, f.last())
	}
}

func TestA2OnlyWhileEverythingIsNormal(t *testing.T) {
	f := newFixture(t)
	target, k := f.key(20)
	f.set("cpu unknown: cannot read cpu.stat", "")
	if pause := ask(target, k, 4); pause != DefaultPause || target.bound != 20 {
		t.Errorf("grew to %d while an indicator was unknown, pause %v", target.bound, pause)
	}
	if s := f.last(); s.Cause != Pressured || !strings.Contains(s.Why, "cpu unknown") {
		t.Errorf("told %+v", s)
	}
	f.next()
	if pause := ask(target, k, 4); pause != 0 || target.bound != 40 {
		t.Errorf("bound %d, pause %v; want a step to 40", target.bound, pause)
	}
}

func TestA3TightGoesBackAtOnce(t *testing.T) {
	f := newFixture(t)
	target, k := f.key(20)
	for range 2 {
		f.next()
		ask(target, k, 4)
	}
	f.set("", "memory 91 % of 512 MiB, limit 90 %")
	f.Tick()
	if target.bound != 20 {
		t.Errorf("bound %d while memory is tight, want 20", target.bound)
	}
	if s := f.last(); s.Cause != Tight || s.From != 80 || s.To != 20 || !strings.Contains(s.Why, "memory 91 %") {
		t.Errorf("told %+v", s)
	}
	ask(target, k, 4)
	if target.bound != 20 || f.last().Cause != Tight {
		t.Errorf("bound %d, told %+v", target.bound, f.last())
	}
	if f.Expanded() != 0 {
		t.Error("still counted as expanded")
	}
}

func TestA4BackOneStepAfterACalmWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		target, k := f.key(20)
		for range 2 {
			f.next()
			ask(target, k, 4)
		}
		run := func(d time.Duration, peak int) {
			for end := time.Now().Add(d); time.Now().Before(end); pass(100 * time.Millisecond) {
				target.use(peak)
				target.use(1)
				f.next()
				f.Tick()
			}
		}
		run(30*time.Second, 41) // above half of 80 for an instant, again and again
		if target.bound != 80 {
			t.Fatalf("bound %d although the peak was above half of it", target.bound)
		}
		run(9500*time.Millisecond, 40)
		if target.bound != 80 {
			t.Fatalf("bound %d before the window was over", target.bound)
		}
		run(time.Second, 40)
		if target.bound != 40 || f.last().Cause != Calm {
			t.Fatalf("bound %d after a calm window, told %+v; want 40", target.bound, f.last())
		}
		run(11*time.Second, 40)
		if target.bound != 40 {
			t.Fatalf("bound %d although the peak was above half of 40", target.bound)
		}
		run(11*time.Second, 20)
		if target.bound != 20 || f.Expanded() != 0 {
			t.Fatalf("bound %d, expanded %d; want back at N", target.bound, f.Expanded())
		}
	})
}

func TestA4FromThreeTimesN(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		target, k := f.key(10)
		for range 2 {
			f.next()
			ask(target, k, 3)
		}
		var got []int
		for range 400 {
			target.use(0)
			f.next()
			f.Tick()
			if len(got) == 0 || got[len(got)-1] != target.bound {
				got = append(got, target.bound)
			}
			pass(100 * time.Millisecond)
		}
		if fmt.Sprint(got) != "[30 20 10]" {
			t.Errorf("bounds %v, want 30, 20, 10", got)
		}
	})
}

func TestA5NotForAMassOfTimeouts(t *testing.T) {
	f := newFixture(t)
	target, k := f.key(20)
	target.late = 6
	ask(target, k, 4)
	if s := f.last(); target.bound != 20 || s.Cause != Late || s.Why != "6 of 20 calls in flight are late" {
		t.Errorf("bound %d, told %+v", target.bound, s)
	}
	target.late = 5 // a quarter is not more than a quarter
	ask(target, k, 4)
	if target.bound != 40 {
		t.Errorf("bound %d with a quarter late, want 40", target.bound)
	}
	f.next()
	target.sick = true
	target.late = 0
	ask(target, k, 4)
	if target.bound != 40 || f.last().Cause != Unhealthy {
		t.Errorf("bound %d with the breaker open, told %+v", target.bound, f.last())
	}
}

func TestA6OneStepAKeyAndSample(t *testing.T) {
	f := newFixture(t)
	target, k := f.key(20)
	for range 100 {
		ask(target, k, 4)
	}
	if target.bound != 40 || f.last().Cause != Sampled {
		t.Errorf("bound %d in one sample, told %+v; want 40", target.bound, f.last())
	}
}

func TestA6AllKeysTogether(t *testing.T) {
	f := newFixture(t)
	type pair struct {
		*key
		*Key
	}
	var keys []pair
	for range 1000 {
		target, k := f.key(20)
		keys = append(keys, pair{target, k})
	}
	sum := func() (n int) {
		for _, p := range keys {
			n += p.key.bound
		}
		return n
	}
	before := sum()
	for sample := range 20 {
		f.next()
		for _, p := range keys {
			ask(p.key, p.Key, 4)
		}
		after := sum()
		if gain := after - before; gain > 20*1000/4 || sample == 0 && gain != 5000 {
			t.Fatalf("sample %d: all keys gained %d, at most 5000", sample, gain)
		}
		before = after
	}
	if before != 80*1000 {
		t.Errorf("sum of bounds %d after 20 samples of room, want 80000", before)
	}
}

func TestNotTakenIsToldOncePerCauseAndSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		target, k := f.key(20)
		f.set("runnable goroutines 3.1 a P, limit 2", "")
		for range 1000 {
			ask(target, k, 4)
			pass(2 * time.Millisecond)
		}
		if n := len(f.steps); n != 2 {
			t.Errorf("%d events in 2 s of refusals for one cause, want 2", n)
		}
	})
}

func TestResize(t *testing.T) {
	f := newFixture(t)
	target, k := f.key(20)
	ask(target, k, 4)
	k.Resize(30)
	if target.bound != 30 || f.Expanded() != 0 {
		t.Errorf("bound %d, expanded %d after Resize(30)", target.bound, f.Expanded())
	}
	f.next()
	ask(target, k, 4)
	if target.bound != 60 {
		t.Errorf("bound %d after a step, want 60", target.bound)
	}
}

// Whatever happens, N <= bound <= ceiling, and the target agrees with the scaler.
func TestBoundsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &fixture{machine: &machine{sample: 1}}
		s, err := New(Config{Pressure: f.machine})
		if err != nil {
			t.Fatal(err)
		}
		f.Scaler = s
		type pair struct {
			*key
			*Key
			expand int
		}
		var keys []*pair
		for range rapid.IntRange(1, 5).Draw(t, "keys") {
			n := rapid.IntRange(1, 50).Draw(t, "n")
			target := &key{bound: n}
			s.Count(n)
			k := s.Key("k", n, target)
			keys = append(keys, &pair{target, k, rapid.IntRange(1, 4).Draw(t, "expand")})
		}
		pick := func(t *rapid.T) *pair { return keys[rapid.IntRange(0, len(keys)-1).Draw(t, "key")] }
		t.Repeat(map[string]func(*rapid.T){
			"ask":    func(t *rapid.T) { p := pick(t); ask(p.key, p.Key, p.expand) },
			"sample": func(*rapid.T) { f.next() },
			"tight":  func(*rapid.T) { f.set("", "cpu"); s.Tick() },
			"tick":   func(*rapid.T) { s.Tick() },
			"late":   func(t *rapid.T) { pick(t).late = rapid.IntRange(0, 50).Draw(t, "late") },
			"resize": func(t *rapid.T) { pick(t).Resize(rapid.IntRange(1, 50).Draw(t, "n")) },
			"": func(t *rapid.T) {
				for _, p := range keys {
					if p.key.bound < p.limit || p.key.bound > max(p.limit*p.expand, p.limit) || p.key.bound != p.Key.bound {
						t.Fatalf("bound %d (scaler %d) outside of %d..%d", p.key.bound, p.Key.bound, p.limit, p.limit*p.expand)
					}
				}
			},
		})
	})
}

func TestConfig(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, "autoscale: Pressure is nil, must be set"},
		{Config{Pressure: &machine{}, Window: time.Millisecond}, "autoscale: Window is 1ms, must be 1s..10m"},
		{Config{Pressure: &machine{}, Pause: time.Hour}, "autoscale: Pause is 1h0m0s, must be 1ms..10s"},
	} {
		if _, err := New(c.cfg); err == nil || err.Error() != c.want {
			t.Errorf("New: %v, want %q", err, c.want)
		}
	}
	for c := Grown; c <= Shared; c++ {
		if s := c.String(); s == "" || s == "unknown" {
			t.Errorf("cause %d has no name", c)
		}
	}
}
