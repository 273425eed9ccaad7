package pressure

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const ms = time.Millisecond

func TestGrowth(t *testing.T) {
	w := newRing(800*ms, 100*ms)
	if _, _, ok := w.growth(); ok {
		t.Error("empty, and it grew")
	}
	for i := range 30 {
		at := time.Duration(i) * 100 * ms
		w.add(at, float64(i*i))
		by, over, ok := w.growth()
		if ok != (i >= 4) {
			t.Fatalf("after %v: %v", at, ok)
		}
		from := max(0, i-8)
		if ok && (by != float64(i*i-from*from) || over != time.Duration(i-from)*100*ms) {
			t.Fatalf("after %v: %v in %v", at, by, over)
		}
	}
	// A gap: the whole of it is what the figure stands for.
	w.add(10*time.Second, 900)
	if by, over, ok := w.growth(); !ok || by != 900-29*29 || over != 7100*ms {
		t.Errorf("over a gap: %v in %v, %v", by, over, ok)
	}
	// A counter that went back starts anew.
	w.add(10100*ms, 5)
	if _, _, ok := w.growth(); ok {
		t.Error("it went back, and it grew")
	}
	for i := range 4 {
		w.add(10200*ms+time.Duration(i)*100*ms, 6+float64(i))
	}
	if by, over, ok := w.growth(); !ok || by != 4 || over != 400*ms {
		t.Errorf("anew: %v in %v, %v", by, over, ok)
	}
}

func TestMean(t *testing.T) {
	w := newRing(runnableSpan, 100*ms)
	w.add(0, 7)
	if w.mean() != 7 {
		t.Errorf("a lone value: %v", w.mean())
	}
	// A step from 0 to 3.5 is at 2 after three samples: that is how fast the runnable signal is.
	w = newRing(runnableSpan, 100*ms)
	for i := range 10 {
		w.add(time.Duration(i)*100*ms, 0)
	}
	for i, want := range []float64{0.875, 1.75, 2.625, 3.5, 3.5, 3.5} {
		w.add(time.Duration(10+i)*100*ms, 3.5)
		if got := w.mean(); math.Abs(got-want) > 1e-9 {
			t.Errorf("%d after the step: %v, want %v", i+1, got, want)
		}
	}
	// A value that was seen after a gap counts for the gap.
	w.add(1800*ms, 10)
	if got, want := w.mean(), (3.5*100+10*300)/400; math.Abs(got-want) > 1e-9 {
		t.Errorf("after a gap: %v, want %v", got, want)
	}
}

// With any spacing of samples the mean lies between the smallest and the largest value of the window, and growth is the
// difference of two values that were added.
func TestRingAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		period := time.Duration(rapid.IntRange(10, 1000).Draw(t, "period")) * ms
		w := newRing(500*ms, period)
		now, counter := time.Duration(0), 0.0
		var at []time.Duration
		var values []float64
		for range rapid.IntRange(1, 60).Draw(t, "n") {
			now += time.Duration(rapid.IntRange(1, 3000).Draw(t, "gap")) * ms
			counter += float64(rapid.IntRange(0, 9).Draw(t, "step"))
			at, values = append(at, now), append(values, counter)
			w.add(now, counter)
			m := w.mean()
			if m > counter || m < values[0] {
				t.Fatalf("mean %v of %v", m, values)
			}
			if by, over, ok := w.growth(); ok {
				found := false
				for i := range at {
					found = found || at[i] == now-over && values[i] == counter-by
				}
				if !found || over < w.span/2 {
					t.Fatalf("%v in %v is no difference of %v at %v", by, over, values, at)
				}
			}
		}
	})
}
