package pool

import (
	"log/slog"
	"runtime/debug"
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

// tell reports a panic.
func (p *Pool) tell(key registry.Key, err *PanicError) {
	if p.cfg.OnPanic == nil {
		p.write("a task panicked", key, err)
		return
	}
	defer func() {
		if v := recover(); v != nil {
			p.write("OnPanic panicked", key, &PanicError{v, debug.Stack()})
		}
	}()
	p.cfg.OnPanic(key, err)
}

// write logs a panic. One of the logger ends the goroutine, and is written to standard error by ants.
func (p *Pool) write(what string, key registry.Key, err *PanicError) {
	if skipped, ok := p.told.due(time.Now()); ok {
		slog.Error(what, "key", string(key), "panic", err.Value, "stack", string(err.Stack), "skipped", skipped)
	}
}
