package rate

import (
	"context"
	"strconv"
	"testing"
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
	l, ctx := benchLimiter(b, plenty, 2*n), context.Background()
	for _, k := range keys {
		l.Allow(k)
	}
	for name, f := range map[string]func(string){
		"Allow": func(k string) { l.Allow(k) },
		"Take":  func(k string) { _, _ = l.Take(ctx, k, 1) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				f(keys[i*7919%n])
				i++
			}
		})
	}
}
