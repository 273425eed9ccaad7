package bulkhead

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/spillway-go/spillway/internal/goroutine"
)

// token stands for the right to give a place back. Each slot has one; during a call only the Permit holds it, so that
// it becomes unreachable with the last copy of the Permit. It lives on the heap beside the slot because a
// cleanup needs an object of its own.
type token struct {
	slot *slot
	home *Bulkhead
}

// where finds a slot without keeping its bulkhead alive.
type where struct {
	table weak.Pointer[table]
	index int
}

func (b *Bulkhead) newToken(s *slot) *token {
	tok := &token{s, b}
	for t := b.table.Load(); t != nil; t = t.prev {
		if i, ok := t.index(s); ok {
			runtime.AddCleanup(tok, reclaim, where{weak.Make(t), i})
			break
		}
	}
	return tok
}

// reclaim frees the place of a lost permit. It runs on the garbage collector's cleanup goroutine (outside of any
// synctest bubble), so it takes no lock that a call waits for and wakes nobody: atomics only.
func reclaim(w where) {
	t := w.table.Value()
	if t == nil {
		return // the bulkhead itself is garbage
	}
	b, s := t.home, &t.slots[w.index]
	for {
		st := s.state.Load()
		if k := st & kindMask; k != kindBusy && k != kindDetached {
			return
		}
		if !s.state.CompareAndSwap(st, st|kindClaimed) {
			continue // evicted at this very instant
		}
		weight, id := s.weight(st), st&identity
		b.file(b.describe(Lost, s, st, weight))
		s.state.Store(id)
		if st&kindMask == kindBusy {
			b.word.Add(-uint64(weight))
		} else {
			b.lostWeight.Add(int64(weight))
		}
		b.lost.Add(1)
		b.quiet.Store(false)
		return
	}
}

// Site is where a permit was taken. The zero Site is none.
type Site = goroutine.Site

// note says where a permit is taken. Most permits of a place are taken where the last one was.
func (s *slot) note(state uint64, at Site, wears bool) {
	x := s.needExtra()
	if x.site[0].Load() != at.PC || x.site[1].Load() != at.Outer || x.site[2].Load() != at.Beyond {
		x.sited.Store(0)
		x.site[0].Store(at.PC)
		x.site[1].Store(at.Outer)
		x.site[2].Store(at.Beyond)
	}
	id := state & identity
	if wears {
		id |= worn
	}
	x.sited.Store(id)
}

// siteOf is where the permit of an entry was taken, if known.
func (s *slot) siteOf(state uint64) (at Site) {
	x := s.extra.Load()
	if x == nil || x.sited.Load()&identity != state&identity {
		return Site{}
	}
	at = Site{PC: x.site[0].Load(), Outer: x.site[1].Load(), Beyond: x.site[2].Load()}
	if x.sited.Load()&identity != state&identity {
		return Site{}
	}
	return at
}

// ReportKind says what happened to an entry.
type ReportKind uint8

const (
	// Lost means that its permit became unreachable without Exit; the place is free again.
	Lost ReportKind = iota + 1
	// Evicted means that it was older than Stale when a newcomer needed its place.
	Evicted
)

// Report is about one entry that did not leave by itself.
type Report struct {
	Kind      ReportKind
	Goroutine uint64        // that took the place
	Age       time.Duration // of the entry when it was evicted, or when its loss was fetched
	Weight    int
	// Site is where the permit was taken, innermost first, at most three callers, for runtime.CallersFrames. Nil for evicted calls that
	// have no permit but a Ticket.
	Site []uintptr
	// Owner of the entry.
	Owner any
	state uint64
}

// maxReports is how many reports wait to be fetched. More are only counted.
const maxReports = 256

// reports is the queue between those who find a lost or stuck entry and those who tell people. Its lock is held for an
// append only.
type reports struct {
	mu      sync.Mutex
	list    []Report
	dropped uint64
}

// describe makes the report about an entry. It is true if the slot still holds that entry afterwards.
func (b *Bulkhead) describe(kind ReportKind, s *slot, st uint64, weight int) Report {
	r := Report{Kind: kind, Goroutine: s.goroutine.Load(), Age: max(0, age(st, now())), Weight: weight, Owner: b.ownerOf(s, st), state: st}
	at := s.siteOf(st)
	for _, pc := range []uintptr{at.PC, at.Outer, at.Beyond} {
		if pc != 0 {
			r.Site = append(r.Site, pc)
		}
	}
	return r
}

func (b *Bulkhead) file(r Report) {
	b.reports.mu.Lock()
	if len(b.reports.list) < maxReports {
		b.reports.list = append(b.reports.list, r)
	} else {
		b.reports.dropped++
	}
	b.reports.mu.Unlock()
	b.pending.Store(true)
	if b.reported != nil {
		b.reported.Store(true)
	}
}

// Reports hands over what happened since the last time, oldest first, and how many reports were dropped because nobody
// fetched them.
func (b *Bulkhead) Reports() (list []Report, dropped uint64) {
	if !b.pending.Swap(false) {
		return nil, 0
	}
	b.reports.mu.Lock()
	defer b.reports.mu.Unlock()
	list, dropped = b.reports.list, b.reports.dropped
	for i := range list {
		if list[i].Kind == Lost { // found on a goroutine outside of any synctest bubble, whose clock is another
			list[i].Age = max(0, age(list[i].state, now()))
		}
	}
	b.reports.list, b.reports.dropped = nil, 0
	return list, dropped
}

// collectEvery is the least time between two collections that full bulkheads of this process ask for.
const collectEvery = 10 * time.Second

var collected atomic.Int64

// collect asks for a garbage collection, which is what finds lost permits, unless one was asked for lately. A clock that
// stands before the last time (another synctest bubble) does not hold it up.
func collect(t int64) {
	last := collected.Load()
	if d := t - last; last != 0 && d >= 0 && d < int64(collectEvery) {
		return
	}
	if collected.CompareAndSwap(last, t) {
		go runtime.GC()
	}
}
