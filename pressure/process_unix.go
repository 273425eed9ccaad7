//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package pressure

import (
	"syscall"
	"time"
)

func cpuTime() (time.Duration, bool) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0, false
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), true
}
