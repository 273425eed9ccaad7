package rate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spillway-go/spillway/internal/clock"
)

// MaxRequests is the most requests that one Take decides about together.
const MaxRequests = 64

// Request asks for N of a limiter's key.
type Request struct {
	Limiter *Limiter
	Key     string
	N       int64 // at least 1
	Peek    bool  // do not count it, only see whether it would pass
}

// A Store keeps the states of limits elsewhere, for instance for a whole fleet. It must be safe for concurrent use, and decide
// about all requests in one step. What it does when it cannot be reached is its own affair: an error, or decisions by a rule of its own. It
// reads a limiter's Config for the name and the algorithm.
type Store interface {
	// Take is Take, for 1 to MaxRequests requests that were found good, with one decision for each. A single one may be for more
	// than its limit.
	Take(ctx context.Context, requests []Request) ([]Decision, error)
	// GiveBack undoes a Take. The decisions are those that Take returned, Mark included.
	GiveBack(ctx context.Context, requests []Request, decisions []Decision) error
}

// Take decides about 1 to MaxRequests requests at once: all pass and are counted, or none is. There is a decision for
// each, in the same order; OK is the same in all of them. When they did not pass, RetryAfter of those that stood in the way says when they will, and is 0 in the
// others. So the largest is the time to come back.
//
// The limiters must all be in memory or all in the same Store, and no key may come twice. The error is that of bad input, all
// of it, or of the Store. It does not wait, see Bucket.Take.
func Take(ctx context.Context, requests []Request) ([]Decision, error) {
	if err := check(requests); err != nil {
		return nil, err
	}
	if store := requests[0].Limiter.config.Store; store != nil {
		return takeFrom(ctx, store, requests)
	}
	b := newBatch(requests)
	b.lock()
	b.take()
	b.unlock()
	for i := range b.items {
		it := &b.items[i]
		it.bucket.behind(it.d, it.ahead)
		if f := it.bucket.l.feed; f != nil && !it.peek {
			f.see(it.d)
		}
	}
	return b.decisions, nil
}

// GiveBack returns what a Take took. At most once for each Take; see Bucket.GiveBack.
func GiveBack(ctx context.Context, requests []Request, decisions []Decision) error {
	if len(requests) != len(decisions) {
		return fmt.Errorf("rate: %d requests and %d decisions, must be as many", len(requests), len(decisions))
	}
	if err := check(requests); err != nil {
		return err
	}
	if store := requests[0].Limiter.config.Store; store != nil {
		return store.GiveBack(ctx, requests, decisions)
	}
	for i := range requests {
		b := requests[i].Limiter.bucket(requests[i].Key)
		b.giveBack(decisions[i])
	}
	return nil
}

func takeFrom(ctx context.Context, store Store, requests []Request) ([]Decision, error) {
	ds, err := store.Take(ctx, requests)
	if err != nil {
		return nil, err
	}
	if len(ds) != len(requests) {
		return nil, fmt.Errorf("rate: the store %T gave %d decisions about %d requests", store, len(ds), len(requests))
	}
	for i, r := range requests {
		ds[i].n = r.N
	}
	return ds, nil
}

func check(requests []Request) error {
	if len(requests) < 1 || len(requests) > MaxRequests {
		return fmt.Errorf("rate: there are %d requests, must be 1 to %d", len(requests), MaxRequests)
	}
	var wrong []error
	for i, r := range requests {
		switch {
		case r.Limiter == nil:
			wrong = append(wrong, fmt.Errorf("rate: request %d has no Limiter", i))
			continue
		case r.N < 1:
			wrong = append(wrong, fmt.Errorf("rate: request %d is for %d, must be at least 1", i, r.N))
		case requests[0].Limiter != nil && r.Limiter.config.Store != requests[0].Limiter.config.Store:
			wrong = append(wrong, fmt.Errorf("rate: requests 0 and %d are kept in different places", i))
		}
		for j, other := range requests[:i] {
			if other.Limiter == r.Limiter && (other.Key == r.Key || len(r.Limiter.shards) == 0 && r.Limiter.config.Store == nil) {
				wrong = append(wrong, fmt.Errorf("rate: requests %d and %d are for the same key, add them up", j, i))
				break
			}
		}
	}
	return errors.Join(wrong...)
}

// item is one request of a batch, on its way.
type item struct {
	bucket Bucket
	n      int64
	peek   bool
	ahead  int64 // what others ask for who stand in line for the key
	d      *Decision

	s    *shard
	e    *entry
	segs []int64
}

// batch holds all locks that its requests need, taken in one order everywhere: first the shards of keys, by limiter and place, then
// the shared ones, by limiter. A single request takes them in the same order.
type batch struct {
	items     []item // by limiter and place
	decisions []Decision
	shards    []*shard
	shared    []*shard
}

func newBatch(requests []Request) *batch {
	b := &batch{items: make([]item, len(requests)), decisions: make([]Decision, len(requests))}
	for i, r := range requests {
		b.items[i] = item{bucket: r.Limiter.bucket(r.Key), n: r.N, peek: r.Peek, d: &b.decisions[i]}
	}
	slices.SortStableFunc(b.items, func(a, z item) int {
		if a.bucket.l != z.bucket.l {
			if a.bucket.l.order < z.bucket.l.order {
				return -1
			}
			return 1
		}
		return a.bucket.place() - z.bucket.place()
	})
	return b
}

// place is the number of the key's shard.
func (b *Bucket) place() int {
	for i := range b.l.shards {
		if b.s == &b.l.shards[i] {
			return i
		}
	}
	return -1
}

func (b *batch) lock() {
	for i := range b.items {
		bk := &b.items[i].bucket
		if bk.s != &bk.l.shared && !slices.Contains(b.shards, bk.s) {
			bk.s.mu.Lock()
			b.shards = append(b.shards, bk.s)
		}
	}
}

func (b *batch) unlock() {
	for _, s := range b.shared {
		s.mu.Unlock()
	}
	for _, s := range b.shards {
		s.mu.Unlock()
	}
}

// find sets where the item's state lies. Items come in the order of limiters, and so do the shared locks.
func (b *batch) find(it *item, now int64) {
	bk := &it.bucket
	it.s = bk.s
	if bk.s != &bk.l.shared && bk.locate(now) {
		it.e, it.segs = bk.e, bk.segs
		return
	}
	if bk.s != &bk.l.shared {
		bk.l.crowd.Add(1)
	}
	it.s = &bk.l.shared
	if !slices.Contains(b.shared, it.s) {
		it.s.mu.Lock()
		b.shared = append(b.shared, it.s)
	}
	it.e, it.segs = it.s.entry(0)
}

// take counts one item after the other, and undoes them all if one does not pass.
func (b *batch) take() {
	now := clock.Now()
	passed := true
	for i := range b.items {
		it := &b.items[i]
		l := it.bucket.l
		if it.n > l.limit {
			*it.d = it.bucket.never(it.n)
			passed = false
			continue
		}
		b.find(it, now)
		if l.slow.Load() != 0 {
			it.ahead = l.lines.ahead(it.bucket.key)
		}
		if it.peek || it.ahead != 0 {
			it.d.peek(&it.s.rule, it.e, it.segs, now, it.n)
			it.d.OK = it.d.OK && it.ahead == 0
		} else {
			it.d.take(it.s, it.e, it.segs, now, it.n)
		}
		passed = passed && it.d.OK
	}
	if passed {
		return
	}
	for i := len(b.items) - 1; i >= 0; i-- {
		it := &b.items[i]
		if it.d.OK && !it.peek { // it was counted: with others ahead it is not OK
			it.s.rule.giveBack(&it.e.cell, it.segs, now, it.n, it.d.receipt)
			it.s.open()
			*it.d = Decision{n: it.n}
			it.s.rule.describe(it.d, &it.e.cell, it.segs, now)
			it.d.RetryAfter = 0
		}
		it.d.OK, it.d.Wait = false, 0
	}
}

// never describes a request above the limit, without a look at the state, whose lock may be held.
func (b *Bucket) never(n int64) Decision {
	return Decision{n: n, Limit: b.l.limit, RetryAfter: Never}
}
