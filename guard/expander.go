package guard

import (
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/registry"
)

// expander asks WithExpander's function when a key is full for the first time: bulkheads are made under the table's lock,
// where no callback may run. While the function runs nobody else waits for it, a call from inside it included.
type expander struct {
	name  registry.Key
	ask   func(registry.Key) bulkhead.Expander
	asked atomic.Bool
	found atomic.Pointer[bulkhead.Expander]
}

// Expand implements bulkhead.Expander.
func (e *expander) Expand(now bulkhead.Load) (bound int, pause time.Duration) {
	if x := e.found.Load(); x != nil {
		return (*x).Expand(now)
	}
	if e.asked.Swap(true) {
		return 0, 0
	}
	answered := false
	defer func() {
		if !answered { // it panicked: the next call that finds no place asks again
			e.asked.Store(false)
		}
	}()
	x := e.ask(e.name)
	answered = true
	if x != nil {
		e.found.Store(&x)
		return x.Expand(now)
	}
	return 0, 0
}
