package goroutine

import (
	"sync"
	"testing"
)

func TestIDAgreesWithTheStackTrace(t *testing.T) {
	Verify()
	if !fast {
		t.Errorf("goid is wrong in this build: every guarded call pays about 5 us")
	}
	var mu sync.Mutex
	seen := map[uint64]bool{}
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			id := ID()
			if id == 0 || id != parse() {
				t.Errorf("ID() = %d, the stack trace says %d", id, parse())
			}
			mu.Lock()
			seen[id] = true
			mu.Unlock()
		})
	}
	wg.Wait()
	if len(seen) != 100 {
		t.Errorf("100 goroutines have %d numbers", len(seen))
	}
}

func TestSlowPathIsRight(t *testing.T) {
	Verify()
	want := ID()
	fast = false
	defer Verify()
	defer func() { fast = true }()
	if got := ID(); got != want || got == 0 {
		t.Errorf("slow ID() = %d, want %d", got, want)
	}
}
