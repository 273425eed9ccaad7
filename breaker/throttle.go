package breaker

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/internal/clock"
)

// Levels of criticality: 0 is throttled last.
const Levels = 4

// ErrThrottled is the refusal of a Throttle.
var ErrThrottled = errors.New("breaker: throttled: the other side accepts too little of what is sent")

// ThrottleConfig describes a Throttle. The zero value is useful.
type ThrottleConfig struct {
	// K is how many calls are sent for each that is accepted, above 1 to 100. 0 means 2.
	K float64
	// Window is how far back is looked, in ten steps, 100 ms to 1 h. 0 means 10 s.
	Window time.Duration
	// Judge says what an error means: a Failure was not accepted. Nil: Judge of this package.
	Judge func(error) Outcome
	// Random returns numbers of [0, 1), for tests. It may be called by several goroutines at once. Nil: math/rand/v2.
	Random func() float64

	// Total is for somebody who counts the calls anyway, as package guard does: how many were sent so far. It must only read. Successes
	// need not be told then while it refuses nothing, but Tick must be called ten times a window.
	Total func() uint64
	// Shut is told, for the fast path of such a caller, whether calls have to ask: while some are refused. It is called under the
	// throttle's lock and must only store.
	Shut func(bool)
}

// DefaultK is ThrottleConfig.K where it is not set.
const DefaultK = 2

func (c ThrottleConfig) withDefaults() ThrottleConfig {
	fill(&c.K, DefaultK)
	fill(&c.Window, DefaultWindow)
	if c.Judge == nil {
		c.Judge = Judge
	}
	if c.Random == nil {
		c.Random = rand.Float64
	}
	if c.Shut == nil {
		c.Shut = func(bool) {}
	}
	return c
}

func (c ThrottleConfig) validate() error {
	var p problems
	if !(c.K > 1 && c.K <= 100) {
		p.addf("K is %v, must be above 1 and at most 100", c.K)
	}
	p.duration("Window", c.Window, 100*time.Millisecond)
	return errors.Join(p...)
}

// Throttle refuses calls at their source when the other side accepts less than one in K of them: of the requests of the last window, the share
//
//	max(0, (requests - K x accepts) / (requests + 1))
//
// where requests counts those that it refused itself, too (the adaptive throttling of "Site Reliability Engineering", chapter "Handling
// Overload"). At least ten calls a window pass, so that it finds out when all is
// well again. The least critical go first: a level is refused only when all of the levels below are refused altogether. When three calls in
// a row were accepted while it refuses, it forgets the window, so that full traffic is back at once. Its methods are safe for concurrent use.
// Create it with NewThrottle.
type Throttle struct {
	cfg ThrottleConfig

	drop      [Levels]atomic.Uint64 // the share that is refused, by level, as bits of a float64
	asked     [Levels]atomic.Uint64 // calls while some are refused
	refuses   atomic.Bool           // some calls, of some level
	throttled atomic.Uint64
	succeeded atomic.Uint64
	roll      atomic.Int64
	next      atomic.Int64 // the time of the next probe

	mu     sync.Mutex // guards the rest
	failed uint64
	row    int // accepted calls in a row
	level  int // where calls belong that nobody told the level of
	now    int
	begins [steps]demand
}

// demand is what was counted up to a moment.
type demand struct {
	sent, failed, throttled uint64
	asked                   [Levels]uint64
}

// NewThrottle returns a throttle that refuses nothing yet. The error lists everything that is wrong with cfg.
func NewThrottle(cfg ThrottleConfig) (*Throttle, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	t := &Throttle{cfg: cfg}
	t.forget(clock.Now())
	return t, nil
}

// Do runs fn if the throttle lets a call of the level pass, and returns fn's error untouched; else ErrThrottled. A panic or Goexit of fn goes on up
// and counts as not accepted.
func (t *Throttle) Do(level int, fn func() error) error {
	if !t.Allow(level) {
		return ErrThrottled
	}
	out := Failure
	defer func() { t.Report(out) }()
	err := fn()
	out = t.cfg.Judge(err)
	return err
}

// Allow reports whether a call of a level may be sent: 0 to Levels-1, the nearest of them for any other number. One that may must be followed
// by one Report.
func (t *Throttle) Allow(level int) bool {
	if !t.refuses.Load() {
		return true
	}
	now := clock.Now()
	if now >= t.roll.Load() {
		t.Tick() // after a silence all that it knows may be older than the window
	}
	level = max(0, min(level, Levels-1))
	t.asked[level].Add(1)
	drop := math.Float64frombits(t.drop[level].Load())
	if drop == 0 || t.cfg.Random() >= drop || t.probe(now) {
		return true
	}
	if t.throttled.Add(1)%16 == 0 {
		t.Tick() // or else a flood of refusals would go by unnoticed
	}
	return false
}

// probe reports whether the call that is to be refused passes all the same: one in a tenth of the window does, or else nobody
// would find out that the other side is well again.
func (t *Throttle) probe(now int64) bool {
	next := t.next.Load()
	return now >= next && t.next.CompareAndSwap(next, now+int64(t.cfg.Window)/probesPerWindow)
}

const probesPerWindow = 10

// Report says how a call ended that Allow let pass.
func (t *Throttle) Report(out Outcome) {
	switch {
	case out == Failure:
		t.Failed(clock.Now())
	case out == Success && t.cfg.Total == nil:
		t.succeeded.Add(1)
		fallthrough
	case out == Success:
		if t.refuses.Load() {
			t.accepted()
		} else if t.cfg.Total == nil && clock.Now() >= t.roll.Load() {
			t.Tick()
		}
	}
}

// accepted is a success while some calls are refused.
func (t *Throttle) accepted() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.row++; t.row >= 3 {
		t.forget(clock.Now())
		return
	}
	t.judge()
}

// Failed says that a call was not accepted that began at a reading of package clock, or later.
func (t *Throttle) Failed(start int64) {
	t.mu.Lock()
	t.step(start)
	t.failed++
	t.row = 0
	t.judge()
	t.mu.Unlock()
}

// Tick moves the window on and looks what is to be refused. Allow and Report do it too, unless ThrottleConfig.Total counts the calls.
func (t *Throttle) Tick() {
	now := clock.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.step(now)
	if t.refuses.Load() {
		t.judge()
	}
}

// total is all that was counted so far. Under mu.
func (t *Throttle) total() demand {
	d := demand{sent: t.sent(), failed: t.failed, throttled: t.throttled.Load()}
	for i := range d.asked {
		d.asked[i] = t.asked[i].Load()
	}
	return d
}

func (t *Throttle) sent() uint64 {
	if t.cfg.Total != nil {
		return t.cfg.Total()
	}
	return t.succeeded.Load() + t.failed
}

// forget empties the window and lets everything pass. Under mu, or before anybody has the throttle.
func (t *Throttle) forget(now int64) {
	d := t.total()
	for i := range t.begins {
		t.begins[i] = d
	}
	t.row = 0
	t.roll.Store(now + int64(t.cfg.Window)/steps)
	t.refuse([Levels]float64{})
}

// step begins the steps whose time has come. Under mu.
func (t *Throttle) step(now int64) {
	if now < t.roll.Load() {
		return
	}
	length := int64(t.cfg.Window) / steps
	behind := (now-t.roll.Load())/length + 1
	d := t.total()
	for range min(behind, steps) {
		t.now = (t.now + 1) % steps
		t.begins[t.now] = d
	}
	t.roll.Add(behind * length)
}

// judge says what share of each level is refused. Under mu.
func (t *Throttle) judge() {
	from := &t.begins[(t.now+1)%steps]
	failed := t.failed - from.failed
	sent := max(grown(t.sent(), from.sent), failed)
	requests := float64(sent + t.throttled.Load() - from.throttled)
	accepts := float64(sent - failed)
	var by, drop [Levels]float64
	over := requests - t.cfg.K*accepts
	if over <= 0 {
		if t.refuses.Load() {
			t.refuse(drop)
		}
		return
	}
	left := over / (requests + 1) * requests // to be refused
	for i := range by {
		by[i] = float64(t.asked[i].Load() - from.asked[i])
	}
	by[t.level] += max(0, requests-by[0]-by[1]-by[2]-by[3])
	for i := Levels - 1; i >= 0 && left > 0; i-- {
		drop[i] = 1
		if by[i] > 0 {
			drop[i] = min(1, left/by[i])
			left -= drop[i] * by[i]
		}
	}
	t.refuse(drop)
}

// refuse publishes what share of each level is refused. Under mu.
func (t *Throttle) refuse(drop [Levels]float64) {
	some := false
	for i, share := range drop {
		t.drop[i].Store(math.Float64bits(share))
		some = some || share > 0
	}
	if t.refuses.Swap(some) != some {
		t.cfg.Shut(some)
	}
}

// SetLevel says where calls belong whose level nobody told, since nothing was refused when they came: 0 at first.
func (t *Throttle) SetLevel(level int) {
	t.mu.Lock()
	t.level = max(0, min(level, Levels-1))
	t.mu.Unlock()
}

// ThrottleSnapshot is a throttle at one moment.
type ThrottleSnapshot struct {
	Requests, Accepts uint64          // in the window
	Drop              [Levels]float64 // the share that is refused, by level
	Throttled         uint64          // refused since NewThrottle
}

// Snapshot returns the throttle at this moment.
func (t *Throttle) Snapshot() ThrottleSnapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.step(clock.Now())
	d, from := t.total(), t.begins[(t.now+1)%steps]
	failed := d.failed - from.failed
	sent := max(grown(d.sent, from.sent), failed)
	s := ThrottleSnapshot{Requests: sent + d.throttled - from.throttled, Accepts: sent - failed, Throttled: d.throttled}
	for i := range s.Drop {
		s.Drop[i] = math.Float64frombits(t.drop[i].Load())
	}
	return s
}

// String is one line for people.
func (s ThrottleSnapshot) String() string {
	return fmt.Sprintf("%d of %d accepted, refused %.0f %% / %.0f %% / %.0f %% / %.0f %%",
		s.Accepts, s.Requests, 100*s.Drop[0], 100*s.Drop[1], 100*s.Drop[2], 100*s.Drop[3])
}
