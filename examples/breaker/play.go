package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/spillway-go/spillway/breaker"
)

// line is a second of the play.
type line struct {
	mood   mood
	seen   [3]tally // by caller, in this second
	states [3]string
}

// play lets the script happen and returns its seconds.
func play(ctx context.Context, second time.Duration, out io.Writer) ([]line, error) {
	d, err := startDependency()
	if err != nil {
		return nil, err
	}
	defer d.stop()
	transport := &http.Transport{MaxIdleConnsPerHost: callsPerSecond}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}

	start := time.Now()
	changes := make(chan string, 1000) // some ten of them are expected
	guarded, err := callers(second, func(c breaker.Change) {
		select {
		case changes <- fmt.Sprintf("%5.1f  breaker %v -> %v: %s", float64(time.Since(start))/float64(second), c.From, c.To, c.Why):
		default: // whoever calls must not wait for the screen
		}
	})
	if err != nil {
		return nil, err
	}
	var calls sync.WaitGroup
	defer calls.Wait()
	one := func() error { return get(ctx, client, d.url, second/4) }

	header(out)
	pace := time.NewTicker(second / callsPerSecond)
	defer pace.Stop()
	var lines []line
	var before [3]tally
	for _, act := range script {
		d.mood.Store(int32(act.mood))
		for range act.seconds {
			for range callsPerSecond {
				select {
				case <-pace.C:
				case <-ctx.Done():
					return lines, ctx.Err()
				}
				for _, c := range guarded {
					calls.Go(func() { c.call(one) })
				}
			}
			l := line{mood: act.mood}
			for i, c := range guarded {
				now := c.seen()
				l.seen[i], l.states[i], before[i] = now.minus(before[i]), c.state(), now
			}
			lines = append(lines, l)
			l.print(out, len(lines), changes)
		}
	}
	return lines, nil
}
