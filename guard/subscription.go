package guard

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// ErrSubscriptionClosed is the error of Next after the subscription or its runtime was closed and everything was read.
var ErrSubscriptionClosed = errors.New("guard: subscription is closed")

// MaxBuffer is the largest buffer of a Subscription, in events: some 32 MB when it is full.
const MaxBuffer = 1 << 17

// Subscription delivers a runtime's events in order. A subscriber that is slower than they come loses the oldest. Its methods are
// safe for concurrent use; of several goroutines in Next each event goes to one.
type Subscription struct {
	hub *hub
	log atomic.Bool // the runtime's own

	mu      sync.Mutex // guards the rest; a leaf: nothing is called under it
	ring    []Event
	first   int
	count   int
	dropped uint64
	closed  bool
	ready   chan struct{} // holds one token when there is something to read, closed included
}

// Next returns the oldest event that was not read, waiting for one until ctx is done. A nil ctx is never done.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	for {
		s.mu.Lock()
		if s.count > 0 {
			e := s.ring[s.first]
			s.ring[s.first] = Event{}
			s.first = (s.first + 1) % len(s.ring)
			s.count--
			if s.count > 0 {
				s.signal() // somebody else may wait in Next
			}
			s.mu.Unlock()
			return e, nil
		}
		closed := s.closed
		s.mu.Unlock()
		if closed {
			return Event{}, ErrSubscriptionClosed
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// Dropped is the number of events that this subscriber lost so far.
func (s *Subscription) Dropped() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

// Close ends the delivery. Events that wait can still be read.
func (s *Subscription) Close() {
	s.hub.remove(s)
	s.close()
}

func (s *Subscription) close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.ready)
	}
	s.mu.Unlock()
}

func (s *Subscription) push(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.count == len(s.ring) {
		s.first = (s.first + 1) % len(s.ring)
		s.count--
		s.dropped++
	}
	s.ring[(s.first+s.count)%len(s.ring)] = e
	s.count++
	s.signal()
}

// signal wakes one Next. Under mu.
func (s *Subscription) signal() {
	if s.closed {
		return // ready is closed, and wakes all
	}
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// hub is the set of a runtime's subscriptions.
type hub struct {
	mu     sync.Mutex // guards the rest; a subscription's lock may be taken inside it
	subs   map[*Subscription]struct{}
	closed bool
}

func (h *hub) subscribe(buffer int) *Subscription {
	s := &Subscription{hub: h, ring: make([]Event, min(max(1, buffer), MaxBuffer)), ready: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		s.close()
		return s
	}
	if h.subs == nil {
		h.subs = make(map[*Subscription]struct{})
	}
	h.subs[s] = struct{}{}
	return s
}

func (h *hub) remove(s *Subscription) {
	h.mu.Lock()
	delete(h.subs, s)
	h.mu.Unlock()
}

func (h *hub) publish(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subs {
		if s.log.Load() && e.audience != subscribersOnly || !s.log.Load() && e.audience != logOnly {
			s.push(e)
		}
	}
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for s := range h.subs {
		s.close()
	}
	h.subs = nil
}
