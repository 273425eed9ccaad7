package paired

import "runtime"

// Allocs measures what one operation allocates on the heap, in objects and bytes: the least of several attempts, as
// whatever runs in the background (a sampler, a logger) allocates on the same counters, at its own times. One processor
// serves the whole process meanwhile. The counters are exact; n is the number of operations of an attempt.
func Allocs(n int, loop func(n int) error) (objects, bytes float64, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if err := loop(n); err != nil { // warm: tables that grow on demand have grown
		return 0, 0, err
	}
	var before, after runtime.MemStats
	for attempt := range 5 {
		runtime.ReadMemStats(&before)
		if err := loop(n); err != nil {
			return 0, 0, err
		}
		runtime.ReadMemStats(&after)
		o := float64(after.Mallocs-before.Mallocs) / float64(n)
		b := float64(after.TotalAlloc-before.TotalAlloc) / float64(n)
		if attempt == 0 || o < objects {
			objects, bytes = o, b
		}
	}
	return objects, bytes, nil
}
