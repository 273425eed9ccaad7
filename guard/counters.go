package guard

import (
	"math/bits"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/petermattis/goid"
	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/internal/clock"
)

// refusals counts by reason in stripes of a cache line pair each, so that a flood of refusals on many cores does not
// fight over one line.
type refusals []stripe

type stripe struct {
	n [reasons]atomic.Uint64
	_ [128 - 8*reasons]byte
}

func newRefusals() refusals {
	n := min(8, runtime.GOMAXPROCS(0))
	return make(refusals, 1<<bits.Len(uint(n-1)))
}

// add picks the stripe by goroutine; any number will do.
func (r refusals) add(reason Reason) {
	r[uint64(goid.Get())*0x9E3779B97F4A7C15>>40&uint64(len(r)-1)].n[reason].Add(1)
}

func (r refusals) of(reason Reason) (sum uint64) {
	for i := range r {
		sum += r[i].n[reason].Load()
	}
	return sum
}

func (r refusals) total() (sum uint64) {
	for reason := ReasonFull; reason < reasons; reason++ {
		sum += r.of(reason)
	}
	return sum
}

// outcome is how a call ended, kept in the two spare bits of a permit.
type outcome uint8

const (
	unrecorded outcome = iota // panicked, left by Goexit, or nobody recorded
	succeeded
	failed
	excused // it failed, and that says nothing of the other side
)

// Sampling: a second clock reading for 1 call in mask+1, where mask follows the rate so that a key reads it at most every few
// microseconds: every call below about 15,000 a second. The choice is made by a hash of the call's number, since its
// low bits would beat with a caller's own rhythm. A sample stands for the mask+1 calls that it was drawn from.
const (
	sampleOften = 4 * time.Microsecond
	sampleRare  = 64 * time.Microsecond
	maxMask     = 63
)

// finish counts how a call ended that failed or was drawn.
//
//go:noinline
func (g *Guard) finish(t bulkhead.Ticket, out outcome) {
	switch out {
	case failed:
		g.failed.Add(1)
	case unrecorded:
		g.unrecorded.Add(1)
	case excused:
		g.failed.Add(1)
		g.excused.Add(1)
	default:
	}
	mask := g.sampleMask.Load()
	sampled := t.Hash()&mask == 0
	p := g.plan.Load()
	blames := (out == failed || out == unrecorded) && (p.breaker != nil || p.throttle != nil)
	if blames {
		p.blame(g.rt.startOf(t))
	}
	if !sampled {
		return
	}
	now := clock.Now()
	d := t.AgeAt(now)
	g.latency(out).add(d, uint64(mask)+1)
	switch dt := time.Duration(now - g.sampled.Swap(now)); {
	case dt <= 0: // a clock that stands says nothing about the rate
	case dt < sampleOften && mask < maxMask:
		g.sampleMask.Store(mask<<1 | 1)
	case dt > sampleRare && mask > 0:
		g.sampleMask.Store(mask >> 1)
	}
	mean := g.mean.Load()
	if mean == 0 {
		mean = int64(d)
	}
	mean += (int64(d) - mean) / 16
	g.mean.Store(mean)
	if step := int64(roundUp(time.Duration(mean))); step != g.retryStep.Load() {
		g.retryStep.Store(step)
	}
}

func (g *Guard) latency(out outcome) *recorder {
	p := &g.latencies[0]
	if out != succeeded {
		p = &g.latencies[1]
	}
	if r := p.Load(); r != nil {
		return r
	}
	p.CompareAndSwap(nil, new(recorder))
	return p.Load()
}
