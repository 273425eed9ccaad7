package contender

import (
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"
)

const gobreakerV2 = "github.com/sony/gobreaker/v2"

// A breaker has no bound; it is here because it stands in the same place of a program.
var gobreakers = []Contender{
	{
		Name: "gobreaker: Execute", Module: gobreakerV2, Does: "closed, rolling window of 10 s in buckets of 1 s, every call succeeds; no bound",
		Setup: func(func(func())) Loop { return gobreakerLoop(newGobreaker()) },
	},
	{
		Name: "gobreaker: Execute, open", Module: gobreakerV2, Does: "the same, tripped", Refuses: true,
		Setup: func(func(func())) Loop {
			cb := newGobreaker()
			for cb.State() != gobreaker.StateOpen {
				_, _ = cb.Execute(func() (struct{}, error) { return struct{}{}, errors.New("bench: trip") })
			}
			return gobreakerLoop(cb)
		},
	},
}

func newGobreaker() *gobreaker.CircuitBreaker[struct{}] {
	return gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Interval:     10 * time.Second,
		BucketPeriod: time.Second,
		Timeout:      24 * time.Hour, // open means open for the whole run
	})
}

func gobreakerLoop(cb *gobreaker.CircuitBreaker[struct{}]) Loop {
	return func(n int, body func() error) (admitted int) {
		request := func() (struct{}, error) { return struct{}{}, body() }
		for range n {
			if _, err := cb.Execute(request); err == nil {
				admitted++
			}
		}
		return admitted
	}
}
