package bulkhead

import (
	"slices"
	"time"
)

// evict makes room for a newcomer of the given weight by detaching as many of the oldest entries as needed, if all of
// those are stale, and takes the places in the same step; otherwise it changes nothing. Under mu.
func (b *Bulkhead) evict(t int64, weight int, tight bool) (uint64, bool) {
	if d := b.quietEnd - t; d > 0 && d <= int64(collectEvery) {
		b.arm(d)
		return 0, false // not even for a call of weight 1
	}
	word, next, ok := b.tryEvict(t, weight, tight)
	if !ok && weight == 1 {
		b.quietEnd = t + int64(next)
		b.arm(int64(next))
	}
	return word, ok
}

// tryEvict also answers when it is worth trying again.
func (b *Bulkhead) tryEvict(t int64, weight int, tight bool) (word uint64, next time.Duration, ok bool) {
	ceiling, loose, oldest := b.ceiling.Load(), false, time.Duration(-1)
	var stale []candidate
	b.entries(func(s *slot, st uint64) bool {
		a := age(st, t) + 1<<unitShift - 1 // rounded up: what is exactly Stale old is stale
		loose = loose || st&scoped == 0 && a > time.Second
		if st&kindMask != kindBusy || s.isPinned(st) {
			return true
		}
		oldest = max(oldest, a)
		if a >= b.settings.Stale {
			stale = append(stale, candidate{s, st, s.weight(st)})
		}
		return true
	})
	if loose {
		collect(t) // some of these may be lost
	}
	next = collectEvery
	if oldest >= 0 && b.settings.Expand > 1 {
		next = min(next, max(b.settings.Stale-oldest, time.Millisecond))
	}
	if len(stale) == 0 || b.settings.Expand == 1 {
		return 0, next, false
	}
	if tight {
		return 0, time.Second, false
	}
	// What is detached still runs: evicting moves places from live to detached and leaves their sum as it is.
	b.gate.Store(0)
	b.touch() // from here on live can only fall
	defer b.regate()
	live := int64(b.word.Load() & liveMask)
	if live+b.detached.Load()+int64(weight) > ceiling {
		return 0, time.Second, false
	}
	slices.SortFunc(stale, func(x, y candidate) int {
		if older(x.state, y.state) {
			return -1
		}
		return 1
	})
	need, gain, n := live+int64(weight)-b.bound.Load(), int64(0), 0
	for ; n < len(stale) && gain < need; n++ {
		gain += int64(stale[n].weight)
	}
	if gain < need {
		return 0, time.Second, false
	}
	gain = 0
	for _, c := range stale[:n] {
		if c.slot.state.CompareAndSwap(c.state, c.state&identity|kindDetached) {
			gain += int64(c.weight)
			b.evicted.Add(1)
			b.report(Evicted, c.slot, c.state, c.weight)
		} // else it left by itself, which is as good
	}
	for {
		word = b.word.Load()
		if b.word.CompareAndSwap(word, word+seqOne-uint64(gain)+uint64(weight)) {
			break
		}
	}
	b.detached.Add(gain)
	return word, 0, true
}

type candidate struct {
	slot   *slot
	state  uint64
	weight int
}

// arm lets refusals skip the clock and the lock for d, less a millisecond, unless calls may wait. Under mu.
func (b *Bulkhead) arm(d int64) {
	if d -= int64(time.Millisecond); d <= 0 || b.settings.Wait > 0 || b.quiet.Swap(true) {
		return
	}
	// A new timer each time: one that is reset may belong to another synctest bubble.
	time.AfterFunc(time.Duration(d), func() { b.quiet.Store(false) })
}

// unquiet makes the next call that finds no place look again. Under mu.
func (b *Bulkhead) unquiet() {
	b.quiet.Store(false)
	b.quietEnd = 0
}
