package paired

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSummarize(t *testing.T) {
	upTo := func(n int) []float64 {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = float64(n - i) // unsorted
		}
		return xs
	}
	tests := []struct {
		name string
		xs   []float64
		want Summary
	}{
		{"one value", []float64{7}, Summary{N: 1, Median: 7, Low: 7, High: 7, P10: 7, P90: 7}},
		{"even number", []float64{4, 1, 3, 2}, Summary{N: 4, Median: 2.5, Low: 1, High: 4, P10: 1.3, P90: 3.7}},
		{"odd number", []float64{5, 1, 3}, Summary{N: 3, Median: 3, Low: 1, High: 5, P10: 1.4, P90: 4.6}},
		// Ranks of the textbook for n = 100: 40 and 61.
		{"a hundred", upTo(100), Summary{N: 100, Median: 50.5, Low: 40, High: 61, P10: 10.9, P90: 90.1}},
		{"six, the fewest with an interval", upTo(6), Summary{N: 6, Median: 3.5, Low: 1, High: 6, P10: 1.5, P90: 5.5}},
		{"ten", upTo(10), Summary{N: 10, Median: 5.5, Low: 2, High: 9, P10: 1.9, P90: 9.1}},
		{"outliers do not move it", []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1e9}, Summary{N: 10, Median: 1, Low: 1, High: 1, P10: 1, P90: 1 + 0.1*(1e9-1)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := slices.Clone(tt.xs)
			got := Summarize(tt.xs)
			near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Max(1, math.Abs(b)) }
			if got.N != tt.want.N || !near(got.Median, tt.want.Median) || !near(got.Low, tt.want.Low) ||
				!near(got.High, tt.want.High) || !near(got.P10, tt.want.P10) || !near(got.P90, tt.want.P90) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if !slices.Equal(before, tt.xs) {
				t.Error("the sample was reordered")
			}
		})
	}
	if s := Summarize(nil); s.N != 0 || !math.IsNaN(s.Median) || !math.IsNaN(s.Low) {
		t.Errorf("of nothing: %+v, want NaN", s)
	}
}

// The interval must hold the true median in 95 of 100 samples, whatever the distribution: here a lopsided one.
func TestIntervalCoversTheMedian(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const samples, size = 2000, 60
	covered := 0
	for range samples {
		xs := make([]float64, size)
		for i := range xs {
			xs[i] = rng.ExpFloat64()
		}
		if s := Summarize(xs); s.Low <= math.Ln2 && math.Ln2 <= s.High {
			covered++
		}
	}
	if share := float64(covered) / samples; share < 0.94 || share > 0.99 {
		t.Errorf("the interval holds the median in %.3f of the samples, want about 0.95", share)
	}
}

// weather is a machine whose speed changes while it measures: by a steady drift and by regimes that last a while.
type weather struct{ batches int }

func (w *weather) costs(ns float64) Run {
	return func(n int) (time.Duration, error) {
		w.batches++
		slow := 1 + 0.002*float64(w.batches)
		if w.batches/37%2 == 1 {
			slow *= 2
		}
		return time.Duration(ns * slow * float64(n)), nil
	}
}

func TestPairSeesThroughAChangingMachine(t *testing.T) {
	var w weather
	double := &Pair{A: Side{[]Run{w.costs(50)}, 1000}, B: Side{[]Run{w.costs(100)}, 500}}
	same := &Pair{A: Side{[]Run{w.costs(50)}, 1000}, B: Side{[]Run{w.costs(50)}, 1000}}
	rounds := 0
	if err := Interleave(context.Background(), 200, []*Pair{double, same}, func(done int) { rounds = done }); err != nil {
		t.Fatal(err)
	}
	if rounds != 200 {
		t.Errorf("progress ended at %d, want 200", rounds)
	}
	if got := Summarize(double.Ratios()).Median; math.Abs(got-2) > 0.005 {
		t.Errorf("ratio of 100 ns to 50 ns: %.4f, want 2", got)
	}
	if got := Summarize(same.Ratios()).Median; math.Abs(got-1) > 0.002 {
		t.Errorf("A against A: %.4f, want 1", got)
	}
	for _, xs := range [][]float64{double.TimesA(), double.TimesB(), double.Ratios(), double.Differences()} {
		clear(xs) // whoever changes units in place must not change the pair
	}
	for i, d := range double.Differences() {
		if want := double.TimesB()[i] - double.TimesA()[i]; d != want || d <= 0 {
			t.Fatalf("difference %d is %v, want %v", i, d, want)
		}
	}
}

func TestOrderOfARound(t *testing.T) {
	var order []byte
	side := func(name byte) Side {
		return Side{N: 1, Runs: []Run{func(int) (time.Duration, error) { order = append(order, name); return 1, nil }}}
	}
	p := &Pair{A: side('A'), B: side('B')}
	if err := Interleave(context.Background(), 2, []*Pair{p}, nil); err != nil {
		t.Fatal(err)
	}
	if got := string(order); got != "ABBABAAB" {
		t.Errorf("order of two rounds: %s, want ABBABAAB", got)
	}
}

// A fifth of the objects lie badly, on both sides: the median must be that of the others.
func TestInstancesInBadPlaces(t *testing.T) {
	used := map[string]bool{}
	side := func(name string, ns float64) Side {
		s := Side{N: 1000}
		for i := range 10 {
			cost := ns
			if i%5 == 0 {
				cost *= 1.1
			}
			s.Runs = append(s.Runs, func(n int) (time.Duration, error) {
				used[fmt.Sprint(name, i)] = true
				return time.Duration(cost * float64(n)), nil
			})
		}
		return s
	}
	p := &Pair{A: side("A", 50), B: side("B", 75)}
	if err := Interleave(context.Background(), 200, []*Pair{p}, nil); err != nil {
		t.Fatal(err)
	}
	if got := Summarize(p.Ratios()).Median; got != 1.5 {
		t.Errorf("ratio %v, want 1.5", got)
	}
	if len(used) != 20 {
		t.Errorf("%d of 20 instances were used", len(used))
	}
}

func TestEvery(t *testing.T) {
	one := Side{N: 1, Runs: []Run{func(int) (time.Duration, error) { return 1, nil }}}
	pairs := []*Pair{{A: one, B: one}, {A: one, B: one, Every: 4}}
	if err := Interleave(context.Background(), 10, pairs, nil); err != nil {
		t.Fatal(err)
	}
	if a, b := len(pairs[0].Ratios()), len(pairs[1].Ratios()); a != 10 || b != 3 {
		t.Errorf("%d and %d rounds, want 10 and 3", a, b)
	}
}

func TestInterleaveStops(t *testing.T) {
	broken := errors.New("broken")
	ok := Side{N: 1, Runs: []Run{func(int) (time.Duration, error) { return 1, nil }}}
	bad := Side{N: 1, Runs: []Run{func(int) (time.Duration, error) { return 0, broken }}}
	p := &Pair{Name: "this one", A: ok, B: bad}
	err := Interleave(context.Background(), 1, []*Pair{p}, nil)
	if !errors.Is(err, broken) || err.Error() != "this one: broken" {
		t.Errorf("got error %v, want it to name the pair and the cause", err)
	}
	if len(p.Ratios()) != 0 {
		t.Error("a round that failed left a ratio")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Interleave(ctx, 1, []*Pair{{A: ok, B: ok}}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want context.Canceled", err)
	}
}

func TestParallelSharesAllOperations(t *testing.T) {
	for _, n := range []int{0, 1, 7, 64, 1000} {
		var calls, loops atomic.Int64
		took, err := Parallel(7, func(n int) error { calls.Add(int64(n)); loops.Add(1); return nil })(n)
		if err != nil || took < 0 {
			t.Errorf("n = %d: took %v, error %v", n, took, err)
		}
		if calls.Load() != int64(n) || loops.Load() != 7 {
			t.Errorf("n = %d: %d operations in %d loops, want %d in 7", n, calls.Load(), loops.Load(), n)
		}
	}
	broken := errors.New("broken")
	if _, err := Parallel(2, func(int) error { return broken })(2); !errors.Is(err, broken) {
		t.Errorf("got error %v, want that of the loop", err)
	}
}

func TestSize(t *testing.T) {
	const perOp = 130 * time.Nanosecond
	total := 0
	s := Size(200*time.Microsecond, func(n int) (time.Duration, error) { total += n; return time.Duration(n) * perOp, nil })
	if s.N < 1500 || s.N > 1550 {
		t.Errorf("a batch of 200us of 130ns each has %d operations, want about 1538", s.N)
	}
	if total > 4*s.N {
		t.Errorf("finding that took %d operations, more than four batches", total)
	}
	if s := Size(time.Millisecond, func(int) (time.Duration, error) { return time.Second, nil }); s.N != 1 {
		t.Errorf("an operation longer than a batch: %d a batch, want 1", s.N)
	}
	if s := Size(time.Millisecond, func(int) (time.Duration, error) { return 0, errors.New("broken") }); s.N != 1 {
		t.Errorf("an operation that fails: %d a batch, want 1", s.N)
	}
}

var sink []byte

func TestAllocs(t *testing.T) {
	objects, bytes, err := Allocs(1000, func(n int) error {
		for range n {
			sink = make([]byte, 64)
			sink = make([]byte, 64)
		}
		return nil
	})
	if err != nil || objects < 2 || objects > 2.01 || bytes < 128 || bytes > 130 {
		t.Errorf("two slices of 64 bytes: %.3f objects, %.1f bytes, error %v", objects, bytes, err)
	}
	objects, bytes, err = Allocs(1000, func(int) error { return nil })
	if err != nil || objects > 0.001 || bytes > 1 {
		t.Errorf("nothing: %.4f objects, %.2f bytes, error %v", objects, bytes, err)
	}
	broken := errors.New("broken")
	if _, _, err := Allocs(1, func(int) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got error %v, want that of the loop", err)
	}
}
