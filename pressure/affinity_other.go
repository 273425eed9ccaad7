//go:build !linux

package pressure

import "runtime"

func allowedCPUs() int { return runtime.NumCPU() }
