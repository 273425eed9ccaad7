package guard

import (
	"fmt"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/spillway-go/spillway/registry"
)

// What the background work and a snapshot of ten thousand keys cost. With nothing to tell a tick does not look at the keys at all.
func BenchmarkTenThousandKeys(b *testing.B) {
	rt, err := NewRuntime(nil, WithLogger(zerolog.Nop()), WithPressure(nil))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = rt.Close() }()
	for i := range 10_000 {
		_ = rt.Do(registry.Key(fmt.Sprint("key", i)), func() error { return nil })
	}
	b.Run("quiet tick", func(b *testing.B) {
		for b.Loop() {
			rt.sweep()
		}
	})
	b.Run("tick with a report", func(b *testing.B) {
		for b.Loop() {
			rt.reported.Store(true)
			rt.sweep()
		}
	})
	b.Run("second with refusals", func(b *testing.B) {
		refusing := map[*Guard]struct{}{}
		for b.Loop() {
			rt.count(time.Now(), time.Now(), refusing)
		}
	})
	b.Run("snapshot", func(b *testing.B) {
		for b.Loop() {
			rt.Snapshot()
		}
	})
	b.Run("search for idle guards", func(b *testing.B) {
		for b.Loop() {
			rt.table.mu.Lock()
			rt.table.search()
			rt.table.mu.Unlock()
		}
	})
}
