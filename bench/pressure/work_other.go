//go:build !linux

package main

import "time"

// work takes so much time. On a machine where others want the CPU that is less CPU time; Linux tells it for a thread.
func work(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
}

// processTime is not told.
func processTime() time.Duration { return 0 }
