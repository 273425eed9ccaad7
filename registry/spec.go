package registry

import (
	"runtime"
	"strings"
	"time"
)

// The widest ranges a Spec may use. They are generous on purpose: a value
// outside them is a slip of the pen, not a choice.
const (
	MaxLimit    = 250_000
	MaxExpand   = 4
	MaxQueue    = 100_000
	MaxGroupLen = 64

	minStale   = 10 * time.Millisecond
	maxStale   = 24 * time.Hour
	maxWait    = time.Minute
	minSlow    = time.Millisecond
	maxSlow    = time.Hour
	minTimeout = time.Millisecond
	maxTimeout = time.Hour
	maxFloor   = time.Minute // only for a spec without a timeout
)

// What WithDefaults fills in.
const (
	defaultLimitPerProc = 16
	defaultExpand       = MaxExpand
	defaultStale        = 60 * time.Second
	defaultSlow         = 5 * time.Second
	defaultCriticality  = Critical
)

// Spec says how the calls of one key are guarded. The zero Spec is useful: every
// field that is zero stands for its default. A Spec is a plain value and may be
// compared with ==.
//
// The fields have the same names, meanings and defaults in annotations and in
// rule files.
type Spec struct {
	// Limit is N, how many calls run at once: 1 to MaxLimit. Default: 16 for each
	// of the processors that Go uses (runtime.GOMAXPROCS).
	Limit int
	// Expand is how many times Limit the bound may grow to while the machine is
	// well: 1 (never grow) to 4. Default: 4.
	Expand int
	// Stale is the age at which a call that never comes back may lose its place to
	// a newcomer: 10ms to 24h. Default: 60s.
	Stale time.Duration
	// Wait is the longest a call waits for a place: up to 1m. It is no promise to
	// wait so long: when nobody has left for half a second or so, waiting only adds
	// latency, and those who wait are refused. Default: no waiting.
	Wait time.Duration
	// Queue is how many calls may wait at once: up to MaxQueue, and only with a
	// Wait. Default: as many as Limit when there is a Wait, else none.
	Queue int
	// Group names a bound that several keys share: at most MaxGroupLen bytes of
	// the characters a key may have. Keys of one group must agree on Limit, Expand,
	// Stale, Wait and Queue. Default: the key has a bound of its own.
	Group string
	// Slow is the age from which a call is reported as slow, with its stack: 1ms
	// to 1h. Default: 5s.
	Slow time.Duration
	// Timeout is the deadline put on the context of a call: 1ms to 1h. It only
	// ever shortens a deadline that is already there. Default: none.
	Timeout time.Duration
	// Floor is the least remaining time that is worth starting a call: up to
	// Timeout, or up to 1m without one. Default: none.
	Floor time.Duration
	// Criticality is the level of calls that carry none. Default: Critical.
	Criticality Criticality
	// Breaker refuses calls after too many failures. Default: none.
	Breaker Breaker
	// Throttle refuses a share of the calls while the other side accepts too few of them. Default: none.
	Throttle Throttle
	// Rate bounds how many calls begin in a time. Default: none.
	Rate Rate
}

// WithDefaults returns s with every unset field filled in. It may be applied any
// number of times. A spec that Validate accepts stays valid.
func (s Spec) WithDefaults() Spec {
	return s.withDefaults(runtime.GOMAXPROCS(0))
}

// withDefaults takes the number of processors from the caller: it may change
// while the process runs, and one registry must give one answer.
func (s Spec) withDefaults(procs int) Spec {
	if s.Limit == 0 {
		s.Limit = min(defaultLimitPerProc*procs, MaxLimit)
	}
	if s.Expand == 0 {
		s.Expand = defaultExpand
	}
	if s.Stale == 0 {
		s.Stale = defaultStale
	}
	if s.Queue == 0 && s.Wait > 0 {
		s.Queue = min(s.Limit, MaxQueue)
	}
	if s.Slow == 0 {
		s.Slow = defaultSlow
	}
	if s.Criticality == CriticalityUnset {
		s.Criticality = defaultCriticality
	}
	s.Breaker, s.Throttle, s.Rate = s.Breaker.withDefaults(), s.Throttle.withDefaults(), s.Rate.withDefaults()
	return s
}

// String prints the fields that are set as an annotation would, for instance
// "limit=20 stale=60s wait=50ms". The zero Spec prints as "defaults".
func (s Spec) String() string {
	var b strings.Builder
	zero := Spec{}.fields()
	for i, f := range s.fields() {
		if f.value == zero[i].value {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(f.name + "=" + f.value)
	}
	if b.Len() == 0 {
		return "defaults"
	}
	return b.String()
}
