package pool

import (
	"log/slog"
	"sync"
	"time"

	"github.com/spillway-go/spillway/registry"
)

// tellEvery is the least time between two panics that are written to the log.
const tellEvery = time.Second

// teller writes panics where there is no OnPanic.
type teller struct {
	mu      sync.Mutex // guards the rest
	last    time.Time
	skipped uint64 // since then
}

// due reports whether a panic is to be written, and how many were not since the last.
func (l *teller) due(now time.Time) (skipped uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.last.IsZero() && now.Sub(l.last) < tellEvery {
		l.skipped++
		return 0, false
	}
	skipped, l.skipped, l.last = l.skipped, 0, now
	return skipped, true
}

// tell reports a panic. One of OnPanic or of the logger goes no further.
func (p *Pool) tell(key registry.Key, err *PanicError) {
	defer func() { _ = recover() }()
	if p.cfg.OnPanic != nil {
		p.cfg.OnPanic(key, err)
		return
	}
	if skipped, ok := p.told.due(time.Now()); ok {
		slog.Error("a task panicked", "key", string(key), "panic", err.Value, "stack", string(err.Stack), "skipped", skipped)
	}
}
