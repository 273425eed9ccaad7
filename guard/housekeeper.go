package guard

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/internal/clock"
	"github.com/spillway-go/spillway/registry"
	"github.com/spillway-go/spillway/watchdog"
)

// sweepEvery is how often lost and evicted calls are looked for, countEvery how often refusals are summed up.
const (
	sweepEvery = 250 * time.Millisecond
	countEvery = time.Second
	calmAfter  = 10 * time.Second
	tickEvery  = 100 * time.Millisecond // bounds go back, windows move on
)

// episode is a time in which a key refuses calls. The housekeeper's own, but for seen.
type episode struct {
	seen  atomic.Uint64 // refusals at the last look
	total uint64        // since it began
	began time.Time     // the look before the first that saw refusals
	last  time.Time     // the last look that saw refusals
}

// start begins the background work, once.
func (rt *Runtime) start() {
	rt.started.Do(func() {
		rt.ticked.Store(clock.Now())
		if rt.sampler != nil {
			rt.sampler.Start()
		}
		if rt.watchdog != nil {
			rt.watchdog.Start()
		}
		sub := rt.hub.subscribe(1024)
		sub.log.Store(true)
		rt.done.Add(2)
		go rt.keepHouse()
		go rt.writeLog(sub)
	})
}

func (rt *Runtime) writeLog(sub *Subscription) {
	defer rt.done.Done()
	sinks := make([]sink, len(rt.opts.loggers))
	for i, l := range rt.opts.loggers {
		sinks[i] = sink{name: fmt.Sprintf("logger %d of %d", i+1, len(sinks)), log: l, stderr: rt.opts.stderr}
	}
	write := func(e Event) {
		if quiet(e) {
			return
		}
		for i := range sinks {
			sinks[i].write(e)
		}
	}
	told := uint64(0)
	for {
		e, err := sub.Next(context.Background())
		if err != nil {
			break
		}
		if n := sub.Dropped(); n > told {
			write(Event{Time: time.Now(), Kind: EventDropped, Count: n - told})
			told = n
		}
		write(e)
	}
	for i := range sinks {
		sinks[i].end()
	}
}

func (rt *Runtime) keepHouse() {
	defer rt.done.Done()
	defer rt.hub.close() // after the last sweep
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	// refusing are the guards in an episode, held so that the table's dropping one does not leave its end untold.
	refusing := map[*Guard]struct{}{}
	counted := time.Now()
	for {
		select {
		case <-rt.stop:
			rt.sweep()
			rt.count(counted, time.Now(), refusing)
			if rt.watchdog != nil {
				rt.watchdog.Close() // which tells what is left
			}
			return
		case <-tick.C:
			if rt.scaler != nil {
				rt.scaler.Tick()
			}
			rt.ticked.Store(clock.Now())
			rt.table.tick()
			continue
		case <-ticker.C:
		}
		rt.sweep()
		if now := time.Now(); now.Sub(counted) >= countEvery {
			if rt.refusing.Swap(false) || len(refusing) > 0 {
				rt.count(counted, now, refusing)
			}
			counted = now
		}
	}
}

// sweep tells of lost and evicted calls.
func (rt *Runtime) sweep() {
	rt.table.tellOverflow()
	if rt.reported.Swap(false) {
		rt.table.eachBulkhead(rt.tell)
	}
}

// tell publishes what a bulkhead has to report. name is its key, or its group.
func (rt *Runtime) tell(name registry.Key, b *bulkhead.Bulkhead) {
	list, dropped := b.Reports()
	for _, r := range list {
		e := newEvent(EventLost, name, b)
		if g, ok := r.Owner.(*Guard); ok {
			e.Key = g.key
			if r.Kind == bulkhead.Evicted {
				g.evicted.Add(1)
			} else {
				g.lost.Add(1)
			}
		}
		if r.Kind == bulkhead.Evicted {
			e.Kind = EventEvicted
		}
		e.Count, e.Duration, e.Goroutine, e.Site = uint64(r.Weight), r.Age, r.Goroutine, site(r.Site)
		if rt.watchdog != nil {
			gone := watchdog.Gone{Key: e.Key, Goroutine: e.Goroutine, Age: e.Duration, Site: e.Site, InFlight: e.InFlight, Bound: e.Bound}
			if r.Kind == bulkhead.Evicted {
				rt.watchdog.Evicted(gone)
			} else {
				rt.watchdog.Lost(gone)
			}
			e.audience = subscribersOnly // the log gets the watchdog's report
		}
		rt.hub.publish(e)
	}
	if dropped > 0 {
		e := newEvent(EventDropped, name, b)
		e.Count = dropped
		rt.hub.publish(e)
	}
}

// count tells of the refusals between two looks, and keeps refusing to the guards that are in an episode of them.
func (rt *Runtime) count(before, now time.Time, refusing map[*Guard]struct{}) {
	leaving := rt.table.left()
	rt.table.each(func(g *Guard) {
		ep := &g.episode
		total := g.refused.total()
		n := total - ep.seen.Swap(total)
		switch {
		case n > 0:
			if ep.total == 0 {
				ep.began = before
			}
			ep.total += n
			ep.last = now
			if len(refusing) < rt.opts.maxKeys {
				refusing[g] = struct{}{}
			}
			e := g.event(EventRefused)
			e.Count, e.Total = n, ep.total
			rt.hub.publish(e)
		case ep.total > 0 && now.Sub(ep.last) >= calmAfter:
			delete(refusing, g)
			e := g.event(EventCalm)
			e.Count, e.Duration = ep.total, ep.last.Sub(ep.began)
			rt.hub.publish(e)
			ep.total = 0
		}
	})
	runtime.KeepAlive(leaving) // the table knew them only weakly
}

func (g *Guard) event(kind EventKind) Event { return newEvent(kind, g.key, g.plan.Load().bulkhead) }

func newEvent(kind EventKind, key registry.Key, b *bulkhead.Bulkhead) Event {
	return Event{Time: time.Now(), Kind: kind, Key: key, Bound: b.Bound(), InFlight: b.InFlight()}
}

func ours(function string) bool {
	return strings.HasPrefix(function, "github.com/spillway-go/spillway/guard.") ||
		strings.HasPrefix(function, "github.com/spillway-go/spillway/bulkhead.") ||
		strings.HasPrefix(function, "github.com/spillway-go/spillway/httpguard.")
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
