package goroutine

import (
	"context"
	"runtime/pprof"
	"testing"
)

func nothing() error { return nil }

func wearing(id uint64) {
	b := Wear(id)
	_ = Run(nothing)
	b.Off()
}

// What a badge adds to a call: put on and taken off, with the goroutine's number known.
func BenchmarkBadge(b *testing.B) {
	id := ID()
	b.ReportAllocs()
	for b.Loop() {
		wearing(id)
	}
}

// A goroutine that was never seen before.
func BenchmarkBadgeOfANewGoroutine(b *testing.B) {
	b.ReportAllocs()
	for i := uint64(1); b.Loop(); i++ {
		wearing(i)
	}
}

// A guarded call inside another one.
func BenchmarkBadgeNested(b *testing.B) {
	id := ID()
	outer := Wear(id)
	defer outer.Off()
	for b.Loop() {
		wearing(id)
	}
}

// A goroutine whose labels differ at every call.
func BenchmarkBadgeNewLabels(b *testing.B) {
	background := context.Background()
	sets := [2]context.Context{pprof.WithLabels(background, pprof.Labels("request", "1")), pprof.WithLabels(background, pprof.Labels("request", "2"))}
	defer pprof.SetGoroutineLabels(background)
	id := ID()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		pprof.SetGoroutineLabels(sets[i&1])
		wearing(id)
	}
}

func BenchmarkHere(b *testing.B) {
	for b.Loop() {
		Here()
	}
}
