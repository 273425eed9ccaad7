package watchdog

import (
	"bytes"
	"runtime"
)

// How the stack of a late call is found among all those of a dump. One that is shown must be the right one; so each rule below is a proof.
//
// A goroutine gets a label in two ways: it enters (Mark.Run, Mark.EnterPass), or it inherits what its creator wore at that moment. Code of
// the user's can replace a goroutine's labels by its own, never by ours, as no context holds ours. The profile shows labels and stacks of
// one instant, and no goroutine's number.
//
// Functions (kind d). The function run is on a goroutine's stack exactly from after the mark was put on to before it is taken off. While it is,
// what the goroutine wears was put on just before or since: leave and LeavePass put back only what was worn when their call began, and only
// if nobody changed it since. So a record with the label, and with run on its stack, entered that mark itself. (During a panic deferred
// functions run while run's frame is still there: such a record proves nothing.) If the mark did not change hands since before the profile, the
// record is its holder.
//
// Passes (kind p). The function that entered is on the stack of the right goroutine, called from where it was then, and that goroutine is
// in the call all through the profile. If exactly one record has the label and that, it can still have inherited the label, while the right
// goroutine wears something else. But then that one is in the dump too, with the function on its stack: it is one of the function's
// crowd. So everybody else of the crowd must be accounted for, by a mark that they entered and the right goroutine did not hold.
//
// A goroutine that is proven to be the call's is what is shown, whichever of its marks proves it: a late call often waits inside another.
//
// What no rule covers:
//   - code that copies label sets between goroutines, by the means that labels.go uses;
//   - a pass of Enter, as opposed to EnterScoped, whose function has returned, while a goroutine that inherited the label runs that same function,
//     called from the same place, but not in Enter;
//   - a function that waits for a second pass at the very statement that gave it the first, after it replaced its labels, while a
//     goroutine that it started runs that function without a pass of its own.

// sighting is a record that wears a wanted mark.
type sighting struct {
	kind   byte
	count  int
	run    bool // kind d: run is on its stack, and no panic nearer
	atSite bool // kind p: the function that entered is, called from where it was
	whole  bool
	stack  int // index of its trimmed stack; -1: not kept
}

// wanted is a mark whose holder has a late call.
type wanted struct {
	mark  *Mark
	live  uint64 // the identity of its pass when the dump began
	at    Site   // of the pass
	site  *site
	outer uintptr // where the site's function returns to
	seen  []sighting
}

// site is a function that entered a pass of interest.
type site struct {
	crowd crowd
	pcs   map[uint64]bool // where calls of Enter return to
}

// crowd are the records with a certain function on their stacks.
type crowd struct {
	unmarked int            // whoever it is
	waiting  map[uint64]int // of unmarked: those that are about to enter, by place
	marked   []marked

	// Counted once the dump is complete.
	holders  map[uint64]int // by the goroutine that wears its own mark
	passes   map[*Mark]int  // of them those of passes, by mark
	strays   map[*Mark]int  // those whose labels tell nothing, by mark
	stray    int
	unstable []*Mark // which changed hands meanwhile
}

type marked struct {
	mark  *Mark
	kind  byte
	count int
}

// count sorts the marked by what their marks tell.
func (c *crowd) count(dump uint64) {
	c.holders, c.passes, c.strays = map[uint64]int{}, map[*Mark]int{}, map[*Mark]int{}
	for _, m := range c.marked {
		holder := m.mark.holder.Load()
		switch {
		case m.kind == 'p' && m.mark.shown.Load().stray.Load():
			c.strays[m.mark] += m.count
			c.stray += m.count
		case m.mark.heldBy(holder, dump):
			c.holders[holder] += m.count
			if m.kind == 'p' {
				c.passes[m.mark] += m.count
			}
		default:
			c.unstable = append(c.unstable, m.mark)
		}
	}
}

// others says how many of the crowd can be a goroutine of the given number, without those that wear its own pass.
func (c *crowd) others(goroutine uint64, own *Mark, dump uint64) int {
	n := c.unmarked + c.stray - c.strays[own] + c.holders[goroutine] - c.passes[own]
	for _, m := range c.unstable {
		if m.mayHold(goroutine, dump) {
			n++
		}
	}
	return n
}

// looker collects what the records of one profile show.
type looker struct {
	wanted map[uint64]*wanted
	sites  map[string]*site
	deep   crowd // stacks whose outer end is cut off: they may have any function
	keep   func([]frame) int
}

func (l *looker) visit(r *record) {
	if r.mark.kind == 0 && len(l.sites) == 0 {
		return
	}
	run := l.runs(r.frames)
	proven := r.mark.kind == 'd' && run >= 0 && !panicking(r, run)
	inner := -1
	var s sighting
	w := l.wanted[r.mark.id]
	for i := range r.frames {
		at := l.sites[string(r.frames[i].function)]
		if at == nil {
			continue
		}
		if l.first(r.frames, i) {
			waits := at.waits(r.frames, i)
			at.crowd.add(r, waits, proven && run < i)
			s.atSite = s.atSite || w != nil && w.site == at && waits == 0 && w.calledFrom(r.frames, i)
		}
		inner = i
	}
	if !r.whole && inner < 0 {
		l.deep.add(r, 0, false)
	}
	if w == nil {
		return
	}
	s.kind, s.count, s.whole, s.stack = r.mark.kind, r.count, r.whole, -1
	s.run = proven
	if s.kind == 'd' && s.run || s.kind == 'p' && s.atSite {
		s.stack = l.keep(r.frames)
	}
	w.seen = append(w.seen, s)
}

// calledFrom reports whether frame i, of the function that entered, was called from where that was called then.
func (w *wanted) calledFrom(frames []frame, i int) bool {
	if w.outer == goexit() {
		return entryAt(uintptr(frames[len(frames)-1].pc)) == entryAt(w.at.pc-1)
	}
	for _, f := range frames[i+1:] {
		if uintptr(f.pc)+1 == w.outer {
			return true
		}
	}
	return false
}

// entryAt is where the function begins that holds an address, with all that is inlined into it.
func entryAt(pc uintptr) uintptr {
	if f := runtime.FuncForPC(pc); f != nil {
		return f.Entry()
	}
	return 0
}

// runs is where the innermost frame of run is, or -1.
func (l *looker) runs(frames []frame) int {
	for i := range frames {
		if name := frames[i].function; string(name) == runNames[0] || string(name) == runNames[1] {
			return i
		}
	}
	return -1
}

// panicking reports whether a panic or runtime.Goexit runs deferred functions nearer than frame run.
func panicking(r *record, run int) bool {
	for i := range run {
		if ending(string(r.frames[i].function)) {
			return true
		}
	}
	found := false
	r.hidden(func(pc uint64) bool {
		f := runtime.FuncForPC(uintptr(pc) - 1)
		found = f != nil && ending(f.Name())
		return !found
	})
	return found
}

func ending(function string) bool {
	return function == "runtime.gopanic" || function == "runtime.Goexit"
}

// first reports whether frame i is the innermost of its function.
func (l *looker) first(frames []frame, i int) bool {
	for j := range i {
		if bytes.Equal(frames[j].function, frames[i].function) {
			return false
		}
	}
	return true
}

// waits returns where a goroutine is about to enter, if frame i, the only one of its function, stands in a call of Enter; else 0.
func (s *site) waits(frames []frame, i int) uint64 {
	pc := frames[i].pc + 1
	if i == 0 || !s.pcs[pc] || !ours(frames[i-1].function) {
		return 0
	}
	for j := i + 1; j < len(frames); j++ {
		if bytes.Equal(frames[j].function, frames[i].function) {
			return 0
		}
	}
	return pc
}

// add counts a record; inRun says that it is inside of a function that run calls, which the crowd's function called.
func (c *crowd) add(r *record, waiting uint64, inRun bool) {
	if r.mark.kind == 'p' || r.mark.kind == 'd' && inRun {
		m := marks.get(r.mark.id)
		if m != nil && (r.mark.kind == 'd' || m.generation() == r.mark.generation) {
			c.marked = append(c.marked, marked{m, r.mark.kind, r.count})
			return
		}
	}
	c.unmarked += r.count
	if waiting != 0 {
		if c.waiting == nil {
			c.waiting = map[uint64]int{}
		}
		c.waiting[waiting] += r.count
	}
}

// generation of the label for passes; a mark that never had one has a generation that no label carries.
func (m *Mark) generation() uint64 {
	if p := m.shown.Load(); p != nil {
		return p.generation.Load()
	}
	return ^uint64(0)
}
