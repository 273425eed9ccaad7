package main

import (
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// threadTime is the CPU time of this thread. The call is raw: the scheduler need not know of 100 ns.
func threadTime() time.Duration {
	const threadCPUTime = 3 // CLOCK_THREAD_CPUTIME_ID
	var ts syscall.Timespec
	_, _, _ = syscall.RawSyscall( //nolint:dogsled // this clock is always there
		syscall.SYS_CLOCK_GETTIME, threadCPUTime, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano())
}

// work takes so much CPU time, whoever else wants the CPU meanwhile. The goroutine may change its thread; a piece of work over which it
// did is taken for its usual 20 us.
func work(d time.Duration) {
	const piece = 20 * time.Microsecond
	for d > 0 {
		before := threadTime()
		count(6000)
		spent := threadTime() - before
		if spent <= 0 || spent > 50*piece {
			spent = piece
		}
		d -= spent
	}
}

var sink atomic.Uint64

func count(n int) {
	x := uint64(n)
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	sink.Store(x)
}

func processTime() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
