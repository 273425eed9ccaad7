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
// 5 and 100 ms for a link, scaled to the service). All of this is looked at when somebody comes, leaves or gives up, and
// by each waiter every pollEvery.
//
// A heavy waiter whose turn it is keeps it until enough places are free. One that outweighs the bound in force is passed
// over until the bound has grown, since no place that is given back could let it in.
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
	if r.count == 0 {
		r.standing = false
	}
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
	r.push(w)
	b.regate()
	b.serve(t) // whoever left before the gate was shut did not see the waiter
	return w
}

// next is the waiter whose turn it is. Under mu.
func (b *Bulkhead) next() *waiter { return b.room.first(b.effective()) }

// relieve is serve, and gives those whose turn it then is the places of stuck calls. Under mu.
func (b *Bulkhead) relieve(t int64, tight bool) {
	b.serve(t)
	for w := b.next(); w != nil; w = b.next() {
		word, ok := b.evict(t, w.weight, tight)
		if !ok {
			return
		}
		b.room.answer(w, word, Taken)
		b.tidy()
		b.serve(t) // more may have come free than were needed
	}
}

// serve admits as many waiting calls as fit, in order. Under mu.
func (b *Bulkhead) serve(t int64) {
	r := &b.room
	if r.count == 0 {
		return
	}
	r.judge(t, b.service.Load())
	for w := b.next(); w != nil; w = b.next() {
		word, ok := b.admitLocked(w.weight)
		if !ok {
			if w.weight > 1 {
				r.turn[w.level] = w
			}
			break
		}
		r.answer(w, word, Taken)
	}
	b.tidy()
}

// tidy follows every departure from the room. Under mu.
func (b *Bulkhead) tidy() {
	if b.room.count == 0 {
		b.regate()
	}
	b.waiting.Store(int64(b.room.count))
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
func (r *room) first(bound int64) *waiter {
	for l := range r.levels {
		if w := r.turn[l]; w != nil && int64(w.weight) <= bound {
			return w
		}
		w := r.levels[l].front
		if r.standing {
			w = r.levels[l].back
		}
		for w != nil && int64(w.weight) > bound {
			if r.standing {
				w = w.prev
			} else {
				w = w.next
			}
		}
		if w != nil {
			return w
		}
	}
	return nil
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

// dismiss answers all that weigh more than so much.
func (r *room) dismiss(out Outcome, than int64) {
	for l := range r.levels {
		for w := r.levels[l].front; w != nil; {
			next := w.next
			if int64(w.weight) > than {
				r.answer(w, 0, out)
			}
			w = next
		}
	}
}

// pollEvery bounds how late a waiter notices what nobody wakes it for: a place that was freed by the garbage collector or
// became stale.
const pollEvery = 250 * time.Millisecond

// nap is how long a waiter sleeps before it looks for itself. Under mu.
func (b *Bulkhead) nap(w *waiter, t, end int64) time.Duration {
	d := min(end-t, int64(pollEvery))
	if first := b.next(); first != nil && first != w {
		return time.Duration(d) // one who looks in time is enough
	}
	if stale := b.quietEnd + 2<<unitShift - t; b.settings.Expand > 1 && stale > 0 {
		d = min(d, stale)
	}
	if ask := b.askAfter.Load() + 1 - t; b.expander != nil && ask > 0 && b.bound.Load() < b.ceiling.Load() {
		d = min(d, max(ask, int64(time.Millisecond))) // an Expander that asks for no pause gets one
	}
	return time.Duration(d)
}

// await waits for the answer, the end of the context, or the end of the wait. Whatever foreign code in it does, a waiter that does not
// return leaves nothing behind.
func (b *Bulkhead) await(ctx context.Context, done <-chan struct{}, w *waiter, nap time.Duration, end int64) (word uint64, out Outcome) {
	returned := false
	defer func() {
		if !returned {
			b.abandon(w)
		}
	}()
	word, out = b.waitFor(ctx, done, w, nap, end)
	returned = true
	return word, out
}

func (b *Bulkhead) waitFor(ctx context.Context, done <-chan struct{}, w *waiter, nap time.Duration, end int64) (uint64, Outcome) {
	timer := time.NewTimer(nap)
	defer timer.Stop()
	for {
		out, tight := Full, false
		select {
		case <-w.ready:
			return b.accept(ctx, w)
		case <-done:
			out = Ended
		case <-timer.C:
			b.expand(now(), w.weight) // nobody else may come to ask
			tight = b.tight()
		}
		b.lock()
		t := now()
		if out == Full {
			b.relieve(t, tight)
			if w.queued && t < end {
				timer.Reset(b.nap(w, t, end))
				b.mu.Unlock()
				continue
			}
		}
		if w.queued {
			b.withdraw(w, t)
			b.mu.Unlock()
			return 0, out
		}
		b.mu.Unlock()
		<-w.ready // answered at the same instant
		return b.accept(ctx, w)
	}
}

// withdraw takes out a waiter that was not answered. Under mu.
func (b *Bulkhead) withdraw(w *waiter, t int64) {
	b.room.remove(w)
	b.tidy()
	b.serve(t) // it may have stood in a lighter one's way
}

// abandon is for a waiter whose goroutine panicked or ended.
func (b *Bulkhead) abandon(w *waiter) {
	b.lock()
	queued := w.queued
	if queued {
		b.withdraw(w, now())
	}
	b.mu.Unlock()
	if !queued && w.outcome == Taken {
		b.release(w.weight)
	}
}

// accept takes a waiter's answer. A place for a call that was cancelled at the same instant goes to the next.
func (b *Bulkhead) accept(ctx context.Context, w *waiter) (uint64, Outcome) {
	if w.outcome == Taken && ctx != nil && ctx.Err() != nil {
		b.release(w.weight)
		return 0, Ended
	}
	return w.word, w.outcome
}
