package guard_test

import (
	"context"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// The cost of a call beside other libraries, in pairs, is measured in bench/. These serve to look at one path after a change.

func benchRuntime(b *testing.B) *guard.Runtime {
	b.Helper()
	rt, err := guard.NewRuntime(nil, guard.WithLogger(zerolog.Nop()), guard.WithPressure(nil))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = rt.Close() })
	return rt
}

func BenchmarkDo(b *testing.B) {
	g := benchRuntime(b).For("bench")
	fn := func() error { return nil }
	b.ReportAllocs()
	for b.Loop() {
		_ = g.Do(fn)
	}
}

func BenchmarkDoByKey(b *testing.B) {
	rt := benchRuntime(b)
	fn := func() error { return nil }
	b.ReportAllocs()
	for b.Loop() {
		_ = rt.Do("bench", fn)
	}
}

func BenchmarkDoByBuiltKey(b *testing.B) {
	rt := benchRuntime(b)
	fn := func() error { return nil }
	keys := make([]registry.Key, 64) // of one content, so that the address misses more often than not
	for i := range keys {
		keys[i] = registry.Key(strings.Clone("bench"))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_ = rt.Do(keys[i%len(keys)], fn)
	}
}

func BenchmarkDoContext(b *testing.B) {
	g, ctx := benchRuntime(b).For("bench"), context.Background()
	fn := func(context.Context) error { return nil }
	b.ReportAllocs()
	for b.Loop() {
		_ = g.DoContext(ctx, fn)
	}
}

func BenchmarkCallWith(b *testing.B) {
	g, ctx := benchRuntime(b).For("bench"), context.Background()
	fn := func(context.Context) (int, error) { return 1, nil }
	b.ReportAllocs()
	for b.Loop() {
		_, _ = guard.CallWith(ctx, g, fn)
	}
}

func BenchmarkEnterScoped(b *testing.B) {
	g, ctx := benchRuntime(b).For("bench"), context.Background()
	call := func() {
		pass, err := g.EnterScoped(ctx)
		if err != nil {
			return
		}
		defer pass.Exit()
		pass.Record(nil)
	}
	b.ReportAllocs()
	for b.Loop() {
		call()
	}
}

func BenchmarkEnter(b *testing.B) {
	g, ctx := benchRuntime(b).For("bench"), context.Background()
	call := func() {
		pass, err := g.Enter(ctx)
		if err != nil {
			return
		}
		defer pass.Exit()
		pass.Record(nil)
	}
	b.ReportAllocs()
	for b.Loop() {
		call()
	}
}

func BenchmarkRefused(b *testing.B) {
	rt := benchRuntime(b)
	if err := rt.Registry().Declare("bench", registry.Spec{Limit: 1}); err != nil {
		b.Fatal(err)
	}
	g := rt.For("bench")
	pass, err := g.Enter(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	defer pass.Exit()
	fn := func() error { return nil }
	b.ReportAllocs()
	for b.Loop() {
		_ = g.Do(fn)
	}
}

func BenchmarkTimeout(b *testing.B) {
	rt := benchRuntime(b)
	if err := rt.Registry().Declare("bench", registry.Spec{Timeout: 1e9}); err != nil {
		b.Fatal(err)
	}
	g, ctx := rt.For("bench"), context.Background()
	fn := func(context.Context) error { return nil }
	b.ReportAllocs()
	for b.Loop() {
		_ = g.DoContext(ctx, fn)
	}
}

// BenchmarkChannelPair is the yardstick.
func BenchmarkChannelPair(b *testing.B) {
	c := make(chan struct{}, 20)
	fn := func() error { return nil }
	b.ReportAllocs()
	for b.Loop() {
		select {
		case c <- struct{}{}:
			_ = fn()
			<-c
		default:
		}
	}
}

// A call that fails, of a key with a breaker and a throttle that take no offence.
func BenchmarkFailing(b *testing.B) {
	rt := benchRuntime(b)
	spec := registry.Spec{Limit: 10, Breaker: registry.Breaker{Ratio: 1, Min: 1_000_000}, Throttle: registry.Throttle{K: 100}}
	if err := rt.Registry().Declare("bench", spec); err != nil {
		b.Fatal(err)
	}
	g := rt.For("bench")
	fail := false
	fn := func() error {
		if fail = !fail; fail {
			return nil
		}
		return errWork
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = g.Do(fn)
	}
}
