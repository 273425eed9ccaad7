package compare

import (
	"context"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// gobreaker today.

var circuit = gobreaker.NewCircuitBreaker[item](gobreaker.Settings{
	Name: "store", MaxRequests: 3, Interval: 10 * time.Second, BucketPeriod: time.Second, Timeout: 5 * time.Second,
	ReadyToTrip: func(c gobreaker.Counts) bool { return c.Requests >= 20 && 2*c.TotalFailures >= c.Requests },
})

func (s *store) getByGobreaker(ctx context.Context, id int) (item, error) {
	return circuit.Execute(func() (item, error) { return s.read(ctx, id) })
}

// The same with spillway, and a bound.

var _ = guard.Default().Registry().Declare("shop.Store.Read", registry.Spec{Limit: 20, Breaker: registry.Breaker{On: true}})

func (s *store) getByBreaker(ctx context.Context, id int) (item, error) {
	return guard.Call(ctx, "shop.Store.Read", func(ctx context.Context) (item, error) { return s.read(ctx, id) })
}
