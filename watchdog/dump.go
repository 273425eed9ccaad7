package watchdog

import (
	"runtime"
	"runtime/pprof"
	"slices"
	"sync"

	"github.com/spillway-go/spillway/internal/goroutine"
)

// NoStack says why a report shows no stack, in words. It is "" where one is shown.
type NoStack string

// The reasons. Each means that showing a stack would be guessing.
const (
	// NoMark: this build's goroutines cannot be marked.
	NoMark NoStack = "calls of this build cannot be marked"
	// NoLabel: no goroutine wears the label of the one that entered. Most often the call's own code replaced its goroutine's profiler labels
	// (pprof.Do, pprof.SetGoroutineLabels); or the pass was handed on and its first goroutine ended.
	NoLabel NoStack = "no goroutine wears its label: profiler labels were replaced inside the call, or its goroutine went on"
	// NoProof: goroutines wear the label, but none is certain to be the one that entered.
	NoProof NoStack = "not certain which goroutine it is"
	// TooDeep: the frame that would prove it is cut off. GODEBUG=profstackdepth=1024 raises the limit.
	TooDeep NoStack = "the stack is deeper than the profile shows"
	// TooMany: there are more goroutines than Config.MaxGoroutines, so no profile was taken.
	TooMany NoStack = "too many goroutines for a profile"
	// Unreadable: the profile has a form that this package does not know.
	Unreadable NoStack = "the goroutine profile of this build is not understood"
	// NoRoom: the dump's distinct stacks took more than Config.MaxBytes.
	NoRoom NoStack = "too many different stacks"
)

// dumping lets one dump happen at a time in the process.
var dumping sync.Mutex

// goexit is the address that a whole stack in a profile ends with.
var goexit = sync.OnceValue(func() uintptr {
	answer := make(chan uintptr)
	go func() {
		var pcs [16]uintptr
		n := runtime.Callers(0, pcs[:])
		answer <- pcs[n-1]
	}()
	return <-answer
})

// dump is one goroutine profile, read for the sake of some late calls.
type dump struct {
	taken  bool
	looker looker
	stacks stacks
	failed NoStack // for all calls, if not ""
}

// takeDump takes a profile for the goroutines of the given calls. The goroutine that calls it wears a badge meanwhile, whose record must turn
// up: that is how a change of the profile's form is noticed.
func takeDump(calls []*watched, cfg *Config) *dump {
	d := &dump{stacks: stacks{maxFrames: cfg.MaxFrames, maxBytes: cfg.MaxBytes}}
	switch {
	case !goroutine.Recognizable():
		d.failed = NoMark
	case runtime.NumGoroutine() > cfg.MaxGoroutines:
		d.failed = TooMany
	default:
		dumping.Lock()
		defer dumping.Unlock()
		d.choose(calls)
		d.profile()
	}
	return d
}

// choose says what to look for.
func (d *dump) choose(calls []*watched) {
	d.looker = looker{wanted: make(map[uint64]*wanted, len(calls)), functions: map[string]*function{}, keep: d.stacks.keep}
	places := map[Site]entered{}
	for _, c := range calls {
		w := d.looker.wanted[c.Goroutine]
		if w == nil {
			w = new(wanted)
			d.looker.wanted[c.Goroutine] = w
		}
		if c.Site.PC == 0 || !goroutine.SitesRight() {
			continue
		}
		e, ok := places[c.Site]
		if !ok {
			e = d.looker.entered(c.Site)
			places[c.Site] = e
		}
		if w.sites == nil {
			w.sites = map[Site]*entered{}
		}
		mine := w.sites[c.Site]
		if mine == nil {
			mine = &entered{e.name, e.function, e.outer, true}
			w.sites[c.Site] = mine
		}
		mine.loose = mine.loose && !c.Scoped
	}
}

// entered says what to look for on the stack of a goroutine that entered at a site.
func (l *looker) entered(at Site) (e entered) {
	name, outer := functionAt(at.PC), shownCaller(at)
	if name == "" || outer == 0 {
		return e
	}
	f := l.functions[name]
	if f == nil {
		f = &function{pcs: map[uint64]bool{}}
		l.functions[name] = f
	}
	f.pcs[uint64(at.PC)] = true
	return entered{name: name, function: f, outer: outer}
}

// profile takes the profile and keeps what it shows of the chosen goroutines.
func (d *dump) profile() {
	me := goroutine.ID()
	own := new(wanted)
	d.looker.wanted[me] = own
	r := profileReader{goexit: uint64(goexit()), visit: d.looker.visit}
	badge := goroutine.Wear(me)
	err := goroutine.Run(func() error { return pprof.Lookup("goroutine").WriteTo(&r, 1) })
	badge.Off()
	r.close()
	d.taken = true
	if len(own.seen) != 1 || err != nil || own.seen[0].count != 1 || !own.seen[0].run || !own.seen[0].whole {
		d.failed = Unreadable
	}
}

// stackOf returns which of the stacks provably is the call's goroutine's, or -1 and why there is none.
func (d *dump) stackOf(c *Call) (int, NoStack) {
	if d.failed != "" {
		return -1, d.failed
	}
	s, no := d.proven(c)
	switch {
	case no != "":
		return -1, no
	case s.stack < 0:
		return -1, NoRoom
	}
	return s.stack, ""
}

// proven returns the record that is the goroutine of call c.
func (d *dump) proven(c *Call) (found *sighting, no NoStack) {
	w := d.looker.wanted[c.Goroutine]
	if w == nil || len(w.seen) == 0 {
		return nil, NoLabel
	}
	runs, here, deep := 0, 0, 0
	for i := range w.seen {
		s := &w.seen[i]
		switch {
		case c.Scoped && s.run:
			runs += s.count
			found = s
		case slices.Contains(s.at, c.Site):
			here += s.count
			if runs == 0 {
				found = s
			}
		}
		if !s.whole {
			deep++
		}
	}
	switch {
	case runs == 1:
		return found, ""
	case runs+here == 0 && deep > 0:
		return nil, TooDeep
	case runs > 0 || here != 1:
		return nil, NoProof
	}
	f := w.sites[c.Site].function
	n := f.crowd + d.looker.deep
	if c.Scoped {
		n -= f.waiting[uint64(c.Site.PC)]
	}
	if n > 0 {
		return nil, NoProof
	}
	return found, ""
}
