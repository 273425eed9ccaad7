package main

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/httpguard"
	"github.com/spillway-go/spillway/registry"
)

// The bounds. Both endpoints take their connections from one pool of 16, and
// 12 + 4 = 16: no admitted request ever waits for a connection, and the slow
// endpoint cannot take the quick one's. The waiting rooms even out what comes
// at random: a place does not stand empty until the next request happens to come.
const (
	slowPlaces  = 12
	slowRoom    = 12 // one round: a place is free again within 40 ms
	slowWait    = 50 * time.Millisecond
	quickPlaces = 4
	quickRoom   = 64
	quickWait   = 100 * time.Millisecond
)

// capacitySays is Behaviour.capacity(slowPlaces) in words.
const capacitySays = "12 places / (4 calls x 10 ms) = 300 requests a second"

// shield is all that the guarded service has and the unguarded one has not.
type shield struct {
	protect func(http.Handler) http.Handler
	rt      *guard.Runtime
	guards  [2]*guard.Guard // by Endpoint
	stop    chan struct{}

	mu   sync.Mutex // guards most
	most [2]int     // highest sum of running and waiting calls since the last mark
}

func newShield() (*shield, error) {
	reg := registry.New()
	quickKey, slowKey := httpguard.RouteKey("GET /quick"), httpguard.RouteKey("GET /slow")
	// Expand is 1: a bound that may grow would grow into the other endpoint's
	// share of the pool. A bound may only expand where what it stands for can.
	err := errors.Join(
		reg.Declare(quickKey, registry.Spec{Limit: quickPlaces, Expand: 1, Wait: quickWait, Queue: quickRoom}),
		reg.Declare(slowKey, registry.Spec{Limit: slowPlaces, Expand: 1, Wait: slowWait, Queue: slowRoom}),
	)
	if err != nil {
		return nil, err
	}
	// Refusals are what this example is about; they need no line in the log.
	rt, err := guard.NewRuntime(reg, guard.WithLogger(zerolog.Nop()))
	if err != nil {
		return nil, err
	}
	mw, err := httpguard.New(httpguard.Config{Runtime: rt})
	if err != nil {
		return nil, errors.Join(err, rt.Close())
	}
	s := &shield{
		protect: mw.Handler,
		rt:      rt,
		guards:  [2]*guard.Guard{Quick: rt.For(quickKey), Slow: rt.For(slowKey)},
		stop:    make(chan struct{}),
	}
	go s.watch()
	return s, nil
}

// close ends the runtime and the watch.
func (s *shield) close() error {
	close(s.stop)
	return s.rt.Close()
}

// watch looks every two milliseconds how many calls are inside the guards,
// until close.
func (s *shield) watch() {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.look()
		case <-s.stop:
			return
		}
	}
}

func (s *shield) look() {
	for e, g := range s.guards {
		b := g.Snapshot().Bulkhead
		s.mu.Lock()
		s.most[e] = max(s.most[e], b.InFlight+b.Detached+b.Waiting)
		s.mu.Unlock()
	}
}

// mark returns the most calls that were inside the guards at one time since
// the last mark, by Endpoint.
func (s *shield) mark() [2]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := s.most
	s.most = [2]int{}
	return most
}
