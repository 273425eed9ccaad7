package guard

import (
	"math"
	"time"

	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/registry"
	"github.com/spillway-go/spillway/watchdog"
)

// WithWatchdog says how late calls are looked for and told, and what else to do about them (OnSlow). The Source is the runtime itself,
// and so is the Log unless cfg has one: reports are events then, and go to the runtime's loggers. Without the option a watchdog with
// the defaults of package watchdog runs.
func WithWatchdog(cfg watchdog.Config) Option {
	return func(o *options) error { o.watchdog = &cfg; return nil }
}

// WithoutWatchdog looks for no late calls, and saves each call the label by which its stack is found: about 10 ns.
func WithoutWatchdog() Option {
	return func(o *options) error { o.watchdog = nil; return nil }
}

// guardDog makes the runtime's watchdog.
func (rt *Runtime) guardDog() (err error) {
	if rt.opts.watchdog == nil {
		return nil
	}
	cfg := *rt.opts.watchdog
	cfg.Source = late{rt}
	if cfg.Log == nil {
		cfg.Log = rt.told
	}
	rt.watchdog, err = watchdog.New(cfg)
	return err
}

// told publishes a report of the watchdog. Lost and evicted calls were told one by one to the subscribers; the log gets them together.
func (rt *Runtime) told(r watchdog.Report) {
	e := Event{
		Time: r.Time, Kind: reportKinds[r.Kind], Key: r.Key, Count: uint64(r.Count), Duration: r.Age,
		InFlight: r.InFlight, Bound: r.Bound, Site: r.Site, Report: &r,
	}
	if len(r.Goroutines) > 0 {
		e.Goroutine = r.Goroutines[0]
	}
	if r.Kind == watchdog.Lost || r.Kind == watchdog.Evicted {
		e.audience = logOnly
	}
	rt.hub.publish(e)
}

var reportKinds = map[watchdog.Kind]EventKind{
	watchdog.Slow: EventSlow, watchdog.Still: EventStillSlow, watchdog.More: EventMoreSlow, watchdog.Ended: EventSlowEnded,
	watchdog.Lost: EventLost, watchdog.Evicted: EventEvicted, watchdog.Trouble: EventWatchdog,
}

// late is a runtime as the watchdog's Source.
type late struct{ rt *Runtime }

// Late implements watchdog.Source.
func (l late) Late(now int64, f func(watchdog.Call)) {
	l.rt.table.eachBulkhead(func(_ registry.Key, b *bulkhead.Bulkhead) {
		b.EachLate(now, slowOf, func(e bulkhead.LateEntry) {
			g, ok := e.Owner.(*Guard)
			if !ok {
				return
			}
			f(watchdog.Call{
				Key: g.key, Goroutine: e.Goroutine, Age: e.Age, Slow: e.Slow, InFlight: b.InFlight(), Bound: b.Bound(),
				Place: e.Place, Identity: e.Identity, Site: e.Site, Scoped: e.Scoped,
			})
		})
	})
}

// slowOf is the age at which a call of an owner is late.
func slowOf(owner any) time.Duration {
	if g, ok := owner.(*Guard); ok {
		return g.plan.Load().spec.Slow
	}
	return math.MaxInt64
}
