package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// Outcome is what became of one request, as its client sees it.
type Outcome int

// The outcomes.
const (
	Served  Outcome = iota // answered within the deadline: the only good one
	Late                   // answered, but too late to be of use
	Refused                // 503 with Retry-After, for overload
	Failed                 // any other answer, or none that could be read
	GaveUp                 // the client hung up after its patience
	outcomes
)

// load sends the planned requests to the service and records what comes back.
type load struct {
	client *http.Client
	base   string // URL of the service
	epoch  time.Time
	rec    *recorder
}

func newLoad(address string, rec *recorder) *load {
	return &load{
		client: &http.Client{Transport: &http.Transport{
			MaxIdleConnsPerHost: 4096, // one service, many callers
			DisableCompression:  true,
		}},
		base: "http://" + address,
		rec:  rec,
	}
}

// run sends every request at its time, whatever became of the ones before it,
// and returns when all are answered or given up.
func (l *load) run(ctx context.Context, epoch time.Time, plan []Arrival) {
	l.epoch = epoch
	// Requests stay valid beyond ctx's end only as long as it takes to cancel
	// them; nothing of this outlives run.
	var wg sync.WaitGroup
	defer l.client.CloseIdleConnections()
	defer wg.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for _, a := range plan {
		if wait := time.Until(epoch.Add(a.At)); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		}
		l.rec.sent(a)
		wg.Go(func() { l.rec.done(l.send(ctx, a)) })
	}
}

// send makes one request. Its latency counts from the planned arrival, so a
// sender that is late itself cannot make the answer look fast.
func (l *load) send(ctx context.Context, a Arrival) Sample {
	due := l.epoch.Add(a.At)
	sample := Sample{Arrival: a, Lateness: time.Since(due)}
	ctx, cancel := context.WithDeadline(ctx, due.Add(patience))
	defer cancel()
	code, retryAfter, err := l.get(ctx, a.Endpoint)
	sample.Latency = time.Since(due)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		sample.Outcome = GaveUp
	case err != nil:
		sample.Outcome = Failed
	case code == http.StatusServiceUnavailable && retryAfter != "":
		sample.Outcome = Refused
	case code != http.StatusOK:
		sample.Outcome = Failed
	case sample.Latency > deadline:
		sample.Outcome = Late
	default:
		sample.Outcome = Served
	}
	return sample
}

// get makes a request and returns when the whole answer was read.
func (l *load) get(ctx context.Context, e Endpoint) (code int, retryAfter string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.base+e.String(), http.NoBody)
	if err != nil {
		return 0, "", err
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Header.Get("Retry-After"), err
}
