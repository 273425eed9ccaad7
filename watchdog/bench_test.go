package watchdog_test

import (
	"context"
	"runtime/pprof"
	"testing"

	"github.com/spillway-go/spillway/internal/goroutine"
	"github.com/spillway-go/spillway/watchdog"
)

func nothing() error { return nil }

// What a mark adds to a call: set and restored, with the goroutine's number known.
func BenchmarkMark(b *testing.B) {
	m, id := watchdog.NewMark(), goroutine.ID()
	b.ReportAllocs()
	for b.Loop() {
		_ = m.Run(id, nothing)
	}
}

// The place's last call was another goroutine's.
func BenchmarkMarkOtherGoroutine(b *testing.B) {
	m := watchdog.NewMark()
	b.ReportAllocs()
	for i := uint64(1); b.Loop(); i++ {
		_ = m.Run(i, nothing)
	}
}

// A guarded call inside another one.
func BenchmarkMarkNested(b *testing.B) {
	outer, m, id := watchdog.NewMark(), watchdog.NewMark(), goroutine.ID()
	_ = outer.Run(id, func() error {
		b.ReportAllocs()
		for b.Loop() {
			_ = m.Run(id, nothing)
		}
		return nil
	})
}

// A goroutine with labels of its own that stay the same.
func BenchmarkMarkLabels(b *testing.B) {
	pprof.Do(context.Background(), pprof.Labels("route", "/buy"), func(context.Context) {
		m, id := watchdog.NewMark(), goroutine.ID()
		b.ReportAllocs()
		for b.Loop() {
			_ = m.Run(id, nothing)
		}
	})
}

// One whose labels differ at every call.
func BenchmarkMarkNewLabels(b *testing.B) {
	background := context.Background()
	sets := [2]context.Context{pprof.WithLabels(background, pprof.Labels("request", "1")), pprof.WithLabels(background, pprof.Labels("request", "2"))}
	defer pprof.SetGoroutineLabels(background)
	m, id := watchdog.NewMark(), goroutine.ID()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		pprof.SetGoroutineLabels(sets[i&1])
		_ = m.Run(id, nothing)
	}
}

func BenchmarkMarkPass(b *testing.B) {
	m, id := watchdog.NewMark(), goroutine.ID()
	b.ReportAllocs()
	for i := uint64(1); b.Loop(); i++ {
		m.EnterPass(id, i, watchdog.Here())
		m.LeavePass(i)
	}
}

func BenchmarkHere(b *testing.B) {
	for b.Loop() {
		watchdog.Here()
	}
}
