package watchdog

import (
	"strconv"
	"sync/atomic"
	"unsafe"

	"github.com/spillway-go/spillway/internal/goroutine"
)

// Mark tells which goroutine serves the call that holds a place. There is one for each place of a queue, made once and kept. At one time only
// the call that holds the place may use it. A nil Mark, which NewMark returns
// where goroutines cannot be marked, works and marks nothing.
//
// A call that runs a function uses Run. One that begins and ends by two calls from the user's function uses EnterPass and LeavePass.
type Mark struct {
	id uint64
	// holder is the goroutine that entered last. history tells who was holder while the last dump was taken: see holders.
	holder  atomic.Uint64
	history atomic.Uint64

	// The fields from here on belong to the call that holds the place.
	plain *tag // worn by goroutines without labels of their own
	mixed *tag // the last one made for a goroutine with labels
	pass  *passMark
	shown atomic.Pointer[passMark] // the same for the dump
}

// NewMark returns a mark with a number of its own, or nil where goroutines cannot be marked: then reports show no stacks.
func NewMark() *Mark {
	if !usable() {
		return nil
	}
	m := new(Mark)
	m.history.Store(fresh().word())
	marks.add(m)
	m.plain = newTag(m, "d"+strconv.FormatUint(m.id, 10), nil)
	return m
}

// enter marks the calling goroutine, and returns what it wore before.
func (m *Mark) enter(goroutine uint64) (before unsafe.Pointer) {
	if m.holder.Load() != goroutine {
		m.handOver(goroutine)
	}
	set := getLabels()
	t := m.plain
	if set != nil {
		var user unsafe.Pointer
		if set, user = under(set, goroutine); user != nil {
			if m.mixed == nil || m.mixed.user != user {
				m.mixed = newTag(m, m.plain.list[0].value, user)
			}
			t = m.mixed
		}
	}
	setLabels(unsafe.Pointer(t))
	return set
}

// leave gives the goroutine back what it wore before. Labels that the user's code set meanwhile, and did not take off, stay: they
// would without a mark too.
func (m *Mark) leave(before unsafe.Pointer) {
	if set := getLabels(); set == unsafe.Pointer(m.plain) || set != nil && set == unsafe.Pointer(m.mixed) {
		setLabels(before)
	}
}

// under returns what to put back later on a goroutine that wears set now, and which of it is the user's. A mark
// that the goroutine did not enter, but inherited from the one that started it, is not put back.
func under(set unsafe.Pointer, goroutine uint64) (before, user unsafe.Pointer) {
	t := tagOf(set)
	if t == nil {
		return set, set
	}
	if t.mark.holder.Load() != goroutine {
		return t.user, t.user
	}
	return set, t.user
}

// handOver notes a new holder, before that one wears the label.
func (m *Mark) handOver(goroutine uint64) {
	m.history.Store(history(m.history.Load()).next(m.holder.Load(), goroutine).word())
	m.holder.Store(goroutine)
}

// passMark is what a mark has besides for calls between two calls of the user's. No frame of ours is on their goroutine's stack,
// so that more has to be known of them.
type passMark struct {
	// live is the identity of the call, 0 between calls. The next three are its Site.
	live              atomic.Uint64
	pc, outer, beyond atomic.Uintptr
	// stray: a goroutine whose call is over may still wear the label. The next call after a dump gets a new one.
	stray      atomic.Bool
	generation atomic.Uint64

	// These belong to the call that holds the place.
	plain, mixed *tag
	before       unsafe.Pointer
	renewed      uint64 // the number of the dump before the last new label
}

func (p *passMark) site() Site { return Site{p.pc.Load(), p.outer.Load(), p.beyond.Load()} }

// newPassTag makes the label of the present generation.
func (m *Mark) newPassTag() *tag {
	return newTag(m, "p"+strconv.FormatUint(m.id, 10)+"."+strconv.FormatUint(m.pass.generation.Load(), 10), nil)
}

// EnterPass marks the calling goroutine for a call that LeavePass ends, on whatever goroutine. identity is not 0, and differs from call to
// call. Without a site the call's stack is never shown.
func (m *Mark) EnterPass(goroutine, identity uint64, site Site) {
	if m == nil {
		return
	}
	p := m.pass
	if p == nil {
		p = new(passMark)
		m.pass = p
		p.plain = m.newPassTag()
		m.shown.Store(p)
	}
	if p.live.Load() != 0 { // the last pass was lost
		p.stray.Store(true)
	}
	if p.stray.Load() && p.renewed != epoch.Load() {
		m.renew()
	}
	if m.holder.Load() != goroutine || p.site() != site {
		m.handOver(goroutine)
		p.pc.Store(site.pc)
		p.outer.Store(site.outer)
		p.beyond.Store(site.beyond)
	}
	p.live.Store(identity)
	set := getLabels()
	t := p.plain
	if set != nil {
		var user unsafe.Pointer
		if set, user = under(set, goroutine); user != nil {
			if p.mixed == nil || p.mixed.user != user {
				p.mixed = newTag(m, p.plain.list[0].value, user)
			}
			t = p.mixed
		}
	}
	p.before = set
	setLabels(unsafe.Pointer(t))
}

// renew gives the place a new label. At most once for each dump, since a pass that always ends on another goroutine leaves
// its label behind every time, and nobody cares before the next dump.
func (m *Mark) renew() {
	p := m.pass
	p.renewed = epoch.Load()
	p.generation.Add(1)
	p.plain, p.mixed = m.newPassTag(), nil
	p.stray.Store(false)
}

// LeavePass ends the call of that identity; the first time counts. It must come before the place is given back. Only the goroutine that
// entered gets back what it wore before, and only if it wears the mark still.
func (m *Mark) LeavePass(identity uint64) {
	if m == nil || m.pass == nil || !m.pass.live.CompareAndSwap(identity, 0) {
		return
	}
	p := m.pass
	set := getLabels()
	worn := set == unsafe.Pointer(p.plain) || set != nil && set == unsafe.Pointer(p.mixed)
	if worn && goroutine.ID() == m.holder.Load() {
		setLabels(p.before)
	} else {
		p.stray.Store(true)
	}
	p.before = nil
}
