package contender

import "golang.org/x/sync/semaphore"

const xsync = "golang.org/x/sync"

var semaphores = []Contender{
	{
		Name: "x/sync semaphore, pair", Module: xsync, Does: "TryAcquire(1), Release(1)", Pair: true,
		Setup: func(func(func())) Loop { return semaphoreLoop(semaphore.NewWeighted(limit)) },
	},
	{
		Name: "x/sync semaphore, full", Module: xsync, Does: "TryAcquire(1), every place taken", Pair: true, Refuses: true,
		Setup: func(func(func())) Loop {
			sem := semaphore.NewWeighted(full)
			sem.TryAcquire(full)
			return semaphoreLoop(sem)
		},
	},
}

func semaphoreLoop(sem *semaphore.Weighted) Loop {
	return func(n int, _ func() error) (admitted int) {
		for range n {
			if sem.TryAcquire(1) {
				sem.Release(1)
				admitted++
			}
		}
		return admitted
	}
}
