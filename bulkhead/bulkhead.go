package bulkhead

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/petermattis/goid"

	"github.com/spillway-go/spillway/internal/goroutine"
)

// Bulkhead is a bound on the calls in flight. Its methods are safe for concurrent use. Create it with New, and do not copy it.
type Bulkhead struct {
	_ [64]byte // the fast path writes one cache line, shared with nothing else

	word atomic.Uint64
	// gate is the bound of the fast path: min(bound, ceiling - detached), or 0 while somebody waits, the
	// bulkhead is closed or goid is wrong in this build, so that every newcomer takes the slow path.
	gate atomic.Int64
	// waiting is the length of the waiting room.
	waiting atomic.Int64
	// detached is written rarely, and read beside word by those who look for calls in many bulkheads.
	detached atomic.Int64
	_        [32]byte

	table atomic.Pointer[table]
	// quiet: when full, refuse without looking at the clock or taking the lock. A timer takes it back.
	quiet    atomic.Bool
	pending  atomic.Bool // there are reports
	closed   atomic.Bool
	asking   atomic.Bool  // the Expander is being asked
	gauging  atomic.Bool  // the MemoryGauge is being asked
	wasTight atomic.Bool  // its last answer
	limit    atomic.Int64 // N as configured
	bound    atomic.Int64 // in force, before what detached calls take away
	ceiling  atomic.Int64 // Expand x N
	askAfter atomic.Int64 // the Expander's pause ends
	service  atomic.Int64 // moving mean of the service time, ns; 0: not known
	owner    any
	reported *atomic.Bool
	expander Expander
	memory   MemoryGauge

	lost       atomic.Uint64
	evicted    atomic.Uint64
	touches    atomic.Uint64 // sequence numbers that are no admission
	lostWeight atomic.Int64  // detached places whose permit was lost, not yet settled under mu

	// mu guards the waiting room, settings, and every change of bound, ceiling, detached and gate. Taken only by calls that
	// found no place, that leave while somebody waits, or that were evicted. Nothing blocks under it and nobody's
	// callback runs under it; growing and reports' lock are taken inside it, never the other way round.
	mu       sync.Mutex
	settings Config
	room     room
	// No call of quietWeight or more can evict, nor is a collection worth asking for, before quietEnd.
	quietEnd    int64
	quietWeight int
	admitted    uint64 // the most that a Snapshot told of
	watched     int64  // Watch's number while it was not exceeded, else 0
	exceeded    bool   // since the last Watch

	growing sync.Mutex // guards the replacement of table
	reports reports
}

// New returns an empty bulkhead.
func New(cfg Config) (*Bulkhead, error) {
	b := new(Bulkhead)
	if err := b.Init(cfg); err != nil {
		return nil, err
	}
	return b, nil
}

// Init makes an empty bulkhead of one that is a field of something else, once, before anything else is called on it.
func (b *Bulkhead) Init(cfg Config) error {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return err
	}
	goroutine.Verify()
	b.owner, b.reported, b.expander, b.memory = cfg.Owner, cfg.Reported, cfg.Expander, cfg.Memory
	b.table.Store(newTable(b, ceilPow2(max(8, min(cfg.Limit, 64))), nil))
	b.apply(cfg)
	b.bound.Store(int64(cfg.Limit))
	b.regate()
	return nil
}

// Outcome is how a call's try to enter ended.
type Outcome uint8

// What Take and TakeSlow answer.
const (
	Unsure    Outcome = iota // Take found no place: TakeSlow has the last word
	Full                     // no place, or none in time
	Taken                    // a place was taken
	TakenLate                // the same, after a wait for it
	Nested                   // the goroutine holds a scoped place already: run, there is nothing to give back
	TooHeavy                 // the weight is above the ceiling
	Ended                    // the context ended while the call waited
	Closed                   // the bulkhead is closed
)

// Admitted reports whether a place was taken.
func (o Outcome) Admitted() bool { return o == Taken || o == TakenLate }

// Demand is what a call asks for.
type Demand struct {
	Weight int // places; less than 1 counts as 1
	Level  int // priority, 0 (first) to Levels-1; what lies outside counts as the nearest of these
	// Scoped: the place is given back on the same goroutine before the function that took it returns, by a
	// deferred call. Only then can a call of the same goroutine be known to be nested in it.
	Scoped bool
	// Owner is the owner of this entry where it is not the bulkhead's; the pointer is kept.
	Owner *any
	// Longest bounds the wait below Config.Wait; 0: it does not; negative: the call does not wait.
	Longest time.Duration
}

// Take is the fast path for a scoped call of weight 1: Taken, Nested, Full, or Unsure. It allocates nothing and takes no
// lock.
func (b *Bulkhead) Take() (Ticket, Outcome) { return b.take(kindBusy | scoped) }

// TakeLoose is Take for a call that may give its place back elsewhere. It is never nested, and its ticket must go
// to Hold at once.
func (b *Bulkhead) TakeLoose() (Ticket, Outcome) { return b.take(kindClaimed) }

func (b *Bulkhead) take(kind uint64) (Ticket, Outcome) {
	if b.quiet.Load() && int64(b.word.Load()&liveMask) >= b.gate.Load() {
		if kind&scoped != 0 && b.RunsHere() {
			return Ticket{}, Nested
		}
		return Ticket{}, Full // without a look at the clock
	}
	t := now() // first: a clock reading waits for what was begun before it, and nothing was
	word := b.word.Load()
	if int64(word&liveMask) >= b.gate.Load() || !b.word.CompareAndSwap(word, word+seqOne+1) {
		var ok bool
		if word, ok = b.admit(1); !ok {
			return Ticket{}, Unsure
		}
	}
	id := uint64(goid.Get()) // right, or else the gate is shut: see regate
	s := b.table.Load().at(id, 0)
	st := entryState(word, t) | kind
	was := s.state.Load()
	if was&kindMask == kindFree && s.goroutine.Load() == id && s.state.CompareAndSwap(was, st) {
		return Ticket{s, st}, Taken
	}
	return b.settle(id, st, was, s)
}

// settle finds a slot for an admitted call whose home slot is not simply its own. Where the home slot holds an entry of
// the same goroutine the call is nested in that, and the place goes back.
//
//go:noinline
func (b *Bulkhead) settle(id, state, was uint64, home *slot) (Ticket, Outcome) {
	if state&scoped != 0 && holdsScoped(was) && home.goroutine.Load() == id {
		b.release(1)
		return Ticket{}, Nested
	}
	return Ticket{b.claim(id, state), state}, Taken
}

// admit takes weight places in one atomic step that sees them fit, or none. It returns the word before that step.
func (b *Bulkhead) admit(weight int) (uint64, bool) {
	for {
		word := b.word.Load()
		if int64(word&liveMask)+int64(weight) > b.gate.Load() {
			return 0, false
		}
		if b.word.CompareAndSwap(word, word+seqOne+uint64(weight)) {
			return word, true
		}
	}
}

// TakeSlow is the rest of Take, in this order: a nested call; a free place; a larger bound; a stuck call's place; the waiting
// room. ctx may be nil; it is only looked at while waiting. The ticket of a demand that is not scoped must go to Hold at
// once.
func (b *Bulkhead) TakeSlow(ctx context.Context, d *Demand) (Ticket, Outcome) {
	if d.Weight < 1 || uint(d.Level) >= Levels {
		mended := *d
		mended.Weight, mended.Level = max(1, d.Weight), max(0, min(d.Level, Levels-1))
		d = &mended
	}
	if d.Scoped && b.RunsHere() {
		return Ticket{}, Nested
	}
	if b.closed.Load() {
		return Ticket{}, Closed
	}
	if int64(d.Weight) > b.ceiling.Load() {
		return Ticket{}, TooHeavy
	}
	t := now()
	if word, ok := b.admit(d.Weight); ok {
		return b.entry(word, t, d), Taken
	}
	var done <-chan struct{}
	if ctx != nil {
		done = ctx.Done() // now: what a context does when asked must not find the call in the waiting room
	}
	b.expand(t, d.Weight)
	tight := b.tight()

	b.lock()
	if b.closed.Load() {
		b.mu.Unlock()
		return Ticket{}, Closed
	}
	if word, ok := b.admitOrEvict(t, d, tight); ok {
		b.mu.Unlock()
		return b.entry(word, t, d), Taken
	}
	if b.settings.Wait == 0 || d.Longest < 0 {
		b.mu.Unlock()
		return Ticket{}, Full
	}
	w := b.enqueue(t, d)
	if w == nil {
		b.mu.Unlock()
		return Ticket{}, Full
	}
	longest := b.settings.Wait
	if d.Longest > 0 {
		longest = min(longest, d.Longest)
	}
	end := t + int64(longest)
	nap := b.nap(w, t, end)
	b.mu.Unlock()
	word, out := b.await(ctx, done, w, nap, end)
	if out != Taken {
		return Ticket{}, out
	}
	return b.entry(word, now(), d), TakenLate
}

// entry puts an admitted call into the queue.
func (b *Bulkhead) entry(word uint64, t int64, d *Demand) Ticket {
	st := entryState(word, t)
	kind := kindClaimed
	if d.Scoped {
		st |= scoped
		kind = kindBusy
	}
	id := goroutine.ID()
	if d.Weight == 1 && d.Owner == nil {
		return Ticket{b.claim(id, st|kind), st}
	}
	st |= special
	s := b.claim(id, st|kindClaimed)
	x := s.needExtra()
	x.weight.Store(int64(d.Weight))
	x.owner.Store(d.Owner)
	if d.Scoped {
		s.state.Store(st | kindBusy)
	}
	return Ticket{s, st}
}

// tight asks the MemoryGauge, without a lock. While it answers, and for a call from inside it, the last answer holds.
func (b *Bulkhead) tight() bool {
	if b.memory == nil {
		return false
	}
	if b.gauging.Swap(true) {
		return b.wasTight.Load()
	}
	defer b.gauging.Store(false)
	b.wasTight.Store(b.memory.MemoryTight())
	return b.wasTight.Load()
}

// admitOrEvict runs under mu. Whoever waits at the call's level or above goes first.
func (b *Bulkhead) admitOrEvict(t int64, d *Demand, tight bool) (uint64, bool) {
	b.relieve(t, tight)
	if w := b.next(); w != nil && w.level <= d.Level {
		return 0, false
	}
	if word, ok := b.admitLocked(d.Weight); ok {
		return word, true
	}
	return b.evict(t, d.Weight, tight)
}

// admitLocked runs under mu, where the waiting room does not shut the gate.
func (b *Bulkhead) admitLocked(weight int) (uint64, bool) {
	for {
		word := b.word.Load()
		if int64(word&liveMask)+int64(weight) > b.effective() {
			return 0, false
		}
		if b.word.CompareAndSwap(word, word+seqOne+uint64(weight)) {
			if b.watched > 0 && int64(word&liveMask)+int64(weight) > b.watched {
				b.regate()
			}
			return word, true
		}
	}
}

// effective is the bound that binds. Under mu.
func (b *Bulkhead) effective() int64 {
	if b.closed.Load() {
		return 0
	}
	return max(0, min(b.bound.Load(), b.ceiling.Load()-b.detached.Load()))
}

// regate publishes the bound to the fast path. Under mu.
func (b *Bulkhead) regate() {
	g := b.effective()
	if b.watched > 0 {
		if int64(b.word.Load()&liveMask) > b.watched {
			b.watched, b.exceeded = 0, true
		} else {
			g = min(g, b.watched)
		}
	}
	if b.room.count > 0 || !goroutine.Fast() {
		g = 0
	}
	if old := b.gate.Swap(g); g < old {
		b.touch()
	}
	b.waiting.Store(int64(b.room.count))
}

// touch makes every compare-and-swap fail that was prepared against an older gate. Under mu.
func (b *Bulkhead) touch() {
	b.word.Add(seqOne)
	b.touches.Add(1)
}

// lock takes mu and settles what a cleanup, which must not wait for it, left behind.
func (b *Bulkhead) lock() {
	b.mu.Lock()
	if n := b.lostWeight.Swap(0); n != 0 {
		b.detached.Add(-n)
		b.changed()
	}
}

// SetBound sets the bound in force, within 1..Expand x Limit. Raising it admits as many waiting calls as then fit; after
// lowering it no running call is touched, and none is admitted until enough have left.
func (b *Bulkhead) SetBound(n int) {
	b.lock()
	b.bound.Store(max(1, min(int64(n), b.ceiling.Load())))
	b.changed()
	b.mu.Unlock()
}

// Watch begins to watch whether more than n places are taken at once at any moment from now on, and returns whether the number of the
// last Watch was exceeded since then. 0 stops watching. The fast path pays nothing for it: its gate is lowered to n,
// and whoever comes there takes the slow path once.
func (b *Bulkhead) Watch(n int) (exceeded bool) {
	b.lock()
	defer b.mu.Unlock()
	exceeded = b.exceeded
	b.watched, b.exceeded = int64(max(0, n)), false
	b.quiet.Store(false) // which takes the gate for the bound
	b.regate()
	return exceeded
}

// Configure replaces the settings. Calls in flight and waiting calls stay, but for those too heavy for the new settings to ever
// hold; the bound goes back to the new Limit. Expander, Memory, Owner and Reported stay as New got them. When the
// settings are refused the old ones stay in force.
func (b *Bulkhead) Configure(cfg Config) error {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return err
	}
	b.lock()
	b.apply(cfg)
	b.bound.Store(int64(cfg.Limit))
	b.room.dismiss(TooHeavy, b.ceiling.Load())
	b.changed()
	b.mu.Unlock()
	return nil
}

func (b *Bulkhead) apply(cfg Config) {
	b.settings = cfg
	b.limit.Store(int64(cfg.Limit))
	b.ceiling.Store(int64(cfg.Limit * cfg.Expand))
	b.room.capacity = cfg.Queue
	b.askAfter.Store(0)
}

// changed follows every change of the bound, ceiling or detached. Under mu.
func (b *Bulkhead) changed() {
	b.unquiet()
	b.regate()
	b.serve(now())
}

// Close refuses every later call and answers all that wait. Calls in flight are not touched.
func (b *Bulkhead) Close() {
	b.lock()
	defer b.mu.Unlock()
	if b.closed.Swap(true) {
		return
	}
	b.room.dismiss(Closed, 0)
	b.unquiet()
	b.regate()
}

func (b *Bulkhead) load() Load {
	return Load{
		Limit:    int(b.limit.Load()),
		Max:      int(b.ceiling.Load()),
		Bound:    int(b.bound.Load()),
		InFlight: int(b.word.Load() & liveMask),
		Detached: int(b.detached.Load()),
		Waiting:  int(b.waiting.Load()),
	}
}

// longestPause is the longest that an Expander is taken at its word for.
const longestPause = time.Hour

// expand asks the Expander for a call of this weight, without a lock, unless there is room, it asked for a pause, or it is being asked:
// by another call, or by this one from inside the Expander.
func (b *Bulkhead) expand(t int64, weight int) {
	if b.expander == nil || t < b.askAfter.Load() {
		return
	}
	l := b.load()
	if l.InFlight+weight <= min(l.Bound, l.Max-l.Detached) && l.Waiting == 0 {
		return // the gate is lower for another reason
	}
	l.Weight = weight
	if b.asking.Swap(true) {
		return
	}
	defer b.asking.Store(false)
	n, pause := b.expander.Expand(l)
	b.askAfter.Store(t + int64(max(0, min(pause, longestPause))))
	if n <= l.Bound {
		return
	}
	b.lock()
	if int64(n) > b.bound.Load() {
		b.bound.Store(min(int64(n), b.ceiling.Load()))
		b.changed()
	}
	b.mu.Unlock()
}
