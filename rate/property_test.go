package rate

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// draw makes an algorithm; all orders of magnitude are as likely.
func magnitude(t *rapid.T, least, most int64, what string) int64 {
	top := most
	for top > least && rapid.IntRange(0, 3).Draw(t, what+" smaller") != 0 {
		top /= 1 + rapid.Int64Range(1, 99).Draw(t, what+" by")
	}
	return rapid.Int64Range(least, max(least, top)).Draw(t, what)
}

func drawRate(t *rapid.T) Rate {
	per := time.Duration(magnitude(t, 1, int64(30*24*time.Hour), "per"))
	if rapid.Bool().Draw(t, "round") {
		per = rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Minute, time.Hour}).Draw(t, "per")
	}
	return Rate{N: magnitude(t, 1, 20_000_000, "n"), Per: per}
}

// model is one algorithm beside its reference.
type model struct {
	name string
	draw func(*rapid.T) (Algorithm, reference)
	// scale is a time in which something changes.
	scale func(r *rule) int64
}

func bucketScale(r *rule) int64 { return max(1, r.token/max(1, r.perNano)) }
func windowScale(r *rule) int64 { return r.window }

var models = []model{
	{"tokens", func(t *rapid.T) (Algorithm, reference) {
		a := TokenBucket{Rate: drawRate(t), Burst: 1}
		token, _ := a.Rate.units()
		a.Burst = magnitude(t, 1, min(1_000_000, maxLevel/token), "burst")
		return a, newRefTokens(a)
	}, bucketScale},
	{"leaky", func(t *rapid.T) (Algorithm, reference) {
		a := LeakyBucket{Rate: drawRate(t)}
		token, _ := a.Rate.units()
		a.Queue = magnitude(t, 0, min(1_000_000, maxLevel/token)-1, "queue")
		return a, newRefLeaky(a)
	}, bucketScale},
	{"sliding", func(t *rapid.T) (Algorithm, reference) {
		a := SlidingWindow{Limit: magnitude(t, 1, 100, "limit"), Window: time.Duration(magnitude(t, 1, int64(30*24*time.Hour), "window"))}
		a.Segments = int(magnitude(t, 1, min(60, int64(a.Window)), "segments"))
		return a, newRefSliding(a)
	}, windowScale},
	{"fixed", func(t *rapid.T) (Algorithm, reference) {
		a := FixedWindow{Limit: magnitude(t, 1, 100, "limit"), Window: time.Duration(magnitude(t, 1, int64(30*24*time.Hour), "window"))}
		return a, newRefFixed(a)
	}, windowScale},
}

// Every decision, and every figure in it, is that of the reference: never over the limit, never under it, nothing counted for
// a refusal, and RetryAfter to the nanosecond.
func TestDecisionsAreExact(t *testing.T) {
	for _, m := range models {
		t.Run(m.name, func(t *testing.T) {
			done := 0
			rapid.Check(t, func(rt *rapid.T) {
				a, ref := m.draw(rt)
				r, err := compile(a)
				if err != nil {
					rt.Fatalf("%+v: %v", a, err)
				}
				rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
				s := state{rule: r, segs: make([]int64, r.segments), now: int64(1) << 61}
				for range operations / 100 {
					if err := s.step(rng, ref, m.scale(&r)); err != nil {
						rt.Fatalf("%+v: %v", a, err)
					}
					done++
				}
			})
			if done < operations {
				t.Errorf("only %d operations", done)
			}
		})
	}
}

type state struct {
	rule rule
	cell cell
	segs []int64
	now  int64
}

// pause moves time on: often not at all or by a part of scale, rarely by very much.
func (s *state) pause(rng *rand.Rand, scale int64) {
	if s.now > int64(1)<<62 { // 70 years have passed; the clock ends after 220
		scale = min(scale, 1000)
	}
	switch rng.IntN(10) {
	case 0, 1, 2:
	case 3:
		s.now++
	case 4:
		s.now += rng.Int64N(min(scale*20+1, int64(1)<<50))
	case 5:
		if rng.IntN(200) == 0 && scale != 1000 {
			s.now += rng.Int64N(int64(31 * 24 * time.Hour))
		}
	default:
		s.now += rng.Int64N(scale + 1)
	}
}

func (s *state) amount(rng *rand.Rand) int64 {
	switch rng.IntN(6) {
	case 0:
		return 1 + rng.Int64N(s.rule.limit+1) // sometimes one too many
	case 1:
		return 1 + s.rule.left(&s.cell, s.segs, s.now) // just too many
	case 2:
		return max(1, s.rule.left(&s.cell, s.segs, s.now)) // just not
	default:
		return 1 + rng.Int64N(min(3, s.rule.limit))
	}
}

func (s *state) step(rng *rand.Rand, ref reference, scale int64) error {
	s.pause(rng, scale)
	n := s.amount(rng)
	if rng.IntN(20) == 0 { // exactly when it was told to come back, or just before
		if at := ref.until(s.now, n); at != forever && at < int64(3)<<61 {
			s.now = max(s.now, at-rng.Int64N(2))
		}
	}
	want := ref.until(s.now, n)
	if want != forever {
		want -= s.now
	}
	if got := s.rule.until(&s.cell, s.segs, s.now, n); got != want {
		return fmt.Errorf("%d at %d: passes in %d, want %d", n, s.now, got, want)
	}
	if n <= s.rule.limit {
		if _, ok := s.rule.take(&s.cell, s.segs, s.now, n); ok != (want == 0) {
			return fmt.Errorf("%d at %d: passed %v, want %v", n, s.now, ok, want == 0)
		}
	}
	if want == 0 {
		if leaky, ok := ref.(*refLeaky); ok {
			wait := leaky.leaves(s.now, n) - s.now
			if got := s.rule.wait(&s.cell, s.now); got != wait {
				return fmt.Errorf("%d at %d: waits %d, want %d", n, s.now, got, wait)
			}
		}
		ref.take(s.now, n)
	}
	if got, want := s.rule.left(&s.cell, s.segs, s.now), ref.left(s.now); got != want {
		return fmt.Errorf("at %d: %d left, want %d", s.now, got, want)
	}
	if got, want := s.rule.fresh(&s.cell, s.segs, s.now), ref.empty(s.now)-s.now; got != want {
		return fmt.Errorf("at %d: as new in %d, want %d", s.now, got, want)
	}
	return nil
}
