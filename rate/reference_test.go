package rate

import (
	"math/big"
	"slices"
	"time"
)

// The references are slow and meant to be obviously right: they keep every request that was admitted, and count on
// integers without bounds. They know nothing of units, rings or receipts.

// admitted is one request that passed.
type admitted struct {
	at int64
	n  int64
}

// reference says what an algorithm has to do.
type reference interface {
	// until is the first moment, from now on, at which n pass if nobody else asks; forever if never.
	until(now, n int64) int64
	// take counts n that pass now.
	take(now, n int64)
	// left is the largest n that passes now.
	left(now int64) int64
	// empty is the first moment, from now on, when nothing is counted any more.
	empty(now int64) int64
}

// refTokens counts tokens in parts of a token: Per parts are one, and a nanosecond brings N. So all is whole, as the
// definition of the rate has it.
type refTokens struct {
	rate    Rate
	burst   int64
	missing *big.Int // parts
	at      int64
}

func newRefTokens(a TokenBucket) *refTokens {
	return &refTokens{rate: a.Rate, burst: a.Burst, missing: new(big.Int)}
}

func times(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }

func (r *refTokens) settle(now int64) {
	if now > r.at {
		r.missing.Sub(r.missing, times(now-r.at, r.rate.N))
		r.at = now
	}
	if r.missing.Sign() < 0 {
		r.missing.SetInt64(0)
	}
}

// fallsTo is when no more than parts are missing.
func (r *refTokens) fallsTo(parts *big.Int) int64 {
	over := new(big.Int).Sub(r.missing, parts)
	if over.Sign() <= 0 {
		return r.at
	}
	if r.rate.N == 0 {
		return forever
	}
	n := big.NewInt(r.rate.N)
	over.Add(over, n).Sub(over, big.NewInt(1)).Quo(over, n)
	return r.at + over.Int64()
}

func (r *refTokens) until(now, n int64) int64 {
	if n > r.burst {
		return forever
	}
	r.settle(now)
	return r.fallsTo(times(r.burst-n, int64(r.rate.Per)))
}

func (r *refTokens) take(now, n int64) {
	r.settle(now)
	r.missing.Add(r.missing, times(n, int64(r.rate.Per)))
}

func (r *refTokens) left(now int64) int64 {
	r.settle(now)
	free := times(r.burst, int64(r.rate.Per))
	return free.Sub(free, r.missing).Quo(free, big.NewInt(int64(r.rate.Per))).Int64()
}

func (r *refTokens) empty(now int64) int64 {
	r.settle(now)
	return r.fallsTo(new(big.Int))
}

// refLeaky keeps the moment at which the last unit in the queue leaves, in parts: a nanosecond has N, and Per parts lie
// between two units.
type refLeaky struct {
	rate  Rate
	queue int64
	next  *big.Int // when the next unit may leave
}

func newRefLeaky(a LeakyBucket) *refLeaky {
	return &refLeaky{rate: a.Rate, queue: a.Queue, next: new(big.Int)}
}

// start is when the first of newcomers would leave.
func (r *refLeaky) start(now int64) *big.Int {
	t := times(now, r.rate.N)
	if t.Cmp(r.next) < 0 {
		t.Set(r.next)
	}
	return t
}

// nanos rounds parts up.
func (r *refLeaky) nanos(parts *big.Int) int64 {
	n := big.NewInt(r.rate.N)
	up := new(big.Int).Add(parts, n)
	return up.Sub(up, big.NewInt(1)).Quo(up, n).Int64()
}

// leaves is when the last of n that join now leaves.
func (r *refLeaky) leaves(now, n int64) int64 {
	t := r.start(now)
	return r.nanos(t.Add(t, times(n-1, int64(r.rate.Per))))
}

func (r *refLeaky) until(now, n int64) int64 {
	if n > r.queue+1 {
		return forever
	}
	// The queue holds what leaves within Queue / Rate.
	t := new(big.Int).Add(r.next, times(n-1-r.queue, int64(r.rate.Per)))
	return max(now, r.nanos(t))
}

func (r *refLeaky) take(now, n int64) {
	r.next = new(big.Int).Add(r.start(now), times(n, int64(r.rate.Per)))
}

func (r *refLeaky) left(now int64) (n int64) {
	room := times(now, r.rate.N)
	room.Add(room, times(r.queue+1, int64(r.rate.Per))).Sub(room, r.start(now))
	return max(0, room.Quo(room, big.NewInt(int64(r.rate.Per))).Int64())
}

func (r *refLeaky) empty(now int64) int64 { return max(now, r.nanos(r.next)) }

// refSliding keeps the log of the window's length and a segment more.
type refSliding struct {
	limit    int64
	segment  int64
	segments int64
	log      []admitted
}

func newRefSliding(a SlidingWindow) *refSliding {
	n := int64(a.Segments)
	return &refSliding{limit: a.Limit, segment: (int64(a.Window) + n - 1) / n, segments: n}
}

// begin is where the oldest segment begins that counts at a moment.
func (r *refSliding) begin(at int64) int64 { return at - at%r.segment - r.segments*r.segment }

func (r *refSliding) used(at int64) (n int64) {
	for _, a := range r.log {
		if a.at >= r.begin(at) {
			n += a.n
		}
	}
	return n
}

// ends are the moments at which a segment with something in it goes.
func (r *refSliding) ends(now int64) []int64 {
	out := []int64{now}
	for _, a := range r.log {
		if end := a.at - a.at%r.segment + (r.segments+1)*r.segment; end > now && a.n > 0 {
			out = append(out, end)
		}
	}
	slices.Sort(out)
	return out
}

func (r *refSliding) until(now, n int64) int64 {
	if n > r.limit {
		return forever
	}
	for _, at := range r.ends(now) {
		if r.used(at)+n <= r.limit {
			return at
		}
	}
	panic("an empty window refuses")
}

func (r *refSliding) take(now, n int64) {
	r.log = slices.DeleteFunc(r.log, func(a admitted) bool { return a.at < r.begin(now) })
	r.log = append(r.log, admitted{now, n})
}

func (r *refSliding) left(now int64) int64  { return r.limit - r.used(now) }
func (r *refSliding) empty(now int64) int64 { ends := r.ends(now); return ends[len(ends)-1] }

// refFixed keeps the log of one window.
type refFixed struct {
	limit, window int64
	start         int64
	log           []admitted
}

func newRefFixed(a FixedWindow) *refFixed {
	return &refFixed{limit: a.Limit, window: int64(a.Window)}
}

func (r *refFixed) used(now int64) (n int64) {
	if now >= r.start+r.window {
		return 0
	}
	for _, a := range r.log {
		n += a.n
	}
	return n
}

func (r *refFixed) until(now, n int64) int64 {
	switch {
	case n > r.limit:
		return forever
	case r.used(now)+n <= r.limit:
		return now
	default:
		return r.start + r.window
	}
}

func (r *refFixed) take(now, n int64) {
	if r.used(now) == 0 {
		r.start, r.log = now, nil
	}
	r.log = append(r.log, admitted{now, n})
}

func (r *refFixed) left(now int64) int64 { return r.limit - r.used(now) }

func (r *refFixed) empty(now int64) int64 {
	if r.used(now) == 0 {
		return now
	}
	return r.start + r.window
}

const second = int64(time.Second)
