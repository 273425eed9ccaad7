package bulkhead

import (
	"math/bits"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/petermattis/goid"
	"github.com/spillway-go/spillway/internal/goroutine"
)

// slot is a place in the queue of entries in flight. Whoever moved its state away from free owns the other fields,
// until it moves it back.
type slot struct {
	state atomic.Uint64
	// goroutine took the entry. It is right whenever the state is busy or detached: a claim that has to change it
	// passes through kindClaimed.
	goroutine atomic.Uint64
	// token is held by the slot while the slot is free or its entry is scoped, and by the Permit alone otherwise, so
	// that a lost Permit makes the token unreachable. Nil too before the first Permit.
	token *token
	extra atomic.Pointer[extra] // made when first needed, then kept
}

// extra is what only some entries have.
type extra struct {
	weight atomic.Int64
	owner  atomic.Pointer[any]
	site   [3]atomic.Uintptr
	sited  atomic.Uint64 // identity of the entry that site belongs to, and the flags below
}

// Flags in sited, where a state has its kind.
const (
	worn   = uint64(1) << 63 // the goroutine that took the place put its badge on for it
	pinned = uint64(1) << 62 // the entry is never evicted
)

func (s *slot) needExtra() *extra {
	if x := s.extra.Load(); x != nil {
		return x
	}
	x := new(extra)
	if !s.extra.CompareAndSwap(nil, x) {
		return s.extra.Load()
	}
	return x
}

// weight of the entry whose state was read before; meaningful only if the state is still the same afterwards.
func (s *slot) weight(state uint64) int {
	if state&special == 0 {
		return 1
	}
	return int(s.extra.Load().weight.Load())
}

func (s *slot) isPinned(state uint64) bool {
	x := s.extra.Load()
	return x != nil && x.sited.Load()&^worn == state&identity|pinned
}

// table holds the slots. A scoped entry stands at the home of its goroutine or soon after, so that a nested call is
// found; any other stands there too if it can, and else wherever its number sends it, since one goroutine can hold
// thousands. The table grows by doubling; entries stay where they are, and older tables stay readable behind the newest.
type table struct {
	slots []slot
	shift uint
	// reach is the greatest distance from its home that a scoped entry was ever put at.
	reach atomic.Int64
	prev  *table
	home  *Bulkhead // for the cleanup of a lost permit, which reaches the table weakly
}

// probeLimit is how far a claim looks before it asks for a larger table.
const probeLimit = 8

func ceilPow2(n int) int { return 1 << bits.Len(uint(max(n, 1)-1)) }

func newTable(b *Bulkhead, n int, prev *table) *table {
	return &table{slots: make([]slot, n), shift: uint(64 - bits.Len(uint(n-1))), prev: prev, home: b}
}

// at is the slot n steps from the one that a number hashes to.
func (t *table) at(number uint64, n int) *slot {
	const fibonacci = 0x9E3779B97F4A7C15
	return &t.slots[(int(number*fibonacci>>(t.shift&63))+n)&(len(t.slots)-1)]
}

// index is where a slot stands in the table, if it does.
func (t *table) index(s *slot) (int, bool) {
	first := uintptr(unsafe.Pointer(&t.slots[0]))
	i := (uintptr(unsafe.Pointer(s)) - first) / unsafe.Sizeof(*s)
	return int(i), i < uintptr(len(t.slots))
}

// claim finds a slot for an entry that is already counted in the word.
//
//go:noinline
func (b *Bulkhead) claim(id, state uint64) *slot {
	number := id
	if state&scoped == 0 {
		number = state >> startBits & seqMask
	}
	t := b.table.Load()
	for n := 0; ; n++ {
		s := t.at(number, n)
		was := s.state.Load()
		if was&kindMask == kindFree && s.state.CompareAndSwap(was, kindClaimed|state&identity) {
			s.goroutine.Store(id)
			if state&scoped != 0 {
				for r := t.reach.Load(); int64(n) > r && !t.reach.CompareAndSwap(r, int64(n)); {
					r = t.reach.Load()
				}
			}
			if state&kindMask == kindBusy {
				s.state.Store(state)
			}
			return s
		}
		if n < probeLimit {
			continue
		}
		if larger := b.grow(t); larger != t {
			t, n = larger, -1
		} else if n == len(t.slots) {
			runtime.Gosched()
			n = -1
		}
	}
}

// grow doubles a table that is at least half full, unless somebody else did. Since there are never more entries than
// the ceiling, a table of twice that is never full.
func (b *Bulkhead) grow(old *table) *table {
	if len(old.slots) > 2*(int(b.word.Load()&liveMask)+int(b.detached.Load())) {
		return b.table.Load()
	}
	b.growing.Lock()
	defer b.growing.Unlock()
	t := b.table.Load()
	if t == old {
		t = newTable(b, 2*len(old.slots), old)
		b.table.Store(t)
	}
	return t
}

// entries calls f for every entry that is busy or detached, until f returns false. It stops no call: what it sees is
// each slot's state at one instant, not the whole at one.
func (b *Bulkhead) entries(f func(s *slot, state uint64) bool) {
	for t := b.table.Load(); t != nil; t = t.prev {
		for i := range t.slots {
			s := &t.slots[i]
			st := s.state.Load()
			if k := st & kindMask; (k == kindBusy || k == kindDetached) && !f(s, st) {
				return
			}
		}
	}
}

// RunsHere reports whether a scoped entry belongs to this goroutine: then the call that asks is nested in that entry's.
// The state is read before the number: only this goroutine writes its own number into a slot.
func (b *Bulkhead) RunsHere() bool {
	id := uint64(goid.Get())
	if !goroutine.Fast() {
		id = goroutine.ID()
	}
	s, _ := b.scopedOf(id)
	return s != nil
}

// scopedOf finds the scoped entry of a goroutine; nil: it has none.
func (b *Bulkhead) scopedOf(id uint64) (*slot, uint64) {
	for t := b.table.Load(); t != nil; t = t.prev {
		for n := range min(int(t.reach.Load())+1, len(t.slots)) {
			s := t.at(id, n)
			if st := s.state.Load(); holdsScoped(st) && s.goroutine.Load() == id {
				return s, st
			}
		}
	}
	return nil, 0
}

func holdsScoped(state uint64) bool {
	k := state & kindMask
	return state&scoped != 0 && (k == kindBusy || k == kindDetached)
}
