package guard

import (
	"runtime"
	"slices"
	"time"
	"weak"

	"github.com/spillway-go/spillway/registry"
)

// searchPause is how long a table in which all guards were busy is not searched again.
const searchPause = 100 * time.Millisecond

// idle is a guard that was idle when the table was searched, since a time.
type idle struct {
	g     *Guard
	since time.Time
}

// idleSince is when an undeclared guard began to be idle: when its last call started, or it came into the table. Under mu.
func (g *Guard) idleSince() (since time.Time, ok bool) {
	ok, d := g.own.Idle()
	since = time.Now().Add(-d)
	if since.Before(g.came) {
		since = g.came
	}
	return since, ok
}

// drop lets go of undeclared guards, those first that have been idle the longest, until there is room for so many more. False:
// all that are left are busy. Under mu.
func (t *table) drop(room int) bool {
	for t.undeclared+room > t.rt.opts.maxKeys {
		g := t.longestIdle()
		if g == nil {
			return false
		}
		t.forget(g)
	}
	return true
}

// longestIdle takes the guard that has been idle the longest off the list of the last search, or searches anew. A guard that
// is on the list and was not used since was so before any that is not. Under mu.
func (t *table) longestIdle() *Guard {
	for searched := false; ; searched = true {
		for len(t.idle) > 0 {
			x := t.idle[0]
			t.idle[0].g = nil
			t.idle = t.idle[1:]
			if since, ok := x.g.idleSince(); ok && !x.g.declared && since.Sub(x.since) < time.Microsecond {
				return x.g
			}
		}
		if searched || !t.search() {
			return nil
		}
	}
}

// search lists the undeclared guards that are idle, those first that have been so the longest. False: there are none, or it is too
// early to search again. Under mu.
func (t *table) search() bool {
	start := time.Now()
	if wait := t.searchAfter.Sub(start); wait > 0 && wait <= searchPause {
		return false
	}
	t.idle = t.idle[:0]
	for _, g := range t.held {
		if g.declared {
			continue
		}
		if since, ok := g.idleSince(); ok {
			t.idle = append(t.idle, idle{g, since})
		}
	}
	slices.SortFunc(t.idle, func(a, b idle) int { return a.since.Compare(b.since) })
	switch {
	case len(t.idle) == 0:
		t.searchAfter = start.Add(searchPause)
	case len(t.idle) < t.rt.opts.maxKeys/16: // soon used up: searching may take a tenth of the time
		t.searchAfter = start.Add(min(searchPause, 10*time.Since(start)))
	}
	return len(t.idle) > 0
}

// forget keeps a guard only for those who hold it. Under mu.
func (t *table) forget(g *Guard) {
	t.byKey.Delete(g.key)
	last := len(t.held) - 1
	t.held[g.at] = t.held[last]
	t.held[g.at].at = g.at
	t.held[last] = nil
	t.held = t.held[:last]
	g.held = false
	t.attend(g)
	t.account(g)
	for i := range t.front {
		if t.front[i].Load() == g {
			t.front[i].CompareAndSwap(g, nil)
		}
	}
	t.undeclared--
	p := weak.Make(g)
	t.weak[g.key] = p
	t.rt.tell(g.key, &g.own) // nobody else may be left to do it
	if g.refused.total() != g.episode.seen.Load() && len(t.leaving) < t.rt.opts.maxKeys && !t.rt.closed.Load() {
		t.leaving = append(t.leaving, g)
	}
	if g.forgotten {
		return
	}
	g.forgotten = true
	runtime.AddCleanup(g, func(key registry.Key) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.weak[key] == p {
			delete(t.weak, key)
		}
	}, g.key)
}

// trim drops guards after declared ones became undeclared.
func (t *table) trim() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(0)
}

// left hands over the guards that were dropped with refusals that were not told of.
func (t *table) left() []*Guard {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.leaving
	t.leaving = nil
	return list
}
