package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/spillway-go/spillway/breaker"
)

const callsPerSecond = 50

// tally is what a caller saw.
type tally struct {
	ok, failed, refused int
	waited              time.Duration // altogether, for failures
}

func (t tally) minus(o tally) tally {
	return tally{t.ok - o.ok, t.failed - o.failed, t.refused - o.refused, t.waited - o.waited}
}

func (t tally) sent() int { return t.ok + t.failed }

// caller calls the dependency in its own way.
type caller struct {
	do    func(fn func() error) error
	state func() string // what its guard says of itself

	mu  sync.Mutex // guards all
	all tally
}

// callers are the three ways. Told hears of every change of the breaker.
func callers(second time.Duration, told func(breaker.Change)) ([]*caller, error) {
	b, err := breaker.New(breaker.Config{Window: 2 * second, Open: second, Min: 10, OnChange: told})
	if err != nil {
		return nil, err
	}
	t, err := breaker.NewThrottle(breaker.ThrottleConfig{Window: 2 * second})
	if err != nil {
		return nil, err
	}
	const critical = 1
	return []*caller{
		{do: func(fn func() error) error { return fn() }, state: func() string { return "" }},
		{do: b.Do, state: func() string { return b.Snapshot().State.String() }},
		{
			do:    func(fn func() error) error { return t.Do(critical, fn) },
			state: func() string { return fmt.Sprintf("drops %.0f %%", 100*t.Snapshot().Drop[critical]) },
		},
	}, nil
}

// call makes one call and counts how it ended.
func (c *caller) call(get func() error) {
	start := time.Now()
	err := c.do(get)
	took := time.Since(start)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.all.ok++
	case errors.Is(err, breaker.ErrOpen), errors.Is(err, breaker.ErrThrottled):
		c.all.refused++
	default:
		c.all.failed++
		c.all.waited += took
	}
}

func (c *caller) seen() tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// get asks the dependency, and is patient for a while only.
func get(ctx context.Context, client *http.Client, url string, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection can be used again
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}
