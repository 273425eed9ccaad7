package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// After the play the guarded service shows what a guard does by itself, on calls that do not share a pool: the bound of a key grows while all
// is well, it does not while the calls hang, and the call that hangs is told with its stack.

// Acts of the story.
const (
	actGrow = "grow" // three times as many callers as places, the dependency is well
	actHang = "hang" // the dependency answers nothing
)

const (
	storyPlaces = 4                      // N; the bound may grow to 4 N
	storySlow   = 300 * time.Millisecond // a call is late from then on
	storyLength = 1500 * time.Millisecond
)

// Story is what the runtime of an act told.
type Story struct {
	Bound []string `json:"bound"`           // steps of the bound, and those not taken, with the reason
	Slow  string   `json:"slow,omitempty"`  // the first report of a late call
	Stack []string `json:"stack,omitempty"` // where it stands, innermost first
}

// tell plays an act with a runtime and a client of its own.
func (s *service) tell(act string, opts ...guard.Option) (Story, error) {
	reg := registry.New()
	key := registry.Key("shop.Reports." + act)
	if err := reg.Declare(key, registry.Spec{Limit: storyPlaces, Slow: storySlow}); err != nil {
		return Story{}, err
	}
	rt, err := guard.NewRuntime(reg, append([]guard.Option{guard.WithLogger(zerolog.Nop())}, opts...)...)
	if err != nil {
		return Story{}, err
	}
	events := rt.Subscribe(1000)
	transport := &http.Transport{MaxIdleConnsPerHost: 4 * storyPlaces}
	other := &service{base: s.base, client: &http.Client{Transport: transport, Timeout: storyLength}}
	other.report(rt.For(key), act)
	transport.CloseIdleConnections()
	err = rt.Close()
	return read(events), err
}

// report calls the dependency from many goroutines for as long as the act takes.
func (s *service) report(g *guard.Guard, act string) {
	ctx, cancel := context.WithTimeout(context.Background(), storyLength)
	defer cancel()
	call := func(ctx context.Context) error { return s.call(ctx, "/slow") }
	var callers sync.WaitGroup
	start := func(n int) {
		for range n {
			callers.Go(func() {
				for ctx.Err() == nil {
					if err := g.DoContext(ctx, call); err == nil {
						continue
					}
					// Refused, or the call failed: a pause, as every client should make one.
					_ = waitUntil(ctx, time.Now().Add(20*time.Millisecond)) // its error is ctx.Err
				}
			})
		}
	}
	if act == actHang {
		start(storyPlaces)
		_ = waitUntil(ctx, time.Now().Add(2*storySlow)) // until these are late; its error is ctx.Err
		start(2 * storyPlaces)
	} else {
		start(3 * storyPlaces)
	}
	callers.Wait()
}

// read sums up what was told.
func read(events *guard.Subscription) (s Story) {
	for {
		e, err := events.Next(context.Background())
		if errors.Is(err, guard.ErrSubscriptionClosed) {
			return s
		}
		if e.Kind == guard.EventBound || e.Kind == guard.EventBoundHeld {
			_, says, _ := strings.Cut(e.String(), ": ")
			s.Bound = append(s.Bound, says)
		}
		if e.Kind == guard.EventSlow && s.Slow == "" {
			s.Slow, s.Stack = e.String(), e.Report.Stack
		}
	}
}
