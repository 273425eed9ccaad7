package main

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/internal/goroutine"
	"github.com/spillway-go/spillway/watchdog"
)

// calls are late calls in flight, and a Source that says so.
type calls struct {
	places  []*place
	leave   chan struct{}
	running sync.WaitGroup
}

type place struct {
	goroutine atomic.Uint64 // 0: not in flight yet
}

// Holds implements watchdog.Place.
func (p *place) Holds(uint64) bool { return true }

// Late implements watchdog.Source: all calls are late.
func (c *calls) Late(_ int64, f func(watchdog.Call)) {
	for _, p := range c.places {
		f(watchdog.Call{
			Key: "github.com/acme/orders.Store.Get", Goroutine: p.goroutine.Load(), Age: time.Second, Slow: time.Second,
			InFlight: len(c.places), Bound: len(c.places), Place: p, Identity: 1, Scoped: true,
		})
	}
}

// start brings late calls in flight among other goroutines, each a few frames deep, and returns when all stand.
func start(late, others int) *calls {
	goroutine.Verify()
	c := &calls{places: make([]*place, late), leave: make(chan struct{})}
	var standing sync.WaitGroup
	standing.Add(late + others)
	for i := range c.places {
		p := new(place)
		c.places[i] = p
		c.running.Go(func() {
			p.goroutine.Store(goroutine.ID())
			badge := goroutine.Wear(goroutine.ID())
			defer badge.Off()
			_ = goroutine.Run(func() error { stand(5, &standing, c.leave); return nil })
		})
	}
	for range others {
		c.running.Go(func() { stand(5, &standing, c.leave) })
	}
	standing.Wait()
	return c
}

func (c *calls) end() {
	close(c.leave)
	c.running.Wait()
}

//go:noinline
func stand(depth int, standing *sync.WaitGroup, leave chan struct{}) {
	if depth > 0 {
		stand(depth-1, standing, leave)
		return
	}
	standing.Done()
	<-leave
}
