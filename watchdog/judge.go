package watchdog

import (
	"bytes"
	"reflect"
	"runtime"
	"slices"

	"github.com/spillway-go/spillway/internal/goroutine"
)

// How the stack of a late call is found among all those of a dump. One that is shown must be the right one; so each rule below is a proof.
//
// A goroutine that is in a call wears its badge, package internal/goroutine, unless code of the user's replaced its labels. Who has once worn
// its own badge never wears another's; but goroutines that it starts inherit it. The profile shows badges and stacks of one instant, and
// no goroutine's number.
//
// Run: a frame of goroutine.Run on the stack says that this goroutine put its own badge on. So a record with the badge of goroutine n and
// such a frame is goroutine n, which is in the call all through the profile if the call is scoped.
//
// Site: the function that entered is on the stack of the right goroutine, called from where it was then. If exactly one record has the badge
// and that, it can still have inherited the badge, while the right goroutine's labels were replaced. But then that one is in the dump too,
// without any badge and with the function on its stack. So there must be no such record. Those that stand in a call of Enter do
// not count: the right one has left it.
//
// What no rule covers:
//   - code that copies label sets between goroutines, by the means that internal/goroutine uses;
//   - a pass of Enter, as opposed to EnterScoped, whose function has returned, while a goroutine that inherited the badge runs that same function,
//     called from the same place, but not in Enter;
//   - a label of the user's own with our name and a number.

// wanted is a goroutine that has a late call.
type wanted struct {
	seen  []sighting
	sites map[Site]*entered
}

// sighting is a record that wears the badge of a wanted goroutine.
type sighting struct {
	count int
	run   bool // a frame of Run is on its stack
	whole bool
	at    []Site // the sites whose function is on its stack, called from where it was
	stack int    // index of its trimmed stack; -1: not kept
}

// entered is a Site, and what the goroutine's stack must show for it.
type entered struct {
	name     string    // of the function
	function *function // nil: there is nothing to look for
	outer    uintptr   // where the function returns to
	loose    bool      // the call may have left the function: it must not be in a later call of Run
}

// function is one that entered a pass of interest.
type function struct {
	pcs     map[uint64]bool // where calls of Enter return to
	crowd   int             // goroutines without a badge that have it on their stacks
	waiting map[uint64]int  // of them those that are about to enter, by place
}

// looker collects what the records of one profile show.
type looker struct {
	wanted    map[uint64]*wanted
	functions map[string]*function
	deep      int // goroutines without a badge whose stacks' outer end is cut off: they may have any function
	keep      func([]frame) int
}

func (l *looker) visit(r *record) {
	if r.badge == 0 {
		l.count(r)
		return
	}
	w := l.wanted[r.badge]
	if w == nil {
		return
	}
	s := sighting{count: r.count, whole: r.whole, stack: -1}
	run := runs(r.frames)
	s.run = run >= 0
	for site, e := range w.sites {
		if e.isOn(r.frames, site, run) {
			s.at = append(s.at, site)
		}
	}
	if s.run || len(s.at) > 0 {
		s.stack = l.keep(r.frames)
	}
	w.seen = append(w.seen, s)
}

// count adds a record without a badge to the crowds.
func (l *looker) count(r *record) {
	found := false
	for i := range r.frames {
		f := l.functions[string(r.frames[i].function)]
		if f == nil {
			continue
		}
		found = true
		if !first(r.frames, i) {
			continue
		}
		f.crowd += r.count
		if pc := f.waits(r.frames, i); pc != 0 {
			if f.waiting == nil {
				f.waiting = map[uint64]int{}
			}
			f.waiting[pc] += r.count
		}
	}
	if !r.whole && !found {
		l.deep += r.count
	}
}

// isOn reports whether the function that entered at a site is on a stack, called from where it was.
func (e *entered) isOn(frames []frame, at Site, run int) bool {
	if e.function == nil {
		return false
	}
	for i := range frames {
		if string(frames[i].function) == e.name {
			return e.function.waits(frames, i) == 0 && (!e.loose || run < 0 || run > i) && calledFrom(frames, i, at, e.outer)
		}
	}
	return false
}

// calledFrom reports whether frame i, of the function that entered, was called from where that was called then.
func calledFrom(frames []frame, i int, at Site, outer uintptr) bool {
	if outer == goexit() {
		return entryAt(uintptr(frames[len(frames)-1].pc)) == entryAt(at.PC-1)
	}
	for _, f := range frames[i+1:] {
		if uintptr(f.pc)+1 == outer {
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

// runNames are the functions that call a guarded function, on a goroutine that put its badge on before and takes it off afterwards.
var runNames = [...]string{nameOf(goroutine.Run), nameOf(goroutine.RunContext)}

func nameOf(fn any) string { return runtime.FuncForPC(reflect.ValueOf(fn).Pointer()).Name() }

// runs is where the innermost frame of Run is, or -1.
func runs(frames []frame) int {
	return slices.IndexFunc(frames, func(f frame) bool {
		return slices.ContainsFunc(runNames[:], func(name string) bool { return string(f.function) == name })
	})
}

// first reports whether frame i is the innermost of its function.
func first(frames []frame, i int) bool {
	for j := range i {
		if bytes.Equal(frames[j].function, frames[i].function) {
			return false
		}
	}
	return true
}

// waits returns where a goroutine is about to enter, if frame i, the only one of its function, stands in a call of Enter; else 0.
func (f *function) waits(frames []frame, i int) uint64 {
	pc := frames[i].pc + 1
	if i == 0 || !f.pcs[pc] || !ours(frames[i-1].function) {
		return 0
	}
	for j := i + 1; j < len(frames); j++ {
		if bytes.Equal(frames[j].function, frames[i].function) {
			return 0
		}
	}
	return pc
}
