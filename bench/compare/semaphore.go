package compare

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// A semaphore today.

var places = semaphore.NewWeighted(20)

func (s *store) getBySemaphore(ctx context.Context, id int) (item, error) {
	wait, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if err := places.Acquire(wait, 1); err != nil {
		return item{}, errBusy
	}
	defer places.Release(1)
	return s.read(ctx, id)
}

// The same with spillway.

var _ = guard.Default().Registry().Declare("shop.Store.Get", registry.Spec{Limit: 20, Wait: 50 * time.Millisecond})

func (s *store) getGuarded(ctx context.Context, id int) (item, error) {
	return guard.Call(ctx, "shop.Store.Get", func(ctx context.Context) (item, error) { return s.read(ctx, id) })
}
