package pressure

import "time"

// ring keeps the points of the last span of time, and the newest one that is older, so that the whole span is covered.
type ring struct {
	span  time.Duration
	list  []point
	first int
	n     int
}

type point struct {
	at    time.Duration
	value float64
}

// newRing makes a ring for one point every period.
func newRing(span, period time.Duration) ring {
	span = max(span, period)
	return ring{span: span, list: make([]point, span/period+2)}
}

func (w *ring) at(i int) *point { return &w.list[(w.first+i)%len(w.list)] }

func (w *ring) reset() { w.n = 0 }

func (w *ring) add(at time.Duration, value float64) {
	// Ticks come early as often as late: what is almost a span old counts as that old.
	slack := w.span / 50
	for w.n >= 2 && at-w.at(1).at >= w.span-slack || w.n == len(w.list) {
		w.first = (w.first + 1) % len(w.list)
		w.n--
	}
	w.n++
	*w.at(w.n - 1) = point{at, value}
}

// growth is by how much a counter grew over the span, or over the shorter time since the first point. ok is false before
// half of the span is covered. A counter that went back starts anew.
func (w *ring) growth() (by float64, over time.Duration, ok bool) {
	if w.n < 2 {
		return 0, 0, false
	}
	oldest, newest := w.at(0), w.at(w.n-1)
	if newest.value < w.at(w.n-2).value {
		w.first, w.n = (w.first+w.n-1)%len(w.list), 1
		return 0, 0, false
	}
	over = newest.at - oldest.at
	return newest.value - oldest.value, over, over > 0 && over >= w.span/2
}

// mean weighs each value by the time since the point before it, so that one seen after a gap counts for the whole gap. A lone
// point is its own mean.
func (w *ring) mean() float64 {
	newest := w.at(w.n - 1)
	if w.n == 1 {
		return newest.value
	}
	begin := newest.at - w.span
	sum, over := 0.0, time.Duration(0)
	for i := 1; i < w.n; i++ {
		from, p := max(begin, w.at(i-1).at), w.at(i)
		if p.at > from {
			sum += p.value * float64(p.at-from)
			over += p.at - from
		}
	}
	if over <= 0 {
		return newest.value
	}
	return sum / float64(over)
}
