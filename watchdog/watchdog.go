package watchdog

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/internal/clock"
	"github.com/spillway-go/spillway/internal/goroutine"
)

// Watchdog looks for late calls and reports them. Its methods are safe for concurrent use. Create it with New.
type Watchdog struct {
	cfg  Config
	stop chan struct{}
	done sync.WaitGroup
	once sync.Once // Start or, before it, Close
	end  sync.Once

	gone  goneQueue
	hook  hook
	stats counters

	// The rest belongs to the watchdog's goroutine.
	calls     map[ident]*watched
	round     uint64
	due       []*watched
	ended     map[string]*group
	waiting   map[string]*group // lost and evicted calls
	pages     [3]pages          // of slow calls, of ended ones, of lost and evicted ones
	untracked uint64
	untold    uint64 // calls beyond MaxCalls of the worst scan since the last word about them
	told      int64  // when that was
	held      uint64 // suppressed reports since the last page
}

// New returns a watchdog that does nothing before Start. The error lists everything that is wrong with cfg.
func New(cfg Config) (*Watchdog, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	w := &Watchdog{
		cfg: cfg, stop: make(chan struct{}),
		calls: map[ident]*watched{}, ended: map[string]*group{}, waiting: map[string]*group{},
	}
	for i := range w.pages {
		w.pages[i] = newPages(cfg.Burst, cfg.Every)
	}
	if cfg.OnSlow != nil {
		w.hook.start(cfg.OnSlow)
	}
	return w, nil
}

// Start begins to watch, once. After Close it does nothing.
func (w *Watchdog) Start() {
	w.once.Do(func() {
		w.done.Go(w.watch)
		if w.cfg.OnSlow != nil {
			w.done.Go(w.hook.run)
		}
	})
}

// Close ends the watching, and waits for the Log and the OnSlow that run. Reports that wait for OnSlow are dropped. It may be called more than
// once, but not from these two.
func (w *Watchdog) Close() {
	w.once.Do(func() {})
	w.end.Do(func() {
		close(w.stop)
		w.hook.close()
	})
	w.done.Wait()
}

func (w *Watchdog) watch() {
	goroutine.Verify()
	ticker := time.NewTicker(w.cfg.Period)
	defer ticker.Stop()
	for {
		select {
		case <-w.stop:
			w.tellGone(clock.Now(), true)
			return
		case <-ticker.C:
			w.look(clock.Now())
		}
	}
}

// look is one round: who is late, who is no longer, and what to say of it.
func (w *Watchdog) look(now int64) {
	w.round++
	w.untracked = 0
	w.cfg.Source.Late(now, w.see)
	w.follow(now)
	w.tellSlow(now)
	w.tellEnded(now)
	w.tellGone(now, false)
	w.tellUntracked(now)
	w.hook.tell(now, w.troublef)
	w.stats.late.Store(int64(len(w.calls)) + int64(w.untracked))
}

// log writes a report. A panic of the logger is counted only: there is nobody left to tell.
func (w *Watchdog) log(r Report) {
	w.stats.reports.Add(1)
	if w.cfg.Log == nil {
		return
	}
	defer func() {
		if recover() != nil {
			w.stats.logPanics.Add(1)
		}
	}()
	w.cfg.Log(r)
}

func (w *Watchdog) troublef(format string, args ...any) {
	w.log(Report{Kind: Trouble, Time: time.Now(), Problem: fmt.Sprintf(format, args...)})
}

// Stats are figures since New, except for Late and LastDump.
type Stats struct {
	Late        int           // calls that were late at the last look
	Reports     uint64        // written
	Dumps       uint64        // goroutine profiles taken
	LastDump    time.Duration // what the last one took
	Suppressed  uint64        // reports that there was no time for
	NoStack     uint64        // calls that were reported without a stack
	HookDropped uint64        // reports that OnSlow was too slow for
	HookPanics  uint64
	LogPanics   uint64
	GoneDropped uint64 // lost and evicted calls that nobody was told of
}

type counters struct {
	late, lastDump                                 atomic.Int64
	reports, dumps, suppressed, noStack, logPanics atomic.Uint64
}

// Stats returns the figures of this moment.
func (w *Watchdog) Stats() Stats {
	s := &w.stats
	return Stats{
		Late: int(s.late.Load()), Reports: s.reports.Load(), Dumps: s.dumps.Load(), LastDump: time.Duration(s.lastDump.Load()),
		Suppressed: s.suppressed.Load(), NoStack: s.noStack.Load(), HookDropped: w.hook.dropped.Load(), HookPanics: w.hook.panics.Load(),
		LogPanics: s.logPanics.Load(), GoneDropped: w.gone.dropped.Load(),
	}
}
