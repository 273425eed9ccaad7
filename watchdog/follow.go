package watchdog

import (
	"math"
	"slices"
	"time"

	"github.com/spillway-go/spillway/internal/clock"
	"github.com/spillway-go/spillway/registry"
)

// ident tells a late call from every other.
type ident struct {
	place    Place
	identity uint64
}

// watched is a late call that is followed from one look to the next.
type watched struct {
	Call

	round    uint64        // of the last look that saw it
	seen     int64         // the time of that look
	next     time.Duration // the age of its next report
	due      bool          // a report has to be written
	reported bool          // one was
}

// see takes a late call of the present round.
func (w *Watchdog) see(c Call) {
	if c.Slow <= 0 || c.Age < c.Slow || c.Place == nil {
		return
	}
	id := ident{c.Place, c.Identity}
	x := w.calls[id]
	if x == nil {
		if len(w.calls) >= w.cfg.MaxCalls {
			w.untracked++
			return
		}
		x = &watched{next: c.Slow}
		w.calls[id] = x
	}
	x.Call, x.round = c, w.round
	if c.Age < x.next {
		return
	}
	x.next = milestone(c.Slow, c.Age)
	if x.due {
		w.suppress(1) // the report that waits says it all
		return
	}
	x.due = true
	w.due = append(w.due, x)
}

// milestone is the smallest of slow, 2 slow, 4 slow, ... above an age.
func milestone(slow, age time.Duration) time.Duration {
	for slow <= age {
		if slow > math.MaxInt64/2 {
			return math.MaxInt64
		}
		slow *= 2
	}
	return slow
}

// follow finds the calls that ended since the last look. A call that is not late any more, as its key's threshold was raised, is
// followed until it ends.
func (w *Watchdog) follow(now int64) {
	dropDue := false
	for id, x := range w.calls {
		if x.round == w.round {
			x.seen = now
			continue
		}
		if x.Place.Holds(x.Identity) {
			continue
		}
		delete(w.calls, id)
		dropDue = dropDue || x.due
		w.over(x, now)
	}
	if dropDue {
		w.due = slices.DeleteFunc(w.due, func(x *watched) bool { return x.round == 0 })
	}
}

// over gathers a call that ended, for a line of its key.
func (w *Watchdog) over(x *watched, now int64) {
	g := w.ended[string(x.Key)]
	if g == nil {
		g = &group{Report: Report{Kind: Ended, Key: x.Key}, order: len(w.ended)}
		w.ended[string(x.Key)] = g
	}
	g.Slow, g.InFlight, g.Bound = x.Slow, x.InFlight, x.Bound
	g.add(x.Goroutine, x.Age+time.Duration(now-x.seen))
	if x.due {
		g.Suppressed++
		w.stats.suppressed.Add(1)
	}
	x.round = 0
}

func (w *Watchdog) suppress(n uint64) {
	w.held += n
	w.stats.suppressed.Add(n)
}

// dumpShare says that dumps may take one part in so many of a core: after one that took d none is taken for d x dumpShare.
const dumpShare = 20

// tellSlow writes a page about the calls that have a report due, if it is time for one.
func (w *Watchdog) tellSlow(now int64) {
	p := &w.pages[0]
	if len(w.due) == 0 || !p.take(now) {
		return
	}
	slices.SortStableFunc(w.due, func(x, y *watched) int {
		switch {
		case x.Age > y.Age:
			return -1
		case x.Age < y.Age:
			return 1
		default:
			return 0
		}
	})
	began := clock.Now()
	d := takeDump(w.due, &w.cfg)
	if d.taken {
		w.stats.dumps.Add(1)
	}
	groups := w.group(d)
	took := time.Duration(clock.Now() - began)
	w.stats.lastDump.Store(int64(took))
	p.rest(now, took*dumpShare)
	w.due = w.due[:0]
	w.write(groups)
}

// group sorts the due calls by kind, key and stack. Those that ended while the dump was taken are left to the next look: what the
// dump shows need not be theirs.
func (w *Watchdog) group(d *dump) []*group {
	var groups []*group
	type name struct {
		kind  Kind
		key   registry.Key
		no    NoStack
		stack int
	}
	index := map[name]*group{}
	for _, x := range w.due {
		x.due = false
		stack, no := d.stackOf(&x.Call)
		if !x.Place.Holds(x.Identity) {
			continue
		}
		kind := Slow
		if x.reported {
			kind = Still
		}
		x.reported = true
		if no != "" {
			w.stats.noStack.Add(1)
		}
		g := index[name{kind, x.Key, no, stack}]
		if g == nil {
			g = &group{order: len(groups), Report: Report{
				Kind: kind, Key: x.Key, Slow: x.Slow, InFlight: x.InFlight, Bound: x.Bound, Stack: d.stacks.at(stack), NoStack: no,
			}}
			index[name{kind, x.Key, no, stack}] = g
			groups = append(groups, g)
		}
		g.add(x.Goroutine, x.Age)
	}
	return groups
}

// write writes a page of slow calls.
func (w *Watchdog) write(groups []*group) {
	slices.SortFunc(groups, larger)
	at := time.Now()
	more := Report{Kind: More, Time: at}
	for i, g := range groups {
		g.Time = at
		if i >= w.cfg.Lines {
			more.Count += g.Count
			more.Groups++
			continue
		}
		if i == 0 {
			g.Suppressed, w.held = w.held, 0
		}
		w.log(g.Report)
		w.hook.offer(g.Report)
	}
	if more.Groups > 0 {
		w.log(more)
	}
}

// tellEnded writes what late calls ended, a line for each key, if it is time for that.
func (w *Watchdog) tellEnded(now int64) {
	if len(w.ended) > 0 && w.pages[1].take(now) {
		w.lines(w.ended)
	}
}

// lines writes gathered groups and forgets them.
func (w *Watchdog) lines(groups map[string]*group) {
	list := make([]*group, 0, len(groups))
	for _, g := range groups {
		list = append(list, g)
	}
	clear(groups)
	slices.SortFunc(list, larger)
	at := time.Now()
	for i, g := range list {
		if i == 10*w.cfg.Lines {
			w.troublef("%d more lines about keys whose late calls ended, or whose calls were lost, are left out", len(list)-i)
			return
		}
		g.Time = at
		w.log(g.Report)
	}
}

// tellUntracked says once a minute that there are more late calls than can be followed.
func (w *Watchdog) tellUntracked(now int64) {
	w.untold = max(w.untold, w.untracked)
	if w.untold > 0 && (w.told == 0 || now-w.told >= int64(time.Minute)) {
		w.troublef("%d late calls are not followed, beyond the first %d", w.untold, w.cfg.MaxCalls)
		w.told, w.untold = now, 0
	}
}
