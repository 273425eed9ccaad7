package watchdog_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway/watchdog"
)

func BenchmarkDump(b *testing.B) {
	for _, size := range []struct {
		name         string
		parked, late int
	}{{"10k/1", 10_000, 1}, {"10k/500", 10_000, 500}, {"100k/500", 100_000, 500}, {"10k/10k", 0, 10_000}} {
		b.Run(size.name, func(b *testing.B) {
			l := watchdog.NewLedger(time.Nanosecond)
			leave := make(chan struct{})
			var all sync.WaitGroup
			for range size.parked {
				all.Go(func() { <-leave })
			}
			for range size.late {
				all.Go(func() { l.Do(key, func() error { return stuck(leave) }) })
			}
			for l.InFlight() < size.late {
				runtime.Gosched()
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, s := range watchdog.Dump(l) {
					if s.NoStack != "" {
						b.Error(s.NoStack)
					}
				}
			}
			close(leave)
			all.Wait()
		})
	}
}
