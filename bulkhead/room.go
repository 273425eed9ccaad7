package bulkhead

import (
	"context"
	"time"
)

// room is the waiting room: a list for each level. All of it is guarded by Bulkhead.mu.
//
// In ordinary times the oldest of the highest level is next, and waits as long as Config.Wait allows. Once the oldest has
// stood longer than an allowance for a whole interval, waiting does not level a burst any more, it only adds
// latency: then the newest is next and whoever has waited longer than the allowance is refused, until an
// interval passes in which nobody had to be, or the room empties. The allowance is twice the mean service time
// within 5..50 ms, the interval twenty times that mean within 100..500 ms (the thresholds of CoDel, which is
// 5 and 100 ms for a link, scaled to the service).
type room struct {
	levels   [Levels]list
	turn     [Levels]*waiter // a heavy waiter whose turn it is; nobody of its level overtakes it
	count    int
	capacity int
	standing bool  // overload stands
	calm     int64 // the last time the oldest was within its allowance, or that nobody was refused while overload stood
}

type list struct{ front, back *waiter }

type waiter struct {
	weight, level int
	since         int64
	queued        bool
	prev, next    *waiter

	// word and outcome are the answer, written before ready is sent to.
	word    uint64
	outcome Outcome
	ready   chan struct{}
}

func allowance(service int64) int64 {
	if service == 0 {
		return int64(50 * time.Millisecond)
	}
	return max(int64(5*time.Millisecond), min(2*service, int64(50*time.Millisecond)))
}

func interval(service int64) int64 {
	if service == 0 {
		return int64(500 * time.Millisecond)
	}
	return max(int64(100*time.Millisecond), min(20*service, int64(500*time.Millisecond)))
}

// enqueue lets a call wait, if need be in the place of the newest of the least important. Nil: the room is full. Under mu.
func (b *Bulkhead) enqueue(t int64, d *Demand) *waiter {
	r := &b.room
	if r.count >= r.capacity {
		last := Levels - 1
		for last > d.Level && r.levels[last].back == nil {
			last--
		}
		if last <= d.Level {
			return nil
		}
		r.answer(r.levels[last].back, 0, Full)
	}
	w := &waiter{weight: d.Weight, level: d.Level, since: t, ready: make(chan struct{}, 1)}
	if r.count == 0 {
		r.calm, r.standing = t, false
	}
	r.push(w)
	b.regate()
	b.serve(t) // whoever left before the gate was shut did not see the waiter
	return w
}

// serve admits as many waiting calls as fit, in order. Under mu.
func (b *Bulkhead) serve(t int64) {
	r := &b.room
	if r.count == 0 {
		return
	}
	r.judge(t, b.service.Load())
	for w := r.first(); w != nil; w = r.first() {
		if int64(w.weight) > b.ceiling.Load() {
			r.answer(w, 0, TooHeavy)
			continue
		}
		word, ok := b.admitLocked(w.weight)
		if !ok {
			if w.weight > 1 {
				r.turn[w.level] = w
			}
			break
		}
		r.answer(w, word, Taken)
	}
	if r.count == 0 {
		r.standing = false
		b.regate()
	}
	b.waiting.Store(int64(r.count))
}

// judge decides whether overload stands, and while it does refuses those who have waited too long.
func (r *room) judge(t, service int64) {
	limit, span := allowance(service), interval(service)
	if !r.standing {
		switch {
		case t-r.oldest(t) <= limit:
			r.calm = t
		case t-r.calm > span:
			r.standing, r.calm = true, t
		}
	}
	if !r.standing {
		return
	}
	for l := range r.levels {
		for w := r.levels[l].front; w != nil && t-w.since > limit; w = r.levels[l].front {
			r.answer(w, 0, Full)
			r.calm = t
		}
	}
	if t-r.calm > span {
		r.standing, r.calm = false, t
	}
}

// oldest is when the oldest waiter came.
func (r *room) oldest(t int64) int64 {
	for _, l := range r.levels {
		if l.front != nil {
			t = min(t, l.front.since)
		}
	}
	return t
}

// first is the waiter whose turn it is.
func (r *room) first() *waiter {
	for l := range r.levels {
		switch {
		case r.turn[l] != nil:
			return r.turn[l]
		case r.levels[l].front == nil:
		case r.standing:
			return r.levels[l].back
		default:
			return r.levels[l].front
		}
	}
	return nil
}

// ahead reports whether somebody of this level or a higher one waits.
func (r *room) ahead(level int) bool {
	for _, l := range r.levels[:level+1] {
		if l.front != nil {
			return true
		}
	}
	return false
}

func (r *room) push(w *waiter) {
	l := &r.levels[w.level]
	w.queued, w.prev = true, l.back
	if l.back == nil {
		l.front = w
	} else {
		l.back.next = w
	}
	l.back = w
	r.count++
}

func (r *room) remove(w *waiter) {
	l := &r.levels[w.level]
	if w.prev == nil {
		l.front = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.back = w.prev
	} else {
		w.next.prev = w.prev
	}
	if r.turn[w.level] == w {
		r.turn[w.level] = nil
	}
	w.queued, w.prev, w.next = false, nil, nil
	r.count--
}

// answer takes a waiter out and tells it; ready has room for the one answer that it ever gets.
func (r *room) answer(w *waiter, word uint64, out Outcome) {
	r.remove(w)
	w.word, w.outcome = word, out
	w.ready <- struct{}{}
}

func (r *room) dismiss(out Outcome) {
	for l := range r.levels {
		for r.levels[l].front != nil {
			r.answer(r.levels[l].front, 0, out)
		}
	}
}

// pollEvery bounds how late a waiter notices a place that was freed by the garbage collector, which cannot wake anybody.
const pollEvery = 250 * time.Millisecond

// await waits for the answer, the end of the context, or the longest wait.
func (b *Bulkhead) await(ctx context.Context, w *waiter, t int64, longest time.Duration) (uint64, Outcome) {
	var done <-chan struct{}
	if ctx != nil {
		done = ctx.Done()
	}
	end := t + int64(longest)
	timer := time.NewTimer(min(longest, pollEvery))
	defer timer.Stop()
	for {
		out := Full
		select {
		case <-w.ready:
			return w.word, w.outcome
		case <-done:
			out = Ended
		case <-timer.C:
			if rest := end - now(); rest > 0 {
				b.lock()
				b.serve(now())
				b.mu.Unlock()
				timer.Reset(min(time.Duration(rest), pollEvery))
				continue
			}
		}
		b.lock()
		if w.queued {
			b.room.remove(w)
			b.regate()
			b.serve(now()) // it may have stood in a lighter one's way
			b.mu.Unlock()
			return 0, out
		}
		b.mu.Unlock()
		<-w.ready // answered at the same instant
		if out == Ended && w.outcome == Taken {
			b.word.Add(-uint64(w.weight))
			b.lock()
			b.serve(now())
			b.mu.Unlock()
			return 0, Ended
		}
		return w.word, w.outcome
	}
}
