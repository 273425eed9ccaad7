package guard

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spillway-go/spillway/bulkhead"
)

// sweepEvery is how often lost and evicted calls are looked for, countEvery how often refusals are summed up.
const (
	sweepEvery = 250 * time.Millisecond
	countEvery = time.Second
	calmAfter  = 10 * time.Second
)

// episode is a time in which a key refuses calls. The housekeeper's own.
type episode struct {
	seen  uint64 // refusals at the last look
	total uint64 // since it began
	began time.Time
	last  time.Time // the last look that saw refusals
}

// start begins the background work, once.
func (rt *Runtime) start() {
	rt.started.Do(func() {
		sub := rt.hub.subscribe(1024)
		rt.done.Add(2)
		go rt.keepHouse()
		go rt.writeLog(sub)
	})
}

func (rt *Runtime) writeLog(sub *Subscription) {
	defer rt.done.Done()
	for {
		e, err := sub.Next(context.Background())
		if err != nil {
			return
		}
		if quiet(e) {
			continue
		}
		for _, l := range rt.opts.loggers {
			l(e)
		}
	}
}

func (rt *Runtime) keepHouse() {
	defer rt.done.Done()
	defer rt.hub.close() // after the last sweep
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	counted := time.Now()
	busy := false // some key is in an episode
	for {
		select {
		case <-rt.stop:
			rt.sweep()
			rt.count(time.Now())
			return
		case <-ticker.C:
		}
		rt.sweep()
		if now := time.Now(); now.Sub(counted) >= countEvery {
			counted = now
			if rt.refusing.Swap(false) || busy {
				busy = rt.count(now)
			}
		}
	}
}

// sweep tells of lost and evicted calls.
func (rt *Runtime) sweep() {
	rt.table.tellOverflow()
	if !rt.reported.Swap(false) {
		return
	}
	rt.table.each(func(g *Guard) {
		list, dropped := g.plan.Load().bulkhead.Reports()
		for _, r := range list {
			g := g
			if owner, ok := r.Owner.(*Guard); ok {
				g = owner
			}
			e := g.event(EventLost)
			if r.Kind == bulkhead.Evicted {
				e.Kind = EventEvicted
				g.evicted.Add(1)
			} else {
				g.lost.Add(1)
			}
			e.Count, e.Duration, e.Goroutine, e.Site = uint64(r.Weight), r.Age, r.Goroutine, site(r.Site)
			rt.hub.publish(e)
		}
		if dropped > 0 {
			e := g.event(EventDropped)
			e.Count = dropped
			rt.hub.publish(e)
		}
	})
}

// count tells of refusals, and reports whether some key is in an episode of them.
func (rt *Runtime) count(now time.Time) (busy bool) {
	rt.table.each(func(g *Guard) {
		ep := &g.episode
		total := g.refused.total()
		n := total - ep.seen
		ep.seen = total
		switch {
		case n > 0:
			if ep.total == 0 {
				ep.began = now
			}
			ep.total += n
			ep.last = now
			e := g.event(EventRefused)
			e.Count, e.Total = n, ep.total
			rt.hub.publish(e)
		case ep.total > 0 && now.Sub(ep.last) >= calmAfter:
			e := g.event(EventCalm)
			e.Count, e.Duration = ep.total, ep.last.Sub(ep.began)
			rt.hub.publish(e)
			ep.total = 0
		}
		busy = busy || ep.total > 0
	})
	return busy
}

func (g *Guard) event(kind EventKind) Event {
	p := g.plan.Load()
	return Event{Time: time.Now(), Kind: kind, Key: g.key, Bound: p.bulkhead.Bound(), InFlight: p.bulkhead.InFlight()}
}

// site is the innermost frame outside of this module's packages.
func site(pcs []uintptr) string {
	if len(pcs) == 0 {
		return ""
	}
	frames := runtime.CallersFrames(pcs)
	for {
		f, more := frames.Next()
		if f.Function != "" && !ours(f.Function) || !more {
			return fmt.Sprintf("%s:%d %s", filepath.Base(f.File), f.Line, f.Function)
		}
	}
}
