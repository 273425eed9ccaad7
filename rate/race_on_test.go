//go:build race

package rate

const (
	raceEnabled = true
	// operations is fewer here: the references run on one goroutine, and the detector finds nothing there but time.
	operations = 100_000
)
