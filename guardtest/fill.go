package guardtest

import (
	"context"
	"errors"

	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// fillTries bounds how often Fill is overtaken by other calls before it gives up.
const fillTries = 100

// fill is what one call of Fill holds.
type fill struct{ passes []guard.Pass }

// Fill takes every free place of a key, so that the next call finds it full, until release is called or the test ends. The
// places count as calls in flight, and are never evicted as stale. The bound is the one in force: with guard.WithExpander
// it can grow. Calls that wait for a place are not let in before.
func (rt *Runtime) Fill(key registry.Key) (release func()) {
	rt.tb.Helper()
	if !rt.valid("Fill", key) {
		return func() {}
	}
	g := rt.For(key)
	ctx := context.WithValue(context.Background(), filling{}, true)
	f := &fill{}
	for try := 1; ; try++ {
		n := free(g.Snapshot().Bulkhead)
		if n == 0 {
			break
		}
		pass, err := g.EnterN(ctx, n)
		if errors.Is(err, bulkhead.ErrFull) && try < fillTries {
			continue // a call took a place in between
		}
		if err != nil {
			rt.tb.Errorf("guardtest: Fill: %v", err)
			break
		}
		pass.Pin()
		pass.Record(nil)
		f.passes = append(f.passes, pass)
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.filled[f] = struct{}{} // or else passes whose release was thrown away would be lost, and the places free
	return func() { rt.release(f) }
}

func free(s bulkhead.Snapshot) int { return max(0, min(s.Bound, s.Max-s.Detached)-s.InFlight) }

// release gives back what f holds, once.
func (rt *Runtime) release(f *fill) {
	rt.mu.Lock()
	_, held := rt.filled[f]
	delete(rt.filled, f)
	rt.mu.Unlock()
	if !held {
		return
	}
	for i := range f.passes {
		f.passes[i].Exit()
	}
	f.passes = nil
}

func (rt *Runtime) releaseAll() {
	rt.mu.Lock()
	var list []*fill
	for f := range rt.filled {
		list = append(list, f)
	}
	rt.mu.Unlock()
	for _, f := range list {
		rt.release(f)
	}
}
