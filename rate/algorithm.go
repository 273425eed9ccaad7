package rate

import (
	"errors"
	"fmt"
	"math/bits"
	"time"
)

// Ranges and defaults of the algorithms.
const (
	MaxLimit        = 1 << 50
	MaxSegments     = 3600
	DefaultSegments = 10

	// maxLevel bounds what a bucket holds in units (see Rate.units), so that no sum of two overflows.
	maxLevel = 1 << 58
)

// An Algorithm is a TokenBucket, a LeakyBucket, a SlidingWindow or a FixedWindow.
type Algorithm interface {
	// compile checks the values and lists everything that is wrong.
	compile() (rule, error)
}

// TokenBucket holds up to Burst tokens and starts full. Tokens accrue evenly at Rate; a request takes its tokens at once or is
// refused. So what was not used in quiet times passes later as a burst, and the average never exceeds Rate.
type TokenBucket struct {
	// Rate is how fast tokens accrue. It may be changed later, by Limiter.SetRate. With a Source, N may be 0: all
	// tokens then come from there.
	Rate Rate
	// Burst is the most tokens there are, and the largest request that can ever pass: 1 to MaxLimit. Burst x Rate.Per must be
	// at most 2^58 ns (nine years), with N and Per divided by what they share: 80,063 at 1 an hour; an error names the bound.
	Burst int64
	// Source hands out further tokens; nil for none. Only for a limiter with Keys = 1.
	Source TokenSource
}

// LeakyBucket lets requests leave at a steady Rate, whenever they come: one that comes too early is given a time to wait
// (Decision.Wait, which Bucket.Wait waits), and one that finds the queue full is refused. An idle bucket lets one leave at once. A request of n
// leaves when the last of its n has had its turn.
type LeakyBucket struct {
	// Rate is how fast requests leave.
	Rate Rate
	// Queue is how many may wait, 0 to MaxLimit-1; the longest wait is Queue / Rate. The bound of TokenBucket.Burst holds for Queue + 1.
	Queue int64
	// Service is how long a request takes once it has left the queue, and Tolerate how long the whole may take. Where
	// Tolerate is set, Queue / Rate + Service must not exceed it.
	Service, Tolerate time.Duration
}

// SlidingWindow counts in Segments that slide on one by one, and counts the oldest whole although part of it is over:
// so no window of this length, wherever it begins, ever sees more than Limit. The price is that a request may have to
// wait up to a segment longer than an exact log of all requests would make it wait. It does not smooth inside the window.
type SlidingWindow struct {
	Limit  int64         // 1 to MaxLimit
	Window time.Duration // 1 ns to MaxPer
	// Segments is 1 to MaxSegments and at most one a nanosecond; 0 means 10. More are smoother, and take 8 bytes
	// each for every key. A Window that they do not divide is rounded up to one that they do.
	Segments int
}

// FixedWindow counts in windows. A key's window begins with its first request after the last one ended, so that keys
// do not all start anew in the same instant. Across the edge of two windows twice the limit can pass in no time.
type FixedWindow struct {
	Limit  int64         // 1 to MaxLimit
	Window time.Duration // 1 ns to MaxPer
}

func compile(a Algorithm) (rule, error) {
	switch a.(type) {
	case TokenBucket, LeakyBucket, SlidingWindow, FixedWindow:
		return a.compile()
	case nil:
		return rule{}, errors.New("rate: Algorithm is nil, must be a TokenBucket, LeakyBucket, SlidingWindow or FixedWindow")
	default: // a pointer to one, which could be nil or change under us
		return rule{}, fmt.Errorf("rate: Algorithm is a %T, must be a TokenBucket, LeakyBucket, SlidingWindow or FixedWindow", a)
	}
}

func (a TokenBucket) compile() (rule, error) {
	least := int64(1)
	if a.Source != nil {
		least = 0
	}
	wrong := a.Rate.problems(least)
	r := rule{kind: tokens, limit: a.Burst}
	wrong = append(wrong, r.setRate(a.Rate, "Burst", 0, len(wrong) == 0)...)
	return r, errors.Join(wrong...)
}

func (a LeakyBucket) compile() (rule, error) {
	wrong := a.Rate.problems(1)
	r := rule{kind: leaky, limit: a.Queue + 1, service: a.Service, tolerate: a.Tolerate}
	if a.Queue < 0 { // Queue + 1 must not overflow either
		r.limit = 0
	}
	if a.Queue >= MaxLimit {
		r.limit = MaxLimit + 1
	}
	if a.Service < 0 {
		wrong = append(wrong, fmt.Errorf("rate: Service is %v, must not be negative", a.Service))
	}
	if a.Tolerate < 0 {
		wrong = append(wrong, fmt.Errorf("rate: Tolerate is %v, must not be negative", a.Tolerate))
	}
	wrong = append(wrong, r.setRate(a.Rate, "Queue", a.Queue, len(wrong) == 0)...)
	return r, errors.Join(wrong...)
}

// setRate puts a rate into force and says what is wrong with it. The size of the bucket is named as the user named it:
// field is its name, given what a queue says (a queue is one shorter than the bucket). Without deep only the size is judged.
func (r *rule) setRate(rate Rate, field string, given int64, deep bool) (wrong []error) {
	less := int64(0)
	if r.kind == leaky {
		less = 1
	} else {
		given = r.limit
	}
	if r.limit < 1 || r.limit > MaxLimit {
		return []error{fmt.Errorf("rate: %s is %d, must be %d to %d", field, given, 1-less, MaxLimit-less)}
	}
	if !deep {
		return nil
	}
	if token, perNano := rate.units(); rate.N == 0 && r.token != 0 {
		r.perNano = 0 // parts of a token outlast the pause
	} else {
		r.token, r.perNano = token, perNano
	}
	if most := maxLevel / r.token; r.limit > most {
		return []error{fmt.Errorf("rate: %s is %d, must be %d to %d at %v", field, given, 1-less, max(most-less, 0), rate)}
	}
	r.size = r.limit * r.token
	if r.tolerate > 0 && !r.inTime(rate) {
		wait := ceilDiv((r.limit-1)*r.token, r.perNano)
		return []error{fmt.Errorf("rate: Queue / Rate + Service is %v + %v, must be at most Tolerate, %v",
			time.Duration(wait), r.service, r.tolerate)}
	}
	return nil
}

// inTime reports whether Queue / Rate + Service <= Tolerate, exactly.
func (r *rule) inTime(rate Rate) bool {
	if r.service > r.tolerate {
		return false
	}
	hi1, lo1 := bits.Mul64(uint64(r.limit-1), uint64(rate.Per))
	hi2, lo2 := bits.Mul64(uint64(r.tolerate-r.service), uint64(rate.N))
	return hi1 < hi2 || hi1 == hi2 && lo1 <= lo2
}

func (a SlidingWindow) compile() (rule, error) {
	wrong := windowProblems(a.Limit, a.Window)
	if a.Segments == 0 {
		a.Segments = int(min(DefaultSegments, max(1, a.Window)))
	}
	if most := min(MaxSegments, max(1, a.Window)); a.Segments < 1 || time.Duration(a.Segments) > most {
		wrong = append(wrong, fmt.Errorf("rate: Segments is %d, must be 1 to %d, or 0 for %d", a.Segments, most, DefaultSegments))
	}
	if wrong != nil {
		return rule{}, errors.Join(wrong...)
	}
	n := int64(a.Segments)
	return rule{kind: sliding, limit: a.Limit, window: ceilDiv(int64(a.Window), n), segments: n + 1}, nil
}

func (a FixedWindow) compile() (rule, error) {
	return rule{kind: fixed, limit: a.Limit, window: int64(a.Window)}, errors.Join(windowProblems(a.Limit, a.Window)...)
}

func windowProblems(limit int64, window time.Duration) (wrong []error) {
	if limit < 1 || limit > MaxLimit {
		wrong = append(wrong, fmt.Errorf("rate: Limit is %d, must be 1 to %d", limit, int64(MaxLimit)))
	}
	if window < 1 || window > MaxPer {
		wrong = append(wrong, fmt.Errorf("rate: Window is %v, must be 1ns to %v", window, MaxPer))
	}
	return wrong
}
