package pressure

import (
	"math/bits"
	"runtime"
	"syscall"
	"unsafe"
)

// allowedCPUs counts the CPUs that the main thread may run on. runtime.NumCPU knows them as they were when the process started, and
// cpusets change.
func allowedCPUs() int {
	var mask [1024]uint64 // bigger than any kernel's
	n, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, uintptr(syscall.Getpid()),
		unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
	if errno != 0 {
		return runtime.NumCPU()
	}
	count := 0
	for _, word := range mask[:min(len(mask), int(n+7)/8)] {
		count += bits.OnesCount64(word)
	}
	if count == 0 {
		return runtime.NumCPU()
	}
	return count
}
