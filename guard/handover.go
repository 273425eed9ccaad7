package guard

import (
	"context"

	"github.com/spillway-go/spillway/internal/goroutine"
)

// Run runs fn on the calling goroutine, which may be another than the one that entered, in the pass's place, and gives it back: from here on
// it is a call of this goroutine, as one of DoContext. So a late one is told with this goroutine's stack, and a call of the same key from
// inside passes through. An error of fn comes back untouched and is recorded; a panic or Goexit goes on up.
//
// A pass of EnterScoped, or one that was evicted before, keeps being what it was.
func (p *Pass) Run(fn func(context.Context) error) error {
	g, ok := p.permit.Owner().(*Guard)
	if !ok {
		return fn(p.Context())
	}
	b, t, ok := p.permit.Adopt()
	if !ok {
		defer p.Exit()
		err := fn(p.Context())
		p.Record(err)
		return err
	}
	var badge *goroutine.Badge
	if g.marks {
		badge = goroutine.Wear(t.Goroutine())
	}
	out := unrecorded
	defer func() {
		badge.Off()
		g.leave(b, g.plan.Load(), t, p.probe(), out)
		p.end()
	}()
	err := goroutine.RunContext(p.Context(), fn)
	out = g.outcomeOf(err)
	return err
}
