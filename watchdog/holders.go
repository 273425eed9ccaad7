package watchdog

import (
	"runtime"
	"sync"
	"sync/atomic"
	"weak"
)

// epoch is the number of the last dump that began, in this process. It stands still until that dump has been judged.
var epoch atomic.Uint64

// history says who held a mark while the last dump was taken: the dump's number, and short hashes of up to three holders, the first of
// them the one that the dump found there.
//
//	dump 12 | crowded 1 | holder 17 | holder 17 | holder 17
//
// A mark's owner writes it before the new holder, and the holder before the label. So whoever reads the holder after a dump, then the history,
// and finds an older dump's number there, knows that nobody else can have worn the label by entering while the profile was taken.
type history uint64

const (
	holderBits = 17
	holderMask = 1<<holderBits - 1
	crowded    = history(1) << (3 * holderBits)
	epochShift = 3*holderBits + 1
	epochMask  = 1<<(64-epochShift) - 1
)

// shorten never returns 0, which means nobody.
func shorten(goroutine uint64) history {
	const fibonacci = 0x9E3779B97F4A7C15
	return history(goroutine*fibonacci>>(64-holderBits)) | 1
}

// fresh is the history of a new mark.
func fresh() history { return history(epoch.Load()&epochMask) << epochShift }

func (h history) word() uint64 { return uint64(h) }

func (h history) epoch() uint64 { return uint64(h >> epochShift) }

// next is the history after a change of holders.
func (h history) next(from, to uint64) history {
	now := epoch.Load() & epochMask
	if h.epoch() != now {
		h = history(now)<<epochShift | shorten(from)
	}
	for shift := holderBits; shift < 3*holderBits; shift += holderBits {
		if h>>shift&holderMask == 0 {
			return h | shorten(to)<<shift
		}
	}
	return h | crowded
}

// had reports whether a goroutine may have been among the holders.
func (h history) had(goroutine uint64) bool {
	if h&crowded != 0 {
		return true
	}
	s := shorten(goroutine)
	for shift := 0; shift < 3*holderBits; shift += holderBits {
		if h>>shift&holderMask == s {
			return true
		}
	}
	return false
}

// heldBy reports whether a goroutine held the mark all through the dump of the given number: it alone can have worn the label by entering.
func (m *Mark) heldBy(goroutine, dump uint64) bool {
	holder := m.holder.Load()
	return holder == goroutine && history(m.history.Load()).epoch() != dump&epochMask
}

// mayHold reports whether a goroutine may have held the mark at some time of the dump.
func (m *Mark) mayHold(goroutine, dump uint64) bool {
	holder := m.holder.Load()
	h := history(m.history.Load())
	if h.epoch() != dump&epochMask {
		return holder == goroutine
	}
	return h.had(goroutine)
}

// marks finds a mark by the number in its label, for as long as somebody has the mark.
var marks = markTable{byID: map[uint64]weak.Pointer[Mark]{}}

type markTable struct {
	mu   sync.Mutex // guards the other fields; held for one look-up, or for one pass over all marks when a dump begins
	last uint64
	byID map[uint64]weak.Pointer[Mark]
}

func (t *markTable) add(m *Mark) {
	t.mu.Lock()
	t.last++
	m.id = t.last
	t.byID[m.id] = weak.Make(m)
	t.mu.Unlock()
	runtime.AddCleanup(m, t.drop, m.id)
}

func (t *markTable) drop(id uint64) {
	t.mu.Lock()
	delete(t.byID, id)
	t.mu.Unlock()
}

func (t *markTable) get(id uint64) *Mark {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id].Value()
}

// each calls f for every mark, under the lock: f must only look.
func (t *markTable) each(f func(*Mark)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.byID {
		if m := w.Value(); m != nil {
			f(m)
		}
	}
}
