package rate

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// held is a take that may still be given back, and what is known of it.
type held struct {
	n   int64
	got receipt
	at  int64
	// alone: nobody took or gave back anything since.
	alone bool
	// worth is what tokens missing would have been spared had it never been taken, in the rule's units: min(n, the least
	// that was missing at any moment since). It is kept for each, which the rule cannot afford.
	worth int64
	index int // in the log
}

// Giving back tokens never makes more of them than if the request had never been, is exact when nobody else came
// in between, and falls short by no more than what accrued meanwhile.
func TestGiveBackTokens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		alg, _ := models[0].draw(rt)
		a, _ := alg.(TokenBucket)
		r, _ := compile(a)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 2))
		s := state{rule: r, now: int64(1) << 61}
		var open []held
		var log []admitted
		for range operations / 100 {
			s.pause(rng, bucketScale(&r))
			level := r.level(&s.cell, s.now)
			for i := range open {
				open[i].worth = min(open[i].worth, level)
			}
			if len(open) != 0 && rng.IntN(2) == 0 {
				i := rng.IntN(len(open))
				h := open[i]
				r.giveBack(&s.cell, nil, s.now, h.n, h.got)
				given := level - r.level(&s.cell, s.now)
				short := max(0, h.worth-r.accrued(s.now-h.at))
				if given > h.worth || given < short || h.alone && given != h.worth {
					rt.Fatalf("%+v: %+v at %d: %d units came back, must be %d to %d", a, h, s.now, given, short, h.worth)
				}
				log[h.index].n = 0 // if only in parts: what did not come back was lost, which is no use of it
				open = append(open[:i], open[i+1:]...)
			} else {
				n := s.amount(rng)
				if n > r.limit {
					continue
				}
				got, ok := r.take(&s.cell, nil, s.now, n)
				if !ok {
					continue
				}
				log = append(log, admitted{s.now, n})
				if len(open) == 8 {
					open = open[1:]
				}
				for i := range open {
					open[i].alone = false
				}
				open = append(open, held{n: n, got: got, at: s.now, alone: true, worth: min(n*r.token, r.level(&s.cell, s.now)), index: len(log) - 1})
				continue
			}
			for i := range open {
				open[i].alone = false
				open[i].worth = min(open[i].worth, r.level(&s.cell, s.now))
			}
		}
		if err := judgeBucket(a, log); err != nil {
			rt.Fatalf("%+v: %v", a, err)
		}
	})
}

// judgeBucket looks at all that was admitted and not given back: in no time t more than Burst + Rate x t.
func judgeBucket(a TokenBucket, log []admitted) error {
	most, excess, last := times(a.Burst, int64(a.Rate.Per)), new(big.Int), int64(0)
	for _, e := range log {
		excess.Sub(excess, times(e.at-last, a.Rate.N))
		if excess.Sign() < 0 {
			excess.SetInt64(0)
		}
		last = e.at
		if excess.Add(excess, times(e.n, int64(a.Rate.Per))).Cmp(most) > 0 {
			return fmt.Errorf("more than %d at once at %d", a.Burst, e.at)
		}
	}
	return nil
}

// In windows, giving back is as if the request had never been: the reference just forgets it.
func TestGiveBackWindows(t *testing.T) {
	for _, m := range models[2:] {
		t.Run(m.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				a, ref := m.draw(rt)
				r, _ := compile(a)
				rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 3))
				s := state{rule: r, segs: make([]int64, r.segments), now: int64(1) << 61}
				var open []held
				for range operations / 100 {
					if len(open) != 0 && rng.IntN(3) == 0 {
						s.pause(rng, m.scale(&r))
						i := rng.IntN(len(open))
						r.giveBack(&s.cell, s.segs, s.now, open[i].n, open[i].got)
						forget(ref, open[i])
						open = append(open[:i], open[i+1:]...)
					}
					if err := s.step(rng, ref, m.scale(&r)); err != nil {
						rt.Fatalf("%+v: %v", a, err)
					}
					if got, ok := r.take(&s.cell, s.segs, s.now, 1); ok {
						ref.take(s.now, 1)
						open = append(open, held{n: 1, got: got, at: s.now})
						if len(open) > 8 {
							open = open[1:]
						}
					}
				}
			})
		})
	}
}

func forget(ref reference, h held) {
	var log []admitted
	switch ref := ref.(type) {
	case *refSliding:
		log = ref.log
	case *refFixed:
		log = ref.log
	}
	for i := range log {
		if log[i] == (admitted{h.at, h.n}) {
			log[i].n = 0
			return
		}
	}
}

// A place in a queue comes back to the last of it only; nobody's time ever changes, and no two leave closer together than the
// rate says.
func TestGiveBackQueue(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		alg, _ := models[1].draw(rt)
		a, _ := alg.(LeakyBucket)
		r, _ := compile(a)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 4))
		s := state{rule: r, now: int64(1) << 61}
		ref := newRefLeaky(a)
		var last *held
		var before *big.Int
		for range operations / 100 {
			if last != nil && rng.IntN(3) == 0 {
				s.pause(rng, bucketScale(&r))
				r.giveBack(&s.cell, nil, s.now, last.n, last.got)
				ref.next, last = before, nil
			}
			next := new(big.Int).Set(ref.next)
			if err := s.step(rng, ref, bucketScale(&r)); err != nil {
				rt.Fatalf("%+v: %v", a, err)
			}
			if ref.next.Cmp(next) != 0 { // somebody came: the one before is no longer the last
				if last != nil {
					cell := s.cell
					r.giveBack(&s.cell, nil, s.now, last.n, last.got)
					if s.cell != cell {
						rt.Fatalf("%+v: a place in the middle came back", a)
					}
				}
				last = nil
			}
			start := new(big.Int).Set(ref.next)
			if got, ok := r.take(&s.cell, nil, s.now, 1); ok {
				ref.take(s.now, 1)
				last, before = &held{n: 1, got: got, at: s.now}, start
			}
		}
	})
}

// Whatever the segments, no window of this length, wherever it begins, sees more than the limit.
func TestTrueWindowsHold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		alg, _ := models[2].draw(rt)
		a, _ := alg.(SlidingWindow)
		r, _ := compile(a)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 5))
		s := state{rule: r, segs: make([]int64, r.segments), now: int64(1) << 61}
		var window []admitted
		var sum int64
		for range operations / 100 {
			s.pause(rng, r.window)
			n := s.amount(rng)
			if n > r.limit {
				continue
			}
			if _, ok := r.take(&s.cell, s.segs, s.now, n); !ok {
				continue
			}
			window, sum = append(window, admitted{s.now, n}), sum+n
			for s.now-window[0].at >= int64(a.Window) {
				sum -= window[0].n
				window = window[1:]
			}
			if sum > a.Limit {
				rt.Fatalf("%+v: %d in the window that ends at %d", a, sum, s.now)
			}
		}
	})
}
