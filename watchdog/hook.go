package watchdog

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/internal/clock"
)

// hookQueue is how many reports wait for a hook that runs.
const hookQueue = 64

// hookPatience is after how long a hook that has not returned is told of.
const hookPatience = 10 * time.Second

// hook calls the user's function on a goroutine of its own, so that it can hold up nobody but itself.
type hook struct {
	f     func(Report)
	queue chan Report
	stop  chan struct{}

	dropped, panics atomic.Uint64
	began           atomic.Int64 // when the call that runs began; 0: none runs
	panicked        atomic.Pointer[string]

	// The rest belongs to the watchdog's goroutine.
	slow         int64 // began of the call that was told of
	toldDropped  uint64
	droppedSince int64
}

func (h *hook) start(f func(Report)) {
	h.f, h.queue, h.stop = f, make(chan Report, hookQueue), make(chan struct{})
}

func (h *hook) close() {
	if h.f != nil {
		close(h.stop)
	}
}

// offer hands a report on, or drops it when too many wait.
func (h *hook) offer(r Report) {
	if h.f == nil {
		return
	}
	select {
	case h.queue <- r:
	default:
		h.dropped.Add(1)
	}
}

func (h *hook) run() {
	for {
		select {
		case <-h.stop:
			return
		default:
		}
		select {
		case <-h.stop:
			return
		case r := <-h.queue:
			h.call(r)
		}
	}
}

func (h *hook) call(r Report) {
	h.began.Store(clock.Now())
	defer h.began.Store(0)
	defer func() {
		if v := recover(); v != nil {
			h.panics.Add(1)
			text := fmt.Sprintf("%.200v", v)
			h.panicked.Store(&text)
		}
	}()
	h.f(r)
}

// tell lets people know of a hook that panics, hangs or is too slow.
func (h *hook) tell(now int64, say func(format string, args ...any)) {
	if h.f == nil {
		return
	}
	if text := h.panicked.Swap(nil); text != nil {
		say("OnSlow panicked: %s", *text)
	}
	if began := h.began.Load(); began != 0 && began != h.slow && now-began >= int64(hookPatience) {
		h.slow = began
		say("OnSlow has been running for %v", time.Duration(now-began).Round(time.Millisecond))
	}
	if n := h.dropped.Load(); n > h.toldDropped && (h.droppedSince == 0 || now-h.droppedSince >= int64(time.Minute)) {
		say("%d reports were not handed to OnSlow, which is too slow for them", n-h.toldDropped)
		h.toldDropped, h.droppedSince = n, now
	}
}
