package contender

import (
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/adaptivethrottler"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
)

const failsafeGo = "github.com/failsafe-go/failsafe-go"

var failsafes = []Contender{
	{
		Name: "failsafe-go: permit pair", Module: failsafeGo, Pair: true,
		Does: "TryAcquirePermit, ReleasePermit of a bulkhead: a channel behind an interface",
		Setup: func(func(func())) Loop {
			b := bulkhead.New[any](limit)
			return func(n int, _ func() error) (admitted int) {
				for range n {
					if b.TryAcquirePermit() {
						b.ReleasePermit()
						admitted++
					}
				}
				return admitted
			}
		},
	},
	{
		Name: FailsafeRun, Module: failsafeGo, Does: "Run of an executor built once, with a bulkhead as its only policy",
		Setup: func(func(func())) Loop { return failsafeLoop(bulkhead.New[any](limit)) },
	},
	{
		Name: FailsafeThree, Module: failsafeGo, Does: "Run of an executor with bulkhead, circuit breaker and adaptive throttler",
		Setup: func(func(func())) Loop {
			return failsafeLoop(
				adaptivethrottler.NewWithDefaults[any](),
				circuitbreaker.NewBuilder[any]().WithFailureRateThreshold(0.5, 20, 10*time.Second).Build(),
				bulkhead.New[any](limit))
		},
	},
	{
		Name: "failsafe-go: With(bulkhead).Run, full", Module: failsafeGo, Does: "the same, every permit taken", Refuses: true,
		Setup: func(func(func())) Loop {
			b := bulkhead.New[any](full)
			for range full {
				b.TryAcquirePermit()
			}
			return failsafeLoop(b)
		},
	},
}

func failsafeLoop(policies ...failsafe.Policy[any]) Loop {
	executor := failsafe.With(policies...)
	return func(n int, body func() error) (admitted int) {
		for range n {
			if executor.Run(body) == nil {
				admitted++
			}
		}
		return admitted
	}
}
