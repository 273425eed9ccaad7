package guard

import (
	"context"

	"github.com/spillway-go/spillway/registry"
)

// Injector stands in the path of every call of a runtime, for drills and tests. Without one it costs nothing. Both
// methods may be called at any time from any goroutine, without a lock.
type Injector interface {
	// Refuse is asked before anything is taken. Another answer than ReasonNone refuses the call for that reason.
	Refuse(ctx context.Context, key registry.Key) Reason
	// Inject runs with the place held, before the call. It may block, until ctx is done at the latest. An error that
	// is not nil is the call's own outcome: the function is not run, and the failure counts.
	Inject(ctx context.Context, key registry.Key) error
}
