package bulkhead

import (
	"slices"
	"time"
)

// evict makes room for a call of the given weight by detaching as many of the oldest entries as needed, if all of
// those are stale, and takes the places in the same step; otherwise it changes nothing. Under mu.
//
// A no is remembered, for as long as nothing can become stale, and for this and heavier calls.
func (b *Bulkhead) evict(t int64, weight int, tight bool) (uint64, bool) {
	if d := b.quietEnd - t; weight >= b.quietWeight && d > 0 && d <= int64(collectEvery) {
		b.arm(t)
		return 0, false
	}
	word, no := b.tryEvict(t, weight, tight)
	if no.until == 0 {
		return word, true
	}
	b.quietEnd, b.quietWeight = t+int64(no.until), no.weight
	b.arm(t)
	return 0, false
}

// refusal says for how long no call of this weight or more need try to evict again. Until is 0 if one was not refused.
type refusal struct {
	until  time.Duration
	weight int
}

// recheck is how soon evicting is tried again when what forbade it does not depend on any entry's age.
const recheck = 250 * time.Millisecond

func (b *Bulkhead) tryEvict(t int64, weight int, tight bool) (uint64, refusal) {
	stale, next := b.stale(t)
	switch {
	case len(stale) == 0 || b.settings.Expand == 1:
		return 0, refusal{next, 1}
	case tight:
		return 0, refusal{recheck, 1}
	}
	return b.displace(stale, weight)
}

// displace puts a call of the given weight in the place of the oldest of these entries. Under mu.
func (b *Bulkhead) displace(stale []candidate, weight int) (word uint64, no refusal) {
	b.quiet.Store(false) // a shut gate is no reason to refuse at once
	b.gate.Store(0)
	b.touch() // from here on live can only fall
	defer b.regate()
	live := int64(b.word.Load() & liveMask)
	// What is detached still runs: evicting moves places from live to detached and leaves their sum as it is.
	if live+b.detached.Load()+int64(weight) > b.ceiling.Load() {
		return 0, refusal{recheck, weight}
	}
	sum := int64(0)
	for _, c := range stale {
		sum += int64(c.weight)
	}
	if live-sum+int64(weight) > b.bound.Load() {
		return 0, refusal{recheck, weight}
	}
	slices.SortFunc(stale, func(x, y candidate) int {
		if older(x.state, y.state) {
			return -1
		}
		return 1
	})
	n, gain := 0, int64(0)
	for {
		word = b.word.Load()
		if int64(word&liveMask)-gain+int64(weight) <= b.bound.Load() {
			if b.word.CompareAndSwap(word, word+seqOne-uint64(gain)+uint64(weight)) {
				break
			}
			continue
		}
		if n == len(stale) { // some left by themselves at this instant, and their places are not free yet
			b.reinstate(stale)
			return 0, refusal{time.Millisecond, weight}
		}
		c := &stale[n]
		n++
		c.report = b.describe(Evicted, c.slot, c.state, c.weight)
		if c.slot.state.CompareAndSwap(c.state, c.state&identity|kindDetached) {
			c.detached = true
			gain += int64(c.weight)
		} // else it left by itself, and live falls
	}
	b.detached.Add(gain)
	for _, c := range stale {
		if c.detached {
			b.evicted.Add(1)
			b.file(c.report)
		}
	}
	return word, refusal{}
}

// candidate is an entry that may be evicted.
type candidate struct {
	slot     *slot
	state    uint64
	weight   int
	detached bool
	report   Report
}

// stale lists the entries that may be evicted, and says in how long there can be another.
func (b *Bulkhead) stale(t int64) (list []candidate, next time.Duration) {
	loose, oldest := false, time.Duration(0) // an entry that is not to be seen yet may be all there is
	b.entries(func(s *slot, st uint64) bool {
		a := age(st, t) + 1<<unitShift - 1 // rounded up: what is exactly Stale old is stale
		loose = loose || st&scoped == 0 && a > time.Second
		if st&kindMask != kindBusy || s.isPinned(st) {
			return true
		}
		oldest = max(oldest, a)
		if a >= b.settings.Stale {
			list = append(list, candidate{slot: s, state: st, weight: s.weight(st)})
		}
		return true
	})
	if loose {
		collect(t) // some of these may be lost
	}
	next = collectEvery
	if b.settings.Expand > 1 {
		next = min(next, max(b.settings.Stale-oldest, time.Millisecond))
	}
	return list, next
}

// reinstate takes an eviction back. Whoever left meanwhile counts as detached until it gets mu.
func (b *Bulkhead) reinstate(list []candidate) {
	gone := int64(0)
	for _, c := range list {
		if c.detached && !c.slot.state.CompareAndSwap(c.state&identity|kindDetached, c.state) {
			gone += int64(c.weight)
		}
	}
	b.word.Add(-uint64(gone))
	b.detached.Add(gone)
}

// arm lets refusals skip the clock and the lock until a millisecond before quietEnd, unless a call may wait, the Expander
// wants to be asked, or the gate is not the bound: always shut, or lowered by Watch. Under mu.
func (b *Bulkhead) arm(t int64) {
	end := b.quietEnd
	if b.expander != nil && b.bound.Load() < b.ceiling.Load() {
		end = min(end, b.askAfter.Load())
	}
	d := time.Duration(end-t) - time.Millisecond
	if d <= 0 || b.quietWeight > 1 || b.settings.Wait > 0 || b.gate.Load() < b.effective() || b.quiet.Swap(true) {
		return
	}
	// A new timer each time: one that is reset may belong to another synctest bubble.
	time.AfterFunc(d, func() { b.quiet.Store(false) })
	if b.lostWeight.Load() != 0 {
		b.quiet.Store(false) // a detached place was lost meanwhile
	}
}

// unquiet makes the next call that finds no place look again. Under mu.
func (b *Bulkhead) unquiet() {
	b.quiet.Store(false)
	b.quietEnd = 0
}
