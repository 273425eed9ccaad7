//go:build !unix

package main

import (
	"errors"
	"runtime"
	"time"
)

func cpuTime() (time.Duration, error) {
	return 0, errors.New("CPU time needs getrusage, which " + runtime.GOOS + " does not have")
}
