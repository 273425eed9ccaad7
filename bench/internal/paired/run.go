package paired

import (
	"errors"
	"sync"
	"time"
)

// Timed makes a Run of a loop that carries out n operations on the calling goroutine.
func Timed(loop func(n int) error) Run {
	return func(n int) (time.Duration, error) {
		start := time.Now()
		err := loop(n)
		return time.Since(start), err
	}
}

// Parallel makes a Run that shares n operations among a number of goroutines, which start together. The time is that
// of the wall clock until the last is done, so n operations that scale perfectly over c processors take 1/c of what they
// take one after another.
func Parallel(goroutines int, loop func(n int) error) Run {
	return func(n int) (time.Duration, error) {
		var (
			ready, done sync.WaitGroup
			gate        = make(chan struct{})
			errs        = make([]error, goroutines)
		)
		for i := range goroutines {
			share := n / goroutines
			if i < n%goroutines {
				share++
			}
			ready.Add(1)
			done.Go(func() {
				ready.Done()
				<-gate
				errs[i] = loop(share)
			})
		}
		ready.Wait()
		start := time.Now()
		close(gate)
		done.Wait()
		return time.Since(start), errors.Join(errs...)
	}
}

// Size makes a side of which a batch takes about the given time. It tries the first of the runs for that, for about twice the
// batch's time, which warms it up as well. A run that fails makes a batch of one; the measurement that follows will meet
// the error again and report it.
func Size(batch time.Duration, runs ...Run) Side {
	for n := 1; ; {
		took, err := runs[0](n)
		switch {
		case err != nil:
			return Side{Runs: runs, N: 1}
		case took >= batch/2 || n >= 1<<30:
			per := float64(max(took, 1)) / float64(n)
			return Side{Runs: runs, N: max(1, int(float64(batch)/per))}
		case took < batch/16:
			n *= 8
		default:
			n *= 2
		}
	}
}
