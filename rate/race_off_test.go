//go:build !race

package rate

const (
	raceEnabled = false
	// operations is how many random operations each algorithm has to agree with its reference on.
	operations = 1_000_000
)
