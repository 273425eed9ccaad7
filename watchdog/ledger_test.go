package watchdog

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/internal/clock"
	"github.com/spillway-go/spillway/internal/goroutine"
	"github.com/spillway-go/spillway/registry"
)

// Ledger is a queue of calls in flight for the tests, the way that package guard keeps one. It lies in this package, so that its frames count as
// ours; the functions that it guards lie in watchdog_test.
type Ledger struct {
	Slow  time.Duration
	Bound int

	mu       sync.Mutex
	free     []*Slot
	slots    []*Slot
	identity uint64
	blocked  *sync.Cond // EnterScoped and Enter wait while shut
	shut     bool
}

// Slot is a place of a Ledger.
type Slot struct {
	key       registry.Key
	identity  atomic.Uint64
	goroutine uint64
	start     int64
	scoped    bool
	site      Site
	worn      atomic.Uint64 // the identity of the pass that put the badge on
}

// Holds implements Place.
func (s *Slot) Holds(identity uint64) bool { return s.identity.Load() == identity }

// NewLedger returns an empty ledger.
func NewLedger(slow time.Duration) *Ledger {
	l := &Ledger{Slow: slow, Bound: 20_000}
	l.blocked = sync.NewCond(&l.mu)
	return l
}

// Late implements Source.
func (l *Ledger) Late(now int64, f func(Call)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	inFlight := len(l.slots) - len(l.free)
	for _, s := range l.slots {
		id := s.identity.Load()
		if age := time.Duration(now - s.start); id != 0 && age >= l.Slow {
			f(Call{
				Key: s.key, Goroutine: s.goroutine, Age: age, Slow: l.Slow, InFlight: inFlight, Bound: l.Bound,
				Place: s, Identity: id, Site: s.site, Scoped: s.scoped,
			})
		}
	}
}

// InFlight is how many calls there are.
func (l *Ledger) InFlight() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.slots) - len(l.free)
}

// Shut makes later passes wait until Open.
func (l *Ledger) Shut() {
	l.mu.Lock()
	l.shut = true
	l.mu.Unlock()
}

// Open ends Shut.
func (l *Ledger) Open() {
	l.mu.Lock()
	l.shut = false
	l.mu.Unlock()
	l.blocked.Broadcast()
}

func (l *Ledger) take(key registry.Key, scoped bool, site Site) *Slot {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.shut {
		l.blocked.Wait()
	}
	var s *Slot
	if n := len(l.free); n > 0 {
		s, l.free = l.free[n-1], l.free[:n-1]
	} else {
		s = &Slot{}
		l.slots = append(l.slots, s)
	}
	l.identity++
	s.key, s.goroutine, s.start, s.scoped = key, goroutine.ID(), clock.Now(), scoped
	s.site = site
	s.identity.Store(l.identity)
	return s
}

func (l *Ledger) give(s *Slot) {
	l.mu.Lock()
	s.identity.Store(0)
	l.free = append(l.free, s)
	l.mu.Unlock()
}

// Do runs fn as a call.
func (l *Ledger) Do(key registry.Key, fn func() error) error {
	goroutine.Verify()
	s := l.take(key, true, Site{})
	badge := goroutine.Wear(s.goroutine)
	defer func() {
		badge.Off()
		l.give(s)
	}()
	return goroutine.Run(fn)
}

// LedgerPass is a call between two calls.
type LedgerPass struct {
	ledger   *Ledger
	slot     *Slot
	identity uint64
}

// EnterScoped begins a call whose Exit is deferred in the calling function.
//
//go:noinline
func (l *Ledger) EnterScoped(key registry.Key) LedgerPass {
	return l.enter(key, true, goroutine.Here())
}

// Enter begins a call that may end anywhere.
//
//go:noinline
func (l *Ledger) Enter(key registry.Key) LedgerPass { return l.enter(key, false, goroutine.Here()) }

func (l *Ledger) enter(key registry.Key, scoped bool, site Site) LedgerPass {
	goroutine.Verify()
	s := l.take(key, scoped, site)
	id := s.identity.Load()
	if goroutine.Wear(s.goroutine) != nil {
		s.worn.Store(id)
	}
	return LedgerPass{l, s, id}
}

// Exit ends the call; the first time counts.
func (p LedgerPass) Exit() {
	if p.slot.worn.CompareAndSwap(p.identity, 0) {
		goroutine.TakeOff()
	}
	p.ledger.mu.Lock()
	mine := p.slot.identity.Load() == p.identity
	p.ledger.mu.Unlock()
	if mine {
		p.ledger.give(p.slot)
	}
}

// Lose frees the place of a pass that is gone, as a cleanup does.
func (p LedgerPass) Lose() { p.ledger.give(p.slot) }
