package watchdog

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/registry"
)

// Gone is a call that did not leave its place by itself.
type Gone struct {
	Key       registry.Key
	Goroutine uint64 // that entered
	Age       time.Duration
	Site      string // where its pass was taken, if known
	InFlight  int    // of the key, or its group
	Bound     int
}

// Lost reports a call whose pass became unreachable without Exit. Like Evicted it does not block: the line is written at the next look, together
// with others of the key and site. Up to 1,024 wait for that; more are counted.
func (w *Watchdog) Lost(g Gone) { w.gone.add(gone{g, Lost}) }

// Evicted reports a call that lost its place to a newcomer as it was stuck. It runs on, and goes on being reported as slow while the
// Source knows it.
func (w *Watchdog) Evicted(g Gone) { w.gone.add(gone{g, Evicted}) }

type gone struct {
	Gone

	kind Kind
}

const maxGone = 1024

// goneQueue is what Lost and Evicted leave for the watchdog's goroutine.
type goneQueue struct {
	dropped atomic.Uint64

	mu   sync.Mutex // guards list; held for an append only
	list []gone
}

func (q *goneQueue) add(g gone) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.list) >= maxGone {
		q.dropped.Add(1)
		return
	}
	q.list = append(q.list, g)
}

func (q *goneQueue) take() []gone {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.list
	q.list = nil
	return list
}

// tellGone gathers lost and evicted calls by kind, key and site, and writes them if it is time for that, or the last time.
func (w *Watchdog) tellGone(now int64, last bool) {
	for _, c := range w.gone.take() {
		name := c.kind.String() + " " + string(c.Key) + " " + c.Site
		g := w.waiting[name]
		if g == nil {
			if len(w.waiting) >= maxGone {
				w.gone.dropped.Add(1)
				continue
			}
			g = &group{Report: Report{Kind: c.kind, Key: c.Key, Site: c.Site}, order: len(w.waiting)}
			w.waiting[name] = g
		}
		g.InFlight, g.Bound = c.InFlight, c.Bound
		g.add(c.Goroutine, c.Age)
	}
	if len(w.waiting) > 0 && (last || w.pages[2].take(now)) {
		w.lines(w.waiting)
	}
}
