package guard

import (
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/breaker"
	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/registry"
)

// Snapshot is a runtime at one moment.
type Snapshot struct {
	Time time.Time
	Keys []KeySnapshot // in order of the key
	// OverflowCalls look-ups found no room for their key and no idle one to drop, since the last event of that kind.
	OverflowCalls uint64
}

// KeySnapshot is one key at one moment. Counters count since the guard was made, and an idle guard of an undeclared key may be
// dropped and made anew.
type KeySnapshot struct {
	Key      registry.Key
	Spec     registry.Spec
	Declared bool
	// Bulkhead has bound, in flight, waiting and detached; keys of a group share it.
	Bulkhead bulkhead.Snapshot
	// Slow is the number of calls in flight that are older than Spec.Slow.
	Slow int
	// Admitted calls took a place. Of those that ended, Failed returned an error and Unrecorded panicked, left by Goexit or
	// did not record an outcome. Of a group only the group's total is known.
	Admitted, Failed, Unrecorded uint64
	// Nested calls passed through inside a call of the same key. Injected ones were decided by the Injector.
	Nested, Injected uint64
	// Lost and Evicted entries, as far as they were told of.
	Lost, Evicted uint64
	// FallbackRefused and FallbackFailed count the fallbacks of CallOr by what they followed.
	FallbackRefused, FallbackFailed uint64
	// Refused calls by reason; reasons that did not occur are left out.
	Refused map[Reason]uint64
	// Breaker and Throttle of the key; nil where it has none.
	Breaker  *breaker.Snapshot
	Throttle *breaker.ThrottleSnapshot
	// Latency of the calls that succeeded, and of the others.
	Latency, LatencyFailed Histogram
}

// Snapshot returns all keys. It stops no call, so that figures can be a few calls apart.
func (rt *Runtime) Snapshot() Snapshot {
	s := Snapshot{Time: time.Now(), OverflowCalls: rt.table.shared.Load()}
	var guards []*Guard
	rt.table.each(func(g *Guard) { guards = append(guards, g) })
	slices.SortFunc(guards, func(a, b *Guard) int { return strings.Compare(string(a.key), string(b.key)) })
	s.Keys = make([]KeySnapshot, len(guards))
	for i, g := range guards {
		s.Keys[i] = g.Snapshot()
	}
	return s
}

// Snapshot returns this key's figures.
func (g *Guard) Snapshot() KeySnapshot {
	p := g.plan.Load()
	_, declared := g.rt.reg.Lookup(g.key)
	s := KeySnapshot{
		Key: g.key, Spec: p.spec, Declared: declared, Bulkhead: p.bulkhead.Snapshot(),
		Failed: g.failed.Load(), Unrecorded: g.unrecorded.Load(), Nested: g.nested.Load(), Injected: g.injected.Load(),
		Lost: g.lost.Load(), Evicted: g.evicted.Load(),
		FallbackRefused: g.shed.Load(), FallbackFailed: g.mended.Load(),
		Refused: map[Reason]uint64{},
		Latency: g.latencies[0].Load().snapshot(), LatencyFailed: g.latencies[1].Load().snapshot(),
	}
	s.Admitted = s.Bulkhead.Admitted
	if p.breaker != nil {
		b := p.breaker.Snapshot()
		s.Breaker = &b
	}
	if p.throttle != nil {
		t := p.throttle.Snapshot()
		s.Throttle = &t
	}
	for _, r := range Reasons() {
		if n := g.refused.of(r); n > 0 {
			s.Refused[r] = n
		}
	}
	if s.Bulkhead.Oldest >= p.spec.Slow {
		for _, e := range g.Entries() {
			if e.Age >= p.spec.Slow {
				s.Slow++
			}
		}
	}
	return s
}

// Entries lists the key's calls in flight, oldest first; of a group only this key's own.
func (g *Guard) Entries() []bulkhead.Entry {
	p := g.plan.Load()
	list := p.bulkhead.Entries()
	if p.spec.Group == "" {
		return list
	}
	return slices.DeleteFunc(list, func(e bulkhead.Entry) bool { return e.Owner != any(g) })
}
