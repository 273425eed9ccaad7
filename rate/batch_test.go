package rate

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestBatchAllOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		user := limiter(t, TokenBucket{Rate: PerSecond(1), Burst: 5}, 100)
		global := limiter(t, SlidingWindow{Limit: 7, Window: 10 * time.Second}, 1)
		pace := limiter(t, LeakyBucket{Rate: PerSecond(100), Queue: 50}, 1)
		ask := func(who string, n int64) []Decision {
			t.Helper()
			ds, err := Take(t.Context(), []Request{{pace, "", 1, false}, {user, who, n, false}, {global, "", n, false}})
			if err != nil {
				t.Fatal(err)
			}
			return ds
		}
		ds := ask("ann", 5)
		if !ds[0].OK || !ds[1].OK || !ds[2].OK || ds[1].Remaining != 0 || ds[2].Remaining != 2 {
			t.Fatalf("%+v", ds)
		}
		ds = ask("bob", 3) // above what all have left
		if ds[0].OK || ds[1].OK || ds[2].OK || ds[0].RetryAfter != 0 || ds[1].RetryAfter != 0 || ds[2].RetryAfter == 0 {
			t.Fatalf("%+v", ds)
		}
		if ds[1].Remaining != 5 {
			t.Errorf("bob lost something: %+v", ds[1])
		}
		ds = ask("ann", 1)
		if ds[1].RetryAfter != time.Second || ds[2].RetryAfter != 0 || ds[2].Remaining != 2 {
			t.Errorf("ann stands in her own way: %+v", ds)
		}
		ds = ask("bob", 6)
		if ds[1].RetryAfter != Never || ds[2].OK {
			t.Errorf("6 of 5: %+v", ds)
		}
		requests := []Request{{user, "bob", 2, false}, {global, "", 2, false}}
		ds, err := Take(t.Context(), requests)
		if err != nil || !ds[0].OK {
			t.Fatal(ds, err)
		}
		if err := GiveBack(t.Context(), requests, ds); err != nil {
			t.Fatal(err)
		}
		if d, _ := global.Bucket("").Peek(t.Context(), 2); !d.OK || d.Remaining != 2 {
			t.Errorf("given back: %+v", d)
		}
		if ds, _ := Take(t.Context(), []Request{{user, "bob", 5, true}, {global, "", 2, true}}); !ds[0].OK || !ds[1].OK {
			t.Errorf("looking: %+v", ds)
		}
		if d, _ := user.Bucket("bob").Peek(t.Context(), 5); !d.OK {
			t.Errorf("looking took something: %+v", d)
		}
	})
}

func TestBatchBadInput(t *testing.T) {
	l, one := limiter(t, FixedWindow{Limit: 1, Window: 1}, 10), limiter(t, FixedWindow{Limit: 1, Window: 1}, 1)
	stored, _ := New(Config{Algorithm: FixedWindow{Limit: 1, Window: 1}, Store: &shelf{}})
	for want, rs := range map[string][]Request{
		"rate: there are 0 requests, must be 1 to 64":                                   nil,
		"rate: there are 65 requests, must be 1 to 64":                                  make([]Request, 65),
		"rate: request 0 has no Limiter\nrate: request 1 is for -1, must be at least 1": {{nil, "", 1, false}, {l, "a", -1, false}},
		"rate: requests 0 and 2 are for the same key, add them up":                      {{l, "a", 1, false}, {l, "b", 1, false}, {l, "a", 1, false}},
		"rate: requests 0 and 1 are for the same key, add them up":                      {{one, "a", 1, false}, {one, "b", 1, false}},
		"rate: requests 0 and 1 are kept in different places":                           {{l, "a", 1, false}, {stored, "b", 1, false}},
	} {
		if ds, err := Take(t.Context(), rs); err == nil || err.Error() != want || ds != nil {
			t.Errorf("got  %v, %v\nwant %s", ds, err, want)
		}
	}
	if err := GiveBack(t.Context(), make([]Request, 2), nil); err == nil || !strings.Contains(err.Error(), "must be as many") {
		t.Error(err)
	}
}

// Batches in all orders neither deadlock nor count what did not pass.
func TestBatchStress(t *testing.T) {
	const goroutines, rounds = 6, 2000
	var ls []*Limiter
	for _, keys := range []int{1, 3, 50, 1} {
		l := limiter(t, TokenBucket{Rate: PerHour(1), Burst: 100}, keys)
		if err := l.SetRate(PerHour(0)); err != nil { // nothing accrues: what comes back comes back whole
			t.Fatal(err)
		}
		ls = append(ls, l)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	through := 0
	for g := range goroutines {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 9))
			for range rounds {
				var rs []Request
				for _, i := range rng.Perm(len(ls)) {
					for k := range 1 + rng.IntN(2) {
						if ls[i].config.Keys > 1 || k == 0 {
							rs = append(rs, Request{Limiter: ls[i], Key: string(rune('a' + k*4 + rng.IntN(4))), N: 1})
						}
					}
				}
				ds, err := Take(t.Context(), rs)
				if err != nil {
					t.Error(err)
					return
				}
				for _, d := range ds {
					if d.OK != ds[0].OK {
						t.Errorf("neither all nor none: %+v", ds)
					}
				}
				if ds[0].OK {
					if rng.IntN(2) == 0 {
						_ = GiveBack(t.Context(), rs, ds)
						continue
					}
					mu.Lock()
					through++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if through != 100 { // both of the single buckets hold exactly that many
		t.Errorf("%d batches passed, want 100", through)
	}
	for _, l := range ls {
		if err := l.inspect(); err != nil {
			t.Error(err)
		}
	}
}

// shelf is a store for tests.
type shelf struct {
	requests []Request
	given    []Decision
	answer   []Decision
	err      error
}

func (s *shelf) Take(_ context.Context, rs []Request) ([]Decision, error) {
	s.requests = append(s.requests, rs...)
	return s.answer, s.err
}

func (s *shelf) GiveBack(_ context.Context, _ []Request, ds []Decision) error {
	s.given = append(s.given, ds...)
	return s.err
}

func TestStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{answer: []Decision{{OK: true, Limit: 5, Mark: "slot 7"}}}
		l, err := New(Config{Algorithm: LeakyBucket{Rate: PerSecond(1), Queue: 4}, Name: "api", Store: s})
		if err != nil {
			t.Fatal(err)
		}
		b := l.Bucket("ann")
		r, err := b.Reserve(t.Context(), 2)
		if err != nil || !r.OK {
			t.Fatal(r, err)
		}
		if q := s.requests[0]; q.Limiter.Config().Name != "api" || q.Key != "ann" || q.N != 2 || q.Peek {
			t.Errorf("asked %+v", q)
		}
		if err := r.GiveBack(t.Context()); err != nil || len(s.given) != 1 || s.given[0].Mark != "slot 7" {
			t.Errorf("%v, given back %+v", err, s.given)
		}
		if !l.Allow("ann") {
			t.Error("the store said yes")
		}
		s.answer[0].Wait = time.Second
		if l.Allow("ann") || len(s.given) != 2 {
			t.Error("Allow does not queue, and gives the place back")
		}
		start := time.Now()
		if err := b.Wait(t.Context(), 1); err != nil || time.Since(start) != time.Second {
			t.Error(err, time.Since(start))
		}
		if _, err := b.Peek(t.Context(), 1); err != nil || !s.requests[len(s.requests)-1].Peek {
			t.Error("a look is a look")
		}
		s.err = errors.New("down")
		if l.Allow("ann") {
			t.Error("an error is a no")
		}
		if _, err := l.Take(t.Context(), "ann", 1); !errors.Is(err, s.err) {
			t.Error(err)
		}
		if err := b.Wait(t.Context(), 1); !errors.Is(err, s.err) {
			t.Error(err)
		}
		s.err, s.answer = nil, nil
		if _, err := l.Take(t.Context(), "ann", 1); err == nil {
			t.Error("no decision is an error")
		}
		if err := l.SetRate(PerSecond(2)); err == nil {
			t.Error("a store has its own means")
		}
	})
}
