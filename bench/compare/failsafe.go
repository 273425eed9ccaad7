package compare

import (
	"context"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/fallback"
	"github.com/failsafe-go/failsafe-go/timeout"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// failsafe-go today.

var policies = failsafe.With[item](
	fallback.NewWithResult(item{Name: "unknown"}),
	circuitbreaker.NewBuilder[item]().WithFailureRateThreshold(0.5, 20, 10*time.Second).WithDelay(5*time.Second).Build(),
	bulkhead.NewBuilder[item](20).WithMaxWaitTime(50*time.Millisecond).Build(),
	timeout.New[item](800*time.Millisecond),
)

func (s *store) getByFailsafe(ctx context.Context, id int) (item, error) {
	return policies.WithContext(ctx).GetWithExecution(func(e failsafe.Execution[item]) (item, error) { return s.read(e.Context(), id) })
}

// The same with spillway.

var _ = guard.Default().Registry().Declare("shop.Store.Find", registry.Spec{
	Limit: 20, Wait: 50 * time.Millisecond, Timeout: 800 * time.Millisecond, Breaker: registry.Breaker{On: true},
})

func (s *store) getOrUnknown(ctx context.Context, id int) (item, error) {
	return guard.CallOr(ctx, "shop.Store.Find",
		func(ctx context.Context) (item, error) { return s.read(ctx, id) },
		func(context.Context, error) (item, error) { return item{Name: "unknown"}, nil })
}
