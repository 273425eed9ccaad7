package rate

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"
)

func TestBadConfigs(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		name   string
		config Config
		want   string
	}{
		{"nothing", Config{}, "rate: Algorithm is nil, must be a TokenBucket, LeakyBucket, SlidingWindow or FixedWindow"},
		{"a pointer", Config{Algorithm: &TokenBucket{}}, "rate: Algorithm is a *rate.TokenBucket, must be a TokenBucket, LeakyBucket, SlidingWindow or FixedWindow"},
		{"all at once", Config{Keys: -1, Algorithm: TokenBucket{Rate: Rate{-3, -1}}},
			"rate: Keys is -1, must be 1 to 1073741824\nrate: Rate.N is -3, must be 1 to 1099511627776\nrate: Rate.Per is -1ns, must be 1ns to 8784h0m0s\n" +
				"rate: Burst is 0, must be 1 to 1125899906842624"},
		{"no rate", Config{Algorithm: TokenBucket{Rate: PerSecond(0), Burst: 5}}, "rate: Rate.N is 0, must be 1 to 1099511627776"},
		{"endless rate", Config{Algorithm: TokenBucket{Rate: PerSecond(math.MaxInt64), Burst: 5}}, "rate: Rate.N is 9223372036854775807, must be 1 to 1099511627776"},
		{"huge burst", Config{Algorithm: TokenBucket{Rate: PerHour(1), Burst: 80_064}}, "rate: Burst is 80064, must be 1 to 80063 at 1/h"},
		{"greatest burst", Config{Algorithm: TokenBucket{Rate: PerHour(1), Burst: 80_063}}, ""},
		{"negative queue", Config{Algorithm: LeakyBucket{Rate: PerSecond(1), Queue: -1}}, "rate: Queue is -1, must be 0 to 1125899906842623"},
		{"endless queue", Config{Algorithm: LeakyBucket{Rate: PerSecond(1), Queue: math.MaxInt64}}, "rate: Queue is 9223372036854775807, must be 0 to 1125899906842623"},
		{"long queue", Config{Algorithm: LeakyBucket{Rate: PerHour(1), Queue: 80_063}}, "rate: Queue is 80063, must be 0 to 80062 at 1/h"},
		{"late queue", Config{Algorithm: LeakyBucket{Rate: PerSecond(10), Queue: 10, Service: time.Millisecond, Tolerate: time.Second}},
			"rate: Queue / Rate + Service is 1s + 1ms, must be at most Tolerate, 1s"},
		{"late by a third of a nanosecond", Config{Algorithm: LeakyBucket{Rate: PerSecond(3), Queue: 1, Tolerate: 333_333_333}},
			"rate: Queue / Rate + Service is 333.333334ms + 0s, must be at most Tolerate, 333.333333ms"},
		{"just in time", Config{Algorithm: LeakyBucket{Rate: PerSecond(10), Queue: 9, Service: 100 * time.Millisecond, Tolerate: time.Second}}, ""},
		{"negative times", Config{Algorithm: LeakyBucket{Rate: PerSecond(10), Service: -1, Tolerate: -1}},
			"rate: Service is -1ns, must not be negative\nrate: Tolerate is -1ns, must not be negative"},
		{"windows", Config{Algorithm: SlidingWindow{Limit: -1, Window: -time.Second, Segments: -2}},
			"rate: Limit is -1, must be 1 to 1125899906842624\nrate: Window is -1s, must be 1ns to 8784h0m0s\nrate: Segments is -2, must be 1 to 1, or 0 for 10"},
		{"more segments than nanoseconds", Config{Algorithm: SlidingWindow{Limit: 1, Window: 5, Segments: 6}}, "rate: Segments is 6, must be 1 to 5, or 0 for 10"},
		{"few nanoseconds", Config{Algorithm: SlidingWindow{Limit: 1, Window: 5}}, ""},
		{"fixed", Config{Algorithm: FixedWindow{Limit: 1, Window: 367 * day}}, "rate: Window is 8808h0m0s, must be 1ns to 8784h0m0s"},
		{"a source for many", Config{Algorithm: TokenBucket{Burst: 1, Rate: PerSecond(0), Source: noTokens{}}}, "rate: Source is set, so Keys must be 1 and Store nil"},
		{"a source alone", Config{Algorithm: TokenBucket{Burst: 1, Rate: PerSecond(0), Source: noTokens{}}, Keys: 1}, ""},
		{"a store that cannot be compared", Config{Algorithm: FixedWindow{Limit: 1, Window: 1}, Store: oddStore{}}, "rate: Store is a rate.oddStore, which cannot be compared; use a pointer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := New(c.config)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if (l == nil) != (err != nil) {
				t.Errorf("limiter %v, error %v", l, err)
			}
		})
	}
}

type noTokens struct{}

func (noTokens) Tokens(context.Context, int64) (Grant, error) { return Grant{}, nil }

type oddStore struct{ Store []func() }

func (oddStore) Take(context.Context, []Request) ([]Decision, error)   { return nil, nil }
func (oddStore) GiveBack(context.Context, []Request, []Decision) error { return nil }

func TestRateReads(t *testing.T) {
	for want, r := range map[string]Rate{
		"100/s": PerSecond(100), "1/h": PerHour(1), "7/m": PerMinute(7), "1/1.5s": Every(1500 * time.Millisecond), "2/ms": {2, time.Millisecond},
	} {
		if got := r.String(); got != want {
			t.Errorf("%#v reads %q, want %q", r, got, want)
		}
	}
}

// Whatever the numbers, a limiter is either refused with sentences of ours or works without overflow.
func FuzzConfig(f *testing.F) {
	f.Add(uint8(0), int64(100), int64(time.Second), int64(20), int64(1), 10)
	f.Add(uint8(1), int64(1), int64(time.Hour), int64(80_000), int64(1<<40), 10)
	f.Add(uint8(2), int64(1<<50), int64(MaxPer), int64(1<<50), int64(math.MaxInt64), 3600)
	f.Add(uint8(3), int64(math.MinInt64), int64(math.MinInt64), int64(-1), int64(0), -1)
	f.Fuzz(func(t *testing.T, which uint8, n, per, size, dt int64, segments int) {
		var a Algorithm
		switch which % 4 {
		case 0:
			a = TokenBucket{Rate: Rate{n, time.Duration(per)}, Burst: size}
		case 1:
			a = LeakyBucket{Rate: Rate{n, time.Duration(per)}, Queue: size, Service: time.Duration(dt), Tolerate: time.Duration(n)}
		case 2:
			a = SlidingWindow{Limit: size, Window: time.Duration(per), Segments: segments}
		case 3:
			a = FixedWindow{Limit: size, Window: time.Duration(per)}
		}
		r, err := compile(a)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "rate: ") || !strings.Contains(line, "must ") {
					t.Errorf("the sentence is %q", line)
				}
			}
			return
		}
		var c cell
		segs := make([]int64, r.segments)
		now := int64(1) << 61
		for range 3 {
			for _, n := range []int64{1, r.limit, r.left(&c, segs, now)} {
				if n < 1 {
					continue
				}
				until := r.until(&c, segs, now, n)
				if _, ok := r.take(&c, segs, now, n); ok != (until == 0) || until < 0 {
					t.Fatalf("%+v: %d passes in %d, and passed %v", a, n, until, ok)
				}
				if left, fresh := r.left(&c, segs, now), r.fresh(&c, segs, now); left < 0 || left > r.limit || fresh < 0 {
					t.Fatalf("%+v: %d left, as new in %d", a, left, fresh)
				}
			}
			now += min(max(dt, 0), int64(1)<<60)
		}
	})
}
