package bulkhead

import (
	"context"
	"testing"
)

func BenchmarkTakeGive(b *testing.B) {
	k, _ := New(Config{Limit: 20})
	b.ReportAllocs()
	for b.Loop() {
		if t, out := k.Take(); out.Admitted() {
			k.Give(t)
		}
	}
}

func BenchmarkEnterExit(b *testing.B) {
	k, _ := New(Config{Limit: 20})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if p, err := k.Enter(ctx); err == nil {
			p.Exit()
		}
	}
}

func BenchmarkFull(b *testing.B) {
	k, _ := New(Config{Limit: 20})
	for range 20 {
		k.Enter(context.Background())
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Enter(context.Background()); err == nil {
			b.Fatal("entered a full bulkhead")
		}
	}
}

func BenchmarkChannelPair(b *testing.B) {
	c := make(chan struct{}, 20)
	for b.Loop() {
		select {
		case c <- struct{}{}:
			<-c
		default:
		}
	}
}

func BenchmarkClock(b *testing.B) {
	for b.Loop() {
		now()
	}
}
