package bulkhead

import (
	"slices"
	"time"
)

// Snapshot is a bulkhead at one moment. Taking it stops no call that finds a place, so that Oldest and Admitted can be a few
// calls apart from the rest.
type Snapshot struct {
	Limit    int // N as configured
	Bound    int // in force
	Max      int // Expand x N
	InFlight int // places taken by live calls
	Detached int // places of evicted calls that still run; InFlight + Detached never exceed Max
	Waiting  int
	Oldest   time.Duration // age of the oldest live call, 0 without any
	Admitted uint64        // calls since New
	Lost     uint64        // permits that became unreachable
	Evicted  uint64        // calls that lost their place to a newcomer
}

// Entry is one call in flight.
type Entry struct {
	Goroutine uint64 // that took the place
	Age       time.Duration
	Weight    int
	Detached  bool
	Pinned    bool
	Owner     any
}

// Snapshot returns the figures of this moment, in time proportional to the slots (some two per call of the peak).
func (b *Bulkhead) Snapshot() Snapshot {
	b.lock()
	t, touches := now(), b.touches.Load() // before the word: each belongs to a number that was given out
	word := b.word.Load()
	s := Snapshot{
		Limit:    int(b.limit.Load()),
		Bound:    int(b.bound.Load()),
		Max:      int(b.ceiling.Load()),
		InFlight: int(word & liveMask),
		Detached: int(b.detached.Load() - b.lostWeight.Load()),
		Waiting:  b.room.count,
		Lost:     b.lost.Load(),
		Evicted:  b.evicted.Load(),
	}
	// A place that is about to be found unused is still in the difference; a counter must not go back.
	b.admitted = max(b.admitted, word>>liveBits-touches)
	s.Admitted = b.admitted
	b.mu.Unlock()
	b.entries(func(_ *slot, st uint64) bool {
		if st&kindMask == kindBusy {
			s.Oldest = max(s.Oldest, age(st, t))
		}
		return true
	})
	return s
}

// Admitted is the number of calls that were admitted so far. It may be a few calls off, and go back by as many.
func (b *Bulkhead) Admitted() uint64 {
	touches := b.touches.Load()
	return b.word.Load()>>liveBits - touches
}

// Late returns how many places, those of detached calls included, are held by calls that are older than slow says for their owner,
// and how many there are, in time proportional to the slots.
func (b *Bulkhead) Late(slow func(owner any) time.Duration) (late, all int) {
	t := now()
	b.entries(func(s *slot, st uint64) bool {
		weight := s.weight(st)
		all += weight
		if age(st, t) > slow(b.ownerOf(s, st)) {
			late += weight
		}
		return true
	})
	return late, all
}

// Place is where a call in flight stands. Places can be compared.
type Place struct{ slot *slot }

// Holds reports whether the call of that identity still has the place, or has lost it to a newcomer and still runs.
func (p Place) Holds(id uint64) bool {
	st := p.slot.state.Load()
	k := st & kindMask
	return st&identity == id && (k == kindBusy || k == kindDetached)
}

// LateEntry is a call in flight that is older than its owner's slow.
type LateEntry struct {
	Owner     any
	Slow, Age time.Duration
	Goroutine uint64 // that took the place
	Site      Site   // where its permit was taken; zero for a call that has none
	Scoped    bool   // it ends on that goroutine, before the function that took the place returns
	Place     Place
	Identity  uint64 // tells the call from the others of its place
}

// EachLate calls f for every call in flight, detached ones included but not pinned ones, that is at least as old at a reading of package clock as slow says for its
// owner. It stops no call, takes no lock, and is quick if nothing is in flight.
func (b *Bulkhead) EachLate(now int64, slow func(owner any) time.Duration, f func(LateEntry)) {
	if b.word.Load()&liveMask == 0 && b.detached.Load() == 0 {
		return
	}
	b.entries(func(s *slot, st uint64) bool {
		if s.isPinned(st) {
			return true
		}
		e := LateEntry{Owner: b.ownerOf(s, st), Age: age(st, now), Scoped: st&scoped != 0, Place: Place{s}, Identity: st & identity}
		if e.Slow = slow(e.Owner); e.Age < e.Slow {
			return true
		}
		e.Goroutine, e.Site = s.goroutine.Load(), s.siteOf(st)
		if e.Place.Holds(e.Identity) {
			f(e)
		}
		return true
	})
}

// ownerOf the entry whose state was read before.
func (b *Bulkhead) ownerOf(s *slot, st uint64) any {
	if x := s.extra.Load(); st&special != 0 && x != nil {
		if o := x.owner.Load(); o != nil {
			return *o
		}
	}
	return b.owner
}

// InFlight is the number of places taken by live calls.
func (b *Bulkhead) InFlight() int { return int(b.word.Load() & liveMask) }

// Waiting is the number of calls in the waiting room.
func (b *Bulkhead) Waiting() int { return int(b.waiting.Load()) }

// Bound is the bound in force.
func (b *Bulkhead) Bound() int { return int(b.bound.Load()) }

// Idle reports whether nothing is in flight, detached or waiting, and how long ago the last call started.
func (b *Bulkhead) Idle() (idle bool, since time.Duration) {
	b.lock()
	idle = b.word.Load()&liveMask == 0 && b.detached.Load() == b.lostWeight.Load() && b.room.count == 0
	b.mu.Unlock()
	t := now()
	since = startMask << unitShift
	for tab := b.table.Load(); tab != nil; tab = tab.prev {
		for i := range tab.slots {
			if st := tab.slots[i].state.Load(); st != 0 {
				since = min(since, age(st, t))
			}
		}
	}
	return idle, since
}

// Entries lists the calls in flight, oldest first.
func (b *Bulkhead) Entries() []Entry {
	type dated struct {
		Entry
		state uint64
	}
	var found []dated
	t := now()
	b.entries(func(s *slot, st uint64) bool {
		e := Entry{Goroutine: s.goroutine.Load(), Age: max(0, age(st, t)), Weight: s.weight(st),
			Detached: st&kindMask == kindDetached, Pinned: s.isPinned(st), Owner: b.ownerOf(s, st)}
		if s.state.Load() == st { // else it left, or changed, while we looked
			found = append(found, dated{e, st})
		}
		return true
	})
	slices.SortFunc(found, func(x, y dated) int {
		if older(x.state, y.state) {
			return -1
		}
		return 1
	})
	list := make([]Entry, len(found))
	for i, e := range found {
		list[i] = e.Entry
	}
	return list
}
