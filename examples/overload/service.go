package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// service is the process we look at, written as most people would write it:
// one http.Client with a bounded pool of kept connections and a time-out, and
// the context of the request passed on. Both sides run exactly this; protect.go
// is the whole difference.
type service struct {
	client  *http.Client
	base    string   // URL of the dependency
	running [2]gauge // requests inside the handlers, by Endpoint
	calls   [2]mean  // calls to the dependency that it answered, by Endpoint
	shield  *shield  // nil: unguarded
}

// gauge is a number that goes up and down, and the highest it was.
type gauge struct{ now, peak atomic.Int64 }

func (g *gauge) add() {
	n := g.now.Add(1)
	for {
		peak := g.peak.Load()
		if n <= peak || g.peak.CompareAndSwap(peak, n) {
			return
		}
	}
}

func (g *gauge) done() { g.now.Add(-1) }

// mean is the mean of durations.
type mean struct{ sum, n atomic.Int64 }

func (m *mean) add(d time.Duration) {
	m.sum.Add(int64(d))
	m.n.Add(1)
}

// take returns the mean so far, 0 of nothing, and begins anew.
func (m *mean) take() time.Duration {
	return time.Duration(m.sum.Swap(0) / max(1, m.n.Swap(0)))
}

// Status is what a service says of itself since the last mark.
type Status struct {
	Running [2]int `json:"running"` // most requests inside the handler at one time, by Endpoint
	Inside  [2]int `json:"inside"`  // most calls inside the guard at one time, running or waiting; 0 unguarded

	// Call is the mean time of a call to the dependency that was answered, by
	// Endpoint, with the wait for a connection.
	Call [2]time.Duration `json:"call"`
}

func (s *service) obey(order Order) Answer {
	if order.Serve != nil {
		h, err := s.handler(*order.Serve)
		if err != nil {
			return Answer{Error: err.Error()}
		}
		return listen(h)
	}
	if order.Tell != "" {
		story, err := s.tell(order.Tell)
		if err != nil {
			return Answer{Error: err.Error()}
		}
		return Answer{Story: &story}
	}
	return Answer{Status: s.mark()}
}

// mark returns the status and begins to count it anew.
func (s *service) mark() Status {
	var status Status
	for e := range s.running {
		status.Running[e] = int(s.running[e].peak.Swap(s.running[e].now.Load()))
		status.Call[e] = s.calls[e].take()
	}
	if s.shield != nil {
		status.Inside = s.shield.mark()
	}
	return status
}

func (s *service) handler(conf Serve) (http.Handler, error) {
	s.base = "http://" + conf.Dependency
	s.client = &http.Client{
		Timeout: callTimeout,
		Transport: &http.Transport{
			MaxConnsPerHost:     poolSize,
			MaxIdleConnsPerHost: poolSize, // the default of 2 would close the others after every call
			IdleConnTimeout:     time.Minute,
		},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /quick", s.handle(Quick, 1, "/quick"))
	mux.HandleFunc("GET /slow", s.handle(Slow, callsPerPage, "/slow"))
	if conf.Side != Guarded {
		return mux, nil
	}
	var err error
	if s.shield, err = newShield(); err != nil {
		return nil, err
	}
	return s.shield.protect(mux), nil
}

// handle answers a request by calls to the dependency, one after the other.
func (s *service) handle(e Endpoint, calls int, path string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.running[e].add()
		defer s.running[e].done()
		for range calls {
			start := time.Now()
			if err := s.call(r.Context(), path); err != nil {
				code := http.StatusBadGateway
				if os.IsTimeout(err) || errors.Is(err, context.DeadlineExceeded) {
					code = http.StatusGatewayTimeout
				}
				http.Error(w, http.StatusText(code), code)
				return
			}
			s.calls[e].add(time.Since(start))
		}
		fmt.Fprintln(w, "answered by", calls, "calls")
	}
}

// call is one call to the dependency on one of the pool's connections.
func (s *service) call(ctx context.Context, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	// Read to the end, or the connection cannot be used again.
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("dependency answered %s", resp.Status)
	}
	return nil
}
