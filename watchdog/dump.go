package watchdog

import (
	"runtime"
	"runtime/pprof"
	"sync"

	"github.com/spillway-go/spillway/internal/goroutine"
)

// NoStack says why a report shows no stack, in words. It is "" where one is shown.
type NoStack string

// The reasons. Each means that showing a stack would be guessing.
const (
	// NoMark: this build's goroutines cannot be marked, or the place has no mark.
	NoMark NoStack = "calls of this build cannot be marked"
	// NoLabel: no goroutine wears the call's mark. Most often the call's own code replaced its goroutine's profiler labels (pprof.Do,
	// pprof.SetGoroutineLabels); or the pass was handed on and its first goroutine entered other calls or ended.
	NoLabel NoStack = "no goroutine wears its mark: profiler labels were replaced inside the call, or its goroutine went on"
	// NoProof: goroutines wear the mark, but none is certain to be the one that entered.
	NoProof NoStack = "not certain which goroutine it is"
	// TooDeep: the frame that would prove it is cut off. GODEBUG=profstackdepth=1024 raises the limit.
	TooDeep NoStack = "the stack is deeper than the profile shows"
	// Moving: the call was inside another guarded call that came or went while the profile was taken.
	Moving NoStack = "inside a guarded call that changed meanwhile"
	// TooMany: there are more goroutines than Config.MaxGoroutines, so no profile was taken.
	TooMany NoStack = "too many goroutines for a profile"
	// Unreadable: the profile has a form that this package does not know.
	Unreadable NoStack = "the goroutine profile of this build is not understood"
	// NoRoom: the dump's distinct stacks took more than Config.MaxBytes.
	NoRoom NoStack = "too many different stacks"
)

// dumping lets one dump happen at a time in the process: its number stands still until it has been judged.
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
	number  uint64
	byOwner map[uint64][]*wanted
	looker  looker
	stacks  stacks
	failed  NoStack // for all calls, if not ""
}

// takeDump takes a profile for the goroutines of the given calls and hands it to judge, before another dump can begin. The goroutine that
// calls it wears probe meanwhile, whose record must turn up: that is how a change of the profile's form is noticed.
func takeDump(calls []*watched, probe *Mark, cfg *Config, judge func(*dump)) {
	d := &dump{stacks: stacks{maxFrames: cfg.MaxFrames, maxBytes: cfg.MaxBytes}}
	switch {
	case probe == nil:
		d.failed = NoMark
	case runtime.NumGoroutine() > cfg.MaxGoroutines:
		d.failed = TooMany
	default:
		dumping.Lock()
		defer dumping.Unlock()
		d.choose(calls, probe)
		d.profile(probe)
		d.count()
	}
	judge(d)
}

// profile takes the profile and keeps what it shows of the chosen marks.
func (d *dump) profile(probe *Mark) {
	r := profileReader{goexit: uint64(goexit()), visit: d.looker.visit}
	err := probe.Run(goroutine.ID(), func() error { return pprof.Lookup("goroutine").WriteTo(&r, 1) })
	r.close()
	if seen := d.looker.wanted[probe.id].seen; err != nil || len(seen) != 1 || seen[0].count != 1 || !seen[0].run || !seen[0].whole {
		d.failed = Unreadable
	}
}

// count makes ready for stackOf.
func (d *dump) count() {
	for _, s := range d.looker.sites {
		s.crowd.count(d.number)
	}
	d.looker.deep.count(d.number)
}

// choose begins the dump and finds the marks that goroutines with late calls hold.
func (d *dump) choose(calls []*watched, probe *Mark) {
	d.number = epoch.Add(1)
	owners := make(map[uint64]bool, len(calls))
	for _, c := range calls {
		owners[c.Goroutine] = true
	}
	d.byOwner = make(map[uint64][]*wanted, len(calls))
	d.looker = looker{wanted: map[uint64]*wanted{probe.id: {mark: probe}}, sites: map[string]*site{}, keep: d.stacks.keep}
	marks.each(func(m *Mark) {
		owner := m.holder.Load()
		if !owners[owner] {
			return
		}
		w := &wanted{mark: m}
		if p := m.shown.Load(); p != nil {
			if w.live = p.live.Load(); w.live != 0 {
				w.at = p.site()
			}
		}
		d.looker.wanted[m.id] = w
		d.byOwner[owner] = append(d.byOwner[owner], w)
	})
	type place struct {
		name  string
		outer uintptr
	}
	places := map[Site]place{}
	for _, w := range d.looker.wanted {
		if w.at.pc == 0 {
			continue
		}
		p, ok := places[w.at]
		if !ok {
			p = place{functionAt(w.at.pc), w.at.shownCaller()}
			places[w.at] = p
		}
		if p.name == "" || p.outer == 0 || !sitesRight() {
			continue
		}
		w.outer = p.outer
		w.site = d.looker.sites[p.name]
		if w.site == nil {
			w.site = &site{pcs: map[uint64]bool{}}
			d.looker.sites[p.name] = w.site
		}
		w.site.pcs[uint64(w.at.pc)] = true
	}
}

// stackOf returns which of the stacks provably is the call's goroutine's, or -1 and why there is none.
func (d *dump) stackOf(c *Call) (int, NoStack) {
	if d.failed != "" {
		return -1, d.failed
	}
	if c.Mark == nil {
		return -1, NoMark
	}
	var found *sighting
	why := NoLabel
	for _, w := range d.byOwner[c.Goroutine] {
		own := w.mark == c.Mark
		if !own && !c.Scoped {
			continue
		}
		s, no := d.proven(w, c, own)
		switch {
		case s != nil && found != nil:
			return -1, NoProof
		case s != nil:
			found = s
		case own && no != NoLabel || why == NoLabel:
			why = no
		}
	}
	switch {
	case found == nil:
		return -1, why
	case found.stack < 0:
		return -1, NoRoom
	}
	return found.stack, ""
}

// proven returns the record of the goroutine of call c, if mark w proves it to be that.
func (d *dump) proven(w *wanted, c *Call, own bool) (*sighting, NoStack) {
	if len(w.seen) == 0 {
		return nil, NoLabel
	}
	if !w.mark.heldBy(c.Goroutine, d.number) {
		return nil, Moving
	}
	var found *sighting
	runs, sites, deep := 0, 0, 0
	live := w.live != 0 && w.mark.shown.Load().live.Load() == w.live
	for i := range w.seen {
		s := &w.seen[i]
		switch {
		case s.kind == 'd' && s.run:
			runs += s.count
			found = s
		case s.kind == 'p' && s.atSite && live:
			sites += s.count
			found = s
		}
		if !s.whole {
			deep++
		}
	}
	switch {
	case runs+sites == 0 && deep > 0:
		return nil, TooDeep
	case runs+sites != 1:
		return nil, NoProof
	case runs == 1:
		return found, ""
	}
	n := w.site.crowd.others(c.Goroutine, w.mark, d.number) + d.looker.deep.others(c.Goroutine, w.mark, d.number)
	if own && c.Scoped {
		n -= w.site.crowd.waiting[uint64(w.at.pc)]
	}
	if n > 0 {
		return nil, NoProof
	}
	return found, ""
}
