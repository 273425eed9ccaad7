//go:build !race

package guard_test

// raceDetector is off.
const raceDetector = false
