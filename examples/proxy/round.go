package main

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// tally is what became of the requests to one upstream.
type tally struct {
	sent, served, refused int             // served: in time
	latencies             []time.Duration // of those that were not refused
}

func (t *tally) success() float64 { return float64(t.served) / float64(max(1, t.sent)) }

func (t *tally) p99() string {
	if len(t.latencies) == 0 {
		return "-"
	}
	slices.Sort(t.latencies)
	p99 := t.latencies[(len(t.latencies)*99-1)/100]
	return p99.Round(time.Millisecond).String()
}

// round builds the upstreams and the proxy before them, sends its requests
// and takes everything down again. Tallies are in the order of upstreams.
func round(ctx context.Context, guarded bool) ([]tally, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: workers}
	defer transport.CloseIdleConnections()
	mux := http.NewServeMux()
	protect, closeGuards, err := protection(guarded)
	if err != nil {
		return nil, err
	}
	defer closeGuards()
	var closeUpstreams []func()
	defer func() {
		for _, closeUpstream := range closeUpstreams {
			closeUpstream()
		}
	}()
	for i, name := range upstreams {
		base, closeUpstream, err := serve(upstream(i == len(upstreams)-1))
		if err != nil {
			return nil, err
		}
		closeUpstreams = append(closeUpstreams, closeUpstream)
		proxy, err := forward(base, transport)
		if err != nil {
			return nil, err
		}
		mux.Handle("/"+name+"/", proxy)
	}
	base, closeProxy, err := serve(limited(workers, protect(mux)))
	if err != nil {
		return nil, err
	}
	defer closeProxy()
	return send(ctx, base)
}

// send plays a client that asks every upstream at a steady rate, whatever
// became of the requests before.
func send(ctx context.Context, base string) ([]tally, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 1024}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: patience}
	tallies := make([]tally, len(upstreams))
	var (
		mu sync.Mutex // guards tallies
		wg sync.WaitGroup
	)
	defer wg.Wait()
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	for range int(length.Seconds() * rate) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		for i, name := range upstreams {
			wg.Go(func() {
				start := time.Now()
				code := get(ctx, client, base+"/"+name+"/")
				took := time.Since(start)
				mu.Lock()
				defer mu.Unlock()
				t := &tallies[i]
				t.sent++
				switch {
				case code == http.StatusServiceUnavailable:
					t.refused++
					return
				case code == http.StatusOK && took <= deadline:
					t.served++
				}
				t.latencies = append(t.latencies, took)
			})
		}
	}
	wg.Wait()
	return tallies, nil
}

// get returns the status of the answer, 0 when there was none.
func get(ctx context.Context, client *http.Client, url string) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}
