//go:build race

package guard_test

// raceDetector: it allocates, and everything takes many times as long.
const raceDetector = true
