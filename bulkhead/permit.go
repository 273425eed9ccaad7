package bulkhead

import (
	"context"
	"runtime"
	"time"

	"github.com/spillway-go/spillway/internal/goroutine"
)

// Ticket is a taken place of a scoped call, two words that fit in registers. It must be given back with Give. The zero
// Ticket holds nothing. Most programs want Enter and its Permit.
type Ticket struct {
	slot  *slot
	state uint64
}

// Held reports whether the ticket was given a place.
func (t Ticket) Held() bool { return t.slot != nil }

// Scoped reports whether the ticket is given back with Give. One that is not must go to Hold.
func (t Ticket) Scoped() bool { return t.state&scoped != 0 }

// Goroutine is the number of the goroutine that took the place; the ticket must not have been given back.
func (t Ticket) Goroutine() uint64 { return t.slot.goroutine.Load() }

// Hash is a number that is evenly spread over the calls of a bulkhead, whatever their rhythm.
func (t Ticket) Hash() uint32 { return hash(t.state) }

// AgeAt is the time from the taking of the place to a reading of package clock, exact to 256 ns.
func (t Ticket) AgeAt(now int64) time.Duration { return age(t.state, now) }

func hash(state uint64) uint32 {
	const fibonacci = 0x9E3779B97F4A7C15
	return uint32((state >> startBits & seqMask) * fibonacci >> 48 & 0xffff)
}

// Give gives a ticket's place back. It reports whether this was the first time; every later one changes nothing.
func (b *Bulkhead) Give(t Ticket) bool {
	if t.slot == nil {
		return false
	}
	id := t.state & identity
	if t.state&special == 0 && t.slot.state.CompareAndSwap(id|kindBusy, id) {
		b.word.Add(^uint64(0))
		if b.waiting.Load() != 0 {
			b.left(t.state)
		}
		return true
	}
	return b.giveSlow(t.slot, id)
}

func (b *Bulkhead) giveSlow(s *slot, id uint64) bool {
	if t := s.extra.Load(); id&special != 0 && t == nil {
		return false
	}
	weight := s.weight(id)
	switch {
	case s.state.CompareAndSwap(id|kindBusy, id):
		b.leave(id, weight)
	case s.state.CompareAndSwap(id|kindDetached, id):
		b.leaveDetached(weight)
	default:
		return false
	}
	return true
}

// Decline gives the place of a fresh ticket back, one that did not go to Hold, whose call is not to begin after all: it counts as no
// admission, and its time as no service.
func (b *Bulkhead) Decline(t Ticket) {
	s, id := t.slot, t.state&identity
	if s == nil {
		return
	}
	switch weight := s.weight(id); {
	case id&scoped == 0: // nobody else sees it before Hold
		s.state.Store(id)
		b.release(weight)
	case s.state.CompareAndSwap(id|kindBusy, id):
		b.release(weight)
	case s.state.CompareAndSwap(id|kindDetached, id):
		b.leaveDetached(weight)
	}
}

// leave returns weight live places whose slot is free already.
func (b *Bulkhead) leave(state uint64, weight int) {
	b.word.Add(-uint64(weight))
	if b.waiting.Load() != 0 {
		b.left(state)
	}
}

// left hands freed places to those who wait.
func (b *Bulkhead) left(state uint64) {
	t := now()
	b.observe(age(state, t))
	b.handOver(t)
}

func (b *Bulkhead) handOver(t int64) {
	b.lock()
	b.serve(t)
	b.mu.Unlock()
}

// release returns places that were taken and never used: no admission, and no service whose time says anything.
func (b *Bulkhead) release(weight int) {
	b.touches.Add(1)
	b.word.Add(-uint64(weight))
	if b.waiting.Load() != 0 {
		b.handOver(now())
	}
}

func (b *Bulkhead) leaveDetached(weight int) {
	b.lock()
	b.detached.Add(-int64(weight))
	b.changed()
	b.mu.Unlock()
}

// observe feeds the moving mean of the service time, an eighth at a time. Concurrent observations may lose one another.
func (b *Bulkhead) observe(d time.Duration) {
	old := b.service.Load()
	if old == 0 {
		b.service.Store(max(1, int64(d)))
		return
	}
	b.service.Store(max(1, old+(int64(d)-old)/8))
}

// Permit is a taken place that may be given back anywhere. Copies are harmless: the first Exit counts. The zero Permit
// holds nothing, and its methods do nothing.
//
// A Permit of Enter that becomes unreachable without Exit is lost. Its place is given back after a garbage collection, and
// the loss is reported. A copy that is kept after Exit can hide the loss of a later permit in the same place; such a
// place still goes to a newcomer once it is stale.
//
//nolint:recvcheck // a Permit is a value; SetTag alone writes into the holder's own
type Permit struct {
	token *token
	state uint64 // the kind bits are the holder's: see SetTag
}

// Hold turns a fresh ticket into a permit that was taken at a site; wears is what Permit.Wears will say. One that is not scoped becomes
// visible only here: whoever finds it lost must see that the token has left the slot.
func (b *Bulkhead) Hold(t Ticket, at Site, wears bool) Permit {
	s, id := t.slot, t.state&identity
	if s == nil {
		return Permit{}
	}
	tok := s.token
	if tok == nil {
		tok = b.newToken(s)
		s.token = tok
	}
	s.note(id, at, wears)
	if id&scoped != 0 {
		return Permit{tok, id}
	}
	s.token = nil
	s.state.Store(id | kindBusy)
	runtime.KeepAlive(tok) // lost before that, it would be found in a place that nobody may touch
	return Permit{tok, id}
}

// Exit gives the place back. It reports whether this was the first time; every later one changes nothing.
func (p Permit) Exit() bool {
	if p.token == nil {
		return false
	}
	if p.state&scoped != 0 {
		return p.token.home.Give(Ticket{p.token.slot, p.state})
	}
	return p.exit()
}

// exit also brings the token home, for which it has to own the slot.
func (p Permit) exit() bool {
	s, b, id := p.token.slot, p.token.home, p.state&identity
	weight := 1
	if id&special != 0 {
		weight = s.weight(id)
	}
	detached := false
	if !s.state.CompareAndSwap(id|kindBusy, id|kindClaimed) {
		if !s.state.CompareAndSwap(id|kindDetached, id|kindClaimed) {
			return false
		}
		detached = true
	}
	s.token = p.token
	s.state.Store(id)
	if detached {
		b.leaveDetached(weight)
	} else {
		b.leave(id, weight)
	}
	return true
}

// Wears reports whether Hold was told so, until the place is given back.
func (p Permit) Wears() bool {
	return p.token != nil && p.token.slot.extra.Load().sited.Load()&^pinned == p.state&identity|worn
}

// Pin keeps the place from being evicted however old it grows: for a stream, whose age says nothing. After Exit or an
// eviction it changes nothing.
func (p Permit) Pin() {
	if p.token == nil {
		return
	}
	p.token.slot.pin(p.state & identity)
}

// PinScoped is Pin for the scoped call of a goroutine, whose place may have no permit. It must not be called once that call may be over.
func (b *Bulkhead) PinScoped(goroutine uint64) {
	s, st := b.scopedOf(goroutine)
	if s == nil {
		return
	}
	if x := s.needExtra(); x.sited.Load()&identity != st&identity {
		s.note(st, Site{}, false) // that of an earlier permit
	}
	s.pin(st & identity)
}

// pin marks the entry of an identity that was noted.
func (s *slot) pin(id uint64) {
	x := s.extra.Load()
	for was := x.sited.Load(); was&identity == id && s.state.Load() == id|kindBusy; was = x.sited.Load() {
		if x.sited.CompareAndSwap(was, was|pinned) {
			return
		}
	}
}

// Owner is the Owner of the entry's Demand, or else that of the bulkhead's Config. It must be asked before Exit.
func (p Permit) Owner() any {
	if p.token == nil {
		return nil
	}
	if p.state&special != 0 {
		if o := p.token.slot.extra.Load().owner.Load(); o != nil {
			return *o
		}
	}
	return p.token.home.owner
}

// SetTag keeps a number of 0..3 in the permit for its holder.
func (p *Permit) SetTag(n uint8) { p.state = p.state&identity | uint64(n)<<62 }

// Tag is the number that SetTag kept, 0 at first.
func (p Permit) Tag() uint8 { return uint8(p.state >> 62) }

// Ticket is the permit's place without the right to give it back through Exit; it serves to ask Hash and AgeAt, after
// Exit too.
func (p Permit) Ticket() Ticket {
	if p.token == nil {
		return Ticket{}
	}
	return Ticket{p.token.slot, p.state & identity}
}

// Age is the time since the place was taken, exact to 256 ns.
func (p Permit) Age() time.Duration {
	if p.token == nil {
		return 0
	}
	return age(p.state, now())
}

// Enter takes a place, waiting for it as configured. The error is ErrFull, ErrClosed, or the context's when it
// ended before or while the call waited.
//
//go:noinline
func (b *Bulkhead) Enter(ctx context.Context) (Permit, error) {
	at := goroutine.Here()
	if ctx.Err() == nil {
		switch t, out := b.TakeLoose(); out {
		case Taken:
			return b.Hold(t, at, false), nil
		case Full:
			return Permit{}, ErrFull
		default: // Unsure
		}
	}
	return b.enter(ctx, 1, 1, at)
}

// EnterN takes weight places at once, all or none, at a priority level of 0..Levels-1 (0 is served first).
// The error may also be ErrTooHeavy or ErrWeight.
//
//go:noinline
func (b *Bulkhead) EnterN(ctx context.Context, weight, level int) (Permit, error) {
	return b.enter(ctx, weight, level, goroutine.Here())
}

func (b *Bulkhead) enter(ctx context.Context, weight, level int, at Site) (Permit, error) {
	if err := ctx.Err(); err != nil {
		return Permit{}, err
	}
	if weight < 1 {
		return Permit{}, ErrWeight
	}
	t, out := b.TakeSlow(ctx, &Demand{Weight: weight, Level: max(0, min(level, Levels-1))})
	switch out {
	case Taken, TakenLate:
		return b.Hold(t, at, false), nil
	case TooHeavy:
		return Permit{}, ErrTooHeavy
	case Closed:
		return Permit{}, ErrClosed
	case Ended:
		if err := ctx.Err(); err != nil {
			return Permit{}, err
		}
		return Permit{}, context.Canceled // somebody's context that is done for no reason
	default:
		return Permit{}, ErrFull
	}
}
