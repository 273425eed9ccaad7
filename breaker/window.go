package breaker

import (
	"errors"
	"strconv"
	"time"

	"github.com/spillway-go/spillway/internal/clock"
)

var errFailed = errors.New("failed")

// steps of a window. The oldest one is forgotten whole.
const steps = 10

// window keeps what had been counted when each of the last steps began.
type window struct {
	now    int // the present step
	begins [steps]tally
}

// tally is what was counted up to a moment.
type tally struct{ calls, failures uint64 }

// total is all that was counted so far. Under mu.
func (b *Breaker) total() tally {
	if b.cfg.Total != nil {
		return tally{b.cfg.Total(), b.failures}
	}
	return tally{b.calls.Load(), b.failures}
}

// restart empties the window. Under mu, or before anybody has the breaker.
func (b *Breaker) restart(now int64) {
	t := b.total()
	for i := range b.window.begins {
		b.window.begins[i] = t
	}
	b.run.Store(0)
	b.roll.Store(now + int64(b.cfg.Window)/steps)
}

// step begins the steps whose time has come. Under mu.
func (b *Breaker) step(now int64) {
	if now < b.roll.Load() {
		return
	}
	length := int64(b.cfg.Window) / steps
	behind := (now-b.roll.Load())/length + 1
	t := b.total()
	for range min(behind, steps) {
		b.window.now = (b.window.now + 1) % steps
		b.window.begins[b.window.now] = t
	}
	b.roll.Add(behind * length)
}

// inWindow are the calls and failures of the window. A failure of a call that began before the window is one of its calls. Under mu.
func (b *Breaker) inWindow() (calls, failures uint64) {
	t, from := b.total(), b.window.begins[(b.window.now+1)%steps]
	failures = t.failures - from.failures
	return max(grown(t.calls, from.calls), failures), failures
}

// grown is by how much a total has grown, and 0 if it has fallen: a Total may, when calls turn out to say nothing of the other side.
func grown(to, from uint64) uint64 { return uint64(max(0, int64(to-from))) }

// Tick moves the window on. Exit does it too, unless Config.Total counts the calls.
func (b *Breaker) Tick() {
	if clock.Now() < b.roll.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state() == Closed {
		b.step(clock.Now())
	}
}

func counts(n uint64) string { return strconv.FormatUint(n, 10) }

func share(failures, calls uint64, window time.Duration) string {
	return counts(failures) + " of " + counts(calls) + " calls failed in " + window.String()
}
