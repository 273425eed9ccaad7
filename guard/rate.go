package guard

import (
	"context"
	"time"

	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/rate"
	"github.com/spillway-go/spillway/registry"
)

// pace is the rate limit of a key.
type pace struct {
	limiter  *rate.Limiter
	byCaller bool
}

// newPace returns the limit of a spec, nil for none.
func newPace(s registry.Rate) *pace {
	if s == (registry.Rate{}) {
		return nil
	}
	cfg := rate.Config{Algorithm: algorithmOf(s)}
	if s.By == "" {
		cfg.Keys = 1
	}
	l, err := rate.New(cfg)
	if err != nil {
		panic(err) // not reached: the registry's ranges lie within the limiter's
	}
	return &pace{l, s.By == registry.ByCaller}
}

func algorithmOf(s registry.Rate) rate.Algorithm {
	r := rate.Rate{N: int64(s.Calls), Per: s.Per}
	switch s.Algorithm {
	case registry.LeakyBucket:
		return rate.LeakyBucket{Rate: r, Queue: int64(s.Burst)}
	case registry.SlidingWindow:
		return rate.SlidingWindow{Limit: int64(s.Calls), Window: s.Per}
	case registry.FixedWindow:
		return rate.FixedWindow{Limit: int64(s.Calls), Window: s.Per}
	default:
		return rate.TokenBucket{Rate: r, Burst: int64(s.Burst)}
	}
}

// spent is what a call took of its rate, to be given back if a later stage refuses it.
type spent struct {
	pace     *pace
	caller   string
	decision rate.Decision
}

// spend takes a call's share of the rate, and in a leaky bucket waits for its turn, which must come before the end, if there is one. Otherwise it
// says why not, and when to come back.
func (p *plan) spend(ctx context.Context, end time.Time, d *bulkhead.Demand) (s spent, reason Reason, after time.Duration) {
	if p.pace == nil || d.Scoped && p.bulkhead.RunsHere() {
		return s, ReasonNone, 0
	}
	s.pace = p.pace
	if p.pace.byCaller {
		s.caller = infoFrom(ctx).caller
	}
	var err error
	s.decision, err = p.pace.limiter.Take(ctx, s.caller, 1)
	switch wait := s.decision.Wait; {
	case err != nil:
		return spent{}, reasonOf(err), 0 // the context has ended: a limit in memory has no other error
	case !s.decision.OK:
		return spent{}, ReasonRate, roundUp(s.decision.RetryAfter)
	case wait <= 0:
		return s, ReasonNone, 0
	case !end.IsZero() && wait >= time.Until(end):
		s.giveBack()
		return spent{}, ReasonRate, roundUp(wait)
	}
	in := false
	defer func() {
		if !in { // the context ended, or panicked
			s.giveBack()
		}
	}()
	turn := time.NewTimer(s.decision.Wait)
	defer turn.Stop()
	select {
	case <-turn.C:
		in = true
		return s, ReasonNone, 0
	case <-ctx.Done():
		return spent{}, reasonOf(ctx.Err()), 0
	}
}

// giveBack undoes what spend took.
func (s *spent) giveBack() {
	if s.pace != nil {
		_ = s.pace.limiter.Bucket(s.caller).GiveBack(context.Background(), s.decision) // a limit in memory has no error
	}
}
