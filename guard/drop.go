package guard

import (
	"cmp"
	"runtime"
	"slices"
	"time"
	"weak"

	"github.com/spillway-go/spillway/registry"
)

// dropPause is how long a table in which all guards were busy is not searched again.
const dropPause = 100 * time.Millisecond

// drop lets go of a sixteenth of the undeclared guards, or of as many as there are too many, those idle the longest. False:
// all are busy. Under mu.
func (t *table) drop() bool {
	now := time.Now()
	if now.Before(t.dropAfter) && t.dropAfter.Sub(now) <= dropPause {
		return false
	}
	type idle struct {
		g     *Guard
		since time.Duration
	}
	var list []idle
	t.byKey.Range(func(_, v any) bool {
		g := v.(*Guard)
		if g.declared {
			return true
		}
		if ok, since := g.own.Idle(); ok {
			list = append(list, idle{g, min(since, now.Sub(g.created))})
		}
		return true
	})
	slices.SortFunc(list, func(a, b idle) int { return cmp.Compare(b.since, a.since) })
	want := max(1, t.rt.opts.maxKeys/16, t.undeclared-t.rt.opts.maxKeys+1)
	list = list[:min(len(list), want)]
	gone := make(map[*Guard]bool, len(list))
	for _, x := range list {
		t.forget(x.g)
		gone[x.g] = true
	}
	for i := range t.front {
		if g := t.front[i].Load(); gone[g] {
			t.front[i].CompareAndSwap(g, nil)
		}
	}
	switch {
	case len(list) == 0:
		t.dropAfter = now.Add(dropPause)
	case len(list) < want: // the next newcomers will need it again: a tenth of the time is enough
		t.dropAfter = now.Add(min(dropPause, 9*time.Since(now)))
	}
	return len(list) > 0
}

// forget keeps a guard only for those who hold it. Under mu.
func (t *table) forget(g *Guard) {
	t.byKey.Delete(g.key)
	t.undeclared--
	p := weak.Make(g)
	t.weak[g.key] = p
	t.rt.tell(g.key, &g.own) // nobody else may be left to do it
	if g.refused.total() != g.episode.seen.Load() && len(t.leaving) < t.rt.opts.maxKeys {
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
	if t.undeclared > t.rt.opts.maxKeys {
		t.drop()
	}
}

// left hands over the guards that were dropped with refusals that were not told of.
func (t *table) left() []*Guard {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.leaving
	t.leaving = nil
	return list
}
