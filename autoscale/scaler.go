package autoscale

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/internal/clock"
)

// Scaler moves the bounds of many keys. It is safe for concurrent use.
type Scaler struct {
	cfg Config

	mu       sync.Mutex // guards the rest; nothing else is called under it
	sum      int        // of N over all keys, as Count was told
	sample   uint64     // the one that gained counts for
	gained   int        // by all keys in this sample
	expanded map[*Key]struct{}
}

// New returns a Scaler without keys.
func New(cfg Config) (*Scaler, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Scaler{cfg: cfg, expanded: map[*Key]struct{}{}}, nil
}

// Key is one key's share of the scaler.
type Key struct {
	scaler *Scaler
	name   string
	target Target

	// told is the last cause that was told of without a step, and when.
	toldCause atomic.Uint32
	toldAt    atomic.Int64

	// mu orders what is done to the target's bound. Taken before the scaler's, and before the target's own.
	mu sync.Mutex
	// Guarded by both locks for writing, by either for reading.
	limit   int
	bound   int
	stepped uint64 // one more than the sample of the last step up
	since   int64  // the window began
}

// Count adds to the sum of N over all keys, of which one sample's growth is a share. Keys that never asked to grow count too, so
// that it is the caller's to keep.
func (s *Scaler) Count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum += n
}

// Key returns the share of a key whose N is n and whose bound is n. The scaler holds it only while its bound is above N.
func (s *Scaler) Key(name string, n int, t Target) *Key {
	return &Key{scaler: s, name: name, target: t, limit: n, bound: n}
}

// Resize says what N of the key is now, and puts it into force.
func (k *Key) Resize(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.place(n, n)
	k.target.SetBound(n)
}

// place notes N and the bound. Under k.mu.
func (k *Key) place(limit, bound int) {
	s := k.scaler
	s.mu.Lock()
	defer s.mu.Unlock()
	k.limit, k.bound, k.since = limit, bound, clock.Now()
	if bound > limit {
		s.expanded[k] = struct{}{}
	} else {
		delete(s.expanded, k)
	}
}

// Load is what a full key tells.
type Load struct {
	Max      int // Expand x N
	Bound    int // in force
	InFlight int // places taken
	Detached int // places of evicted calls that still run
	Weight   int // of the call that asks
}

// Expand is for a call that found no place. It raises the target's bound by one step if the key may grow; if not, it tells
// for how long not to ask again.
func (k *Key) Expand(l Load) (pause time.Duration) {
	cause, why := k.obstacle(l)
	if cause == 0 {
		cause, why = k.grow(l)
	}
	if cause == Grown {
		return 0
	}
	k.refuse(l.Bound, cause, why)
	return k.scaler.cfg.Pause
}

// obstacle is the first reason not to grow, cheapest first, or 0.
func (k *Key) obstacle(l Load) (Cause, string) {
	if l.Bound >= l.Max {
		return Ceiling, fmt.Sprintf("the bound is at its ceiling of %d", l.Max)
	}
	if n := l.InFlight + l.Detached; n+l.Weight > l.Max { // after N was lowered, or evictions
		return Ceiling, fmt.Sprintf("%d in flight leave no room for the call under any bound up to %d", n, l.Max)
	}
	p := k.scaler.cfg.Pressure
	if p.CPUTight() || p.MemoryTight() {
		return Tight, p.Why()
	}
	if !p.Normal() {
		return Pressured, p.Why()
	}
	if !k.target.Healthy() {
		return Unhealthy, "the key's breaker is not closed"
	}
	if late, n := k.target.Late(); float64(late) > LateShare*float64(n) {
		return Late, fmt.Sprintf("%d of %d calls in flight are late", late, n)
	}
	return 0, ""
}

// grow takes one step, unless another call took it or the sample has no room for it.
func (k *Key) grow(l Load) (Cause, string) {
	sample := k.scaler.cfg.Pressure.Number()
	k.mu.Lock()
	if l.Bound < k.bound {
		k.mu.Unlock()
		return Grown, "" // by another call, just now
	}
	from := k.bound
	to := min(2*from, l.Max)
	cause, why := k.grant(sample, from, to)
	if cause == Grown {
		k.target.SetBound(to)
		k.target.Watch(to / 2)
	}
	k.mu.Unlock()
	if cause == Grown {
		k.scaler.tell(Step{Key: k.name, From: from, To: to, Cause: Grown, Why: fmt.Sprintf("%d of %d in flight, all is well", l.InFlight, from)})
	}
	return cause, why
}

// grant notes the step if the sample has room for it. Under k.mu.
func (k *Key) grant(sample uint64, from, to int) (Cause, string) {
	s := k.scaler
	s.mu.Lock()
	defer s.mu.Unlock()
	if sample != s.sample {
		s.sample, s.gained = sample, 0
	}
	if k.stepped == sample+1 {
		return Sampled, "one step a sample"
	}
	if s.gained > 0 && float64(s.gained+to-from) > GrowthShare*float64(s.sum) {
		return Shared, fmt.Sprintf("all keys together gained %d in this sample, of %d", s.gained, s.sum)
	}
	s.gained += to - from
	k.stepped, k.bound, k.since = sample+1, to, clock.Now()
	s.expanded[k] = struct{}{}
	return Grown, ""
}

// refuse tells of a step that was not taken, unless it did so for the same cause within a second.
func (k *Key) refuse(bound int, cause Cause, why string) {
	now := clock.Now()
	last := k.toldAt.Load()
	if last != 0 && Cause(k.toldCause.Load()) == cause && now-last >= 0 && now-last < int64(time.Second) {
		return
	}
	if !k.toldAt.CompareAndSwap(last, now) {
		return // somebody else tells
	}
	k.toldCause.Store(uint32(cause))
	k.scaler.tell(Step{Key: k.name, From: bound, To: bound, Cause: cause, Why: why})
}

func (s *Scaler) tell(step Step) {
	if s.cfg.OnStep != nil {
		s.cfg.OnStep(step)
	}
}

// Tick takes bounds back: all of them to N while CPU or memory is tight, and a key's by one step when in a whole window the peak
// was at most half the bound. It looks at expanded keys only. Call it about once a sample, on one goroutine.
func (s *Scaler) Tick() {
	keys := s.grown()
	if len(keys) == 0 {
		return
	}
	p := s.cfg.Pressure
	tight := p.CPUTight() || p.MemoryTight()
	for _, k := range keys {
		if tight {
			k.back(true, Tight, p.Why())
			continue
		}
		k.settle()
	}
}

func (s *Scaler) grown() []*Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make([]*Key, 0, len(s.expanded))
	for k := range s.expanded {
		keys = append(keys, k)
	}
	return keys
}

// Expanded is the number of keys whose bound stands above N.
func (s *Scaler) Expanded() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.expanded)
}

// settle steps back if the window was calm.
func (k *Key) settle() {
	s := k.scaler
	k.mu.Lock()
	half := k.bound / 2
	if k.bound > k.limit && k.target.Watch(half) {
		k.place(k.limit, k.bound) // the window begins anew
	}
	calm := time.Duration(clock.Now()-k.since) >= s.cfg.Window
	k.mu.Unlock()
	if calm {
		k.back(false, Calm, fmt.Sprintf("at most %d in flight for %v", half, s.cfg.Window))
	}
}

// back lowers the bound, by one step or to N.
func (k *Key) back(all bool, cause Cause, why string) {
	k.mu.Lock()
	from, to := k.bound, k.limit
	if from <= to { // resized meanwhile
		k.mu.Unlock()
		return
	}
	for !all && 2*to < from {
		to *= 2
	}
	k.place(k.limit, to)
	k.target.SetBound(to)
	if to > k.limit {
		k.target.Watch(to / 2)
	}
	k.mu.Unlock()
	k.scaler.tell(Step{Key: k.name, From: from, To: to, Cause: cause, Why: why})
}
