package rate

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"github.com/spillway-go/spillway/internal/clock"
)

func benchLimiter(b *testing.B, a Algorithm, keys int) *Limiter {
	b.Helper()
	l, err := New(Config{Algorithm: a, Keys: keys})
	if err != nil {
		b.Fatal(err)
	}
	return l
}

var (
	plenty = TokenBucket{Rate: Rate{N: 1 << 30, Per: 1e9}, Burst: 1 << 20}
	none   = TokenBucket{Rate: PerHour(1), Burst: 1}
)

func BenchmarkAllow(b *testing.B) {
	for _, c := range []struct {
		name string
		a    Algorithm
	}{
		{"tokens", plenty},
		{"refused", none},
		{"sliding", SlidingWindow{Limit: 1 << 40, Window: 1e9}},
		{"fixed", FixedWindow{Limit: 1 << 40, Window: 1e9}},
		{"leaky", LeakyBucket{Rate: Rate{N: 1 << 40, Per: 1e9}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			k := benchLimiter(b, c.a, 1).Bucket("")
			b.ReportAllocs()
			for b.Loop() {
				k.Allow()
			}
		})
	}
}

func BenchmarkAllowParallel(b *testing.B) {
	k := benchLimiter(b, plenty, 1).Bucket("")
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			k.Allow()
		}
	})
}

func BenchmarkTake(b *testing.B) {
	for _, c := range []struct {
		name string
		a    Algorithm
	}{{"tokens", plenty}, {"refused", none}} {
		b.Run(c.name, func(b *testing.B) {
			k := benchLimiter(b, c.a, 1).Bucket("")
			b.ReportAllocs()
			for b.Loop() {
				_, _ = k.Take(context.Background(), 1)
			}
		})
	}
}

func BenchmarkByKey(b *testing.B) {
	const n = 100_000
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "user-" + strconv.Itoa(i)
	}
	l := benchLimiter(b, plenty, 2*n)
	for _, k := range keys {
		l.Allow(k)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		l.Allow(keys[i*7919%n])
		i++
	}
}

func BenchmarkClock(b *testing.B) {
	for b.Loop() {
		clock.Now()
	}
}

func BenchmarkPour(b *testing.B) {
	r, _ := compile(plenty)
	var c cell
	now := int64(1) << 61
	for b.Loop() {
		now += 50
		r.pour(&c, now, 1)
	}
}
func BenchmarkMutex(b *testing.B) {
	var m sync.Mutex
	for b.Loop() {
		m.Lock()
		m.Unlock()
	}
}
