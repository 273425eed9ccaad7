package bulkhead

import "github.com/spillway-go/spillway/internal/goroutine"

// Adopt makes the calling goroutine the one that holds a permit's place, in a scoped call from here on: the place is given back with
// Give of the bulkhead it returns, and the permit holds nothing any more. The entry keeps its age, its weight and its owner. It reports false,
// and changes nothing, for a permit that is scoped itself, was given back or evicted.
func (p Permit) Adopt() (*Bulkhead, Ticket, bool) {
	if p.token == nil || p.state&scoped != 0 {
		return nil, Ticket{}, false
	}
	from, b, id := p.token.slot, p.token.home, p.state&identity
	if !from.state.CompareAndSwap(id|kindBusy, id|kindClaimed) {
		return nil, Ticket{}, false
	}
	st := id | scoped
	to := b.claim(goroutine.ID(), st|kindClaimed)
	if id&special != 0 {
		old, x := from.extra.Load(), to.needExtra()
		x.weight.Store(old.weight.Load())
		x.owner.Store(old.owner.Load())
	}
	to.state.Store(st | kindBusy)
	from.token = p.token
	from.state.Store(id)
	return b, Ticket{to, st}, true
}
