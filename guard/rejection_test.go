package guard_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// sentinels are all errors that some refusal matches.
var sentinels = []error{
	guard.ErrRejected, bulkhead.ErrFull, bulkhead.ErrTooHeavy, context.DeadlineExceeded, context.Canceled, guard.ErrDenied,
	guard.ErrClosed, guard.ErrInvalidKey,
}

// rejections has a row for every reason; a new reason fails the test until it has one.
var rejections = map[guard.Reason]struct {
	name     string
	sentinel error
	text     string
	after    time.Duration
}{
	guard.ReasonFull:       {"full", bulkhead.ErrFull, "guard: shop.Store.Get: overload protection limit exceeded (full, limit 1)", time.Second},
	guard.ReasonTooHeavy:   {"too_heavy", bulkhead.ErrTooHeavy, "guard: shop.Store.Get: the call weighs more than the key can ever hold (too_heavy, limit 4)", 0},
	guard.ReasonDeadline:   {"deadline", context.DeadlineExceeded, "guard: shop.Store.Get: too little time remains (deadline)", 0},
	guard.ReasonCanceled:   {"canceled", context.Canceled, "guard: shop.Store.Get: the caller has gone (canceled)", 0},
	guard.ReasonDenied:     {"denied", guard.ErrDenied, "guard: shop.Store.Get: denied by a rule (denied)", 0},
	guard.ReasonRate:       {"rate", nil, "guard: shop.Store.Get: rate limit exceeded (rate)", time.Second},
	guard.ReasonQuota:      {"quota", nil, "guard: shop.Store.Get: quota exceeded (quota)", time.Second},
	guard.ReasonOverload:   {"overload", nil, "guard: shop.Store.Get: the process is overloaded (overload)", time.Second},
	guard.ReasonOpen:       {"open", nil, "guard: shop.Store.Get: the breaker is open (open)", time.Second},
	guard.ReasonThrottled:  {"throttled", nil, "guard: shop.Store.Get: throttled by the client (throttled)", time.Second},
	guard.ReasonClosed:     {"closed", guard.ErrClosed, "guard: shop.Store.Get: the runtime is closed (closed)", time.Second},
	guard.ReasonInvalidKey: {"invalid_key", guard.ErrInvalidKey, "guard: shop.Store.Get: a key is 1..256 printable bytes without spaces (invalid_key)", 0},
}

func TestRejectionOfEveryReason(t *testing.T) {
	injector := &script{}
	g := declared(t, newRuntime(t, guard.WithInjector(injector)), "shop.Store.Get", registry.Spec{Limit: 1})
	if len(guard.Reasons()) != len(rejections) {
		t.Errorf("%d reasons, %d rows in the table", len(guard.Reasons()), len(rejections))
	}
	for _, reason := range guard.Reasons() {
		want, ok := rejections[reason]
		if !ok {
			t.Errorf("no row for %v", reason)
			continue
		}
		injector.refuse = reason
		err := g.Do(nothing)
		r := rejectionOf(t, err, reason)
		if reason.String() != want.name {
			t.Errorf("it is spelled %q, want %q", reason, want.name)
		}
		if r.Key() != "shop.Store.Get" || r.Error() != want.text || r.RetryAfter() != want.after {
			t.Errorf("%v: key %q, after %v, text\n%s; want after %v, text\n%s", reason, r.Key(), r.RetryAfter(), r.Error(), want.after, want.text)
		}
		for _, sentinel := range sentinels {
			if got, want := errors.Is(err, sentinel), sentinel == guard.ErrRejected || sentinel == want.sentinel; got != want { //nolint:errorlint // tells sentinels apart
				t.Errorf("errors.Is(%v, %v) is %v", reason, sentinel, got)
			}
		}
		if errors.Is(err, nil) || errors.Is(err, errWork) {
			t.Errorf("%v matches what it is not", reason)
		}
		if again := g.Do(nothing); again != err { //nolint:errorlint // the same one
			t.Errorf("%v: a second refusal is made anew", reason)
		}
	}
	for _, r := range []guard.Reason{guard.ReasonNone, 250} {
		if got, want := r.String(), map[guard.Reason]string{0: "none", 250: "unknown"}[r]; got != want {
			t.Errorf("%d is spelled %q, want %q", r, got, want)
		}
	}
}

func TestRejectionOfAFullKey(t *testing.T) {
	rt := newRuntime(t)
	g := declared(t, rt, "shop.Store.Get", registry.Spec{Limit: 1})
	h := block(g.Do)
	defer func() { _ = h.end() }()
	err := g.Do(nothing)
	r := rejectionOf(t, err, guard.ReasonFull)
	if r.Limit() != 1 || !strings.Contains(err.Error(), "overload protection limit exceeded") {
		t.Errorf("limit %d, text %s", r.Limit(), err)
	}
	if _, err2 := g.Enter(context.Background()); err2 != err { //nolint:errorlint // the same one
		t.Error("two refusals in the same state are two errors")
	}
	// Another bound, another rejection; the old one stays what it was.
	replace(t, rt, map[registry.Key]registry.Spec{"shop.Store.Get": {Limit: 2}})
	second := block(g.Do)
	defer func() { _ = second.end() }()
	changed := rejectionOf(t, g.Do(nothing), guard.ReasonFull)
	if changed.Limit() != 2 || !strings.Contains(changed.Error(), "limit 2") {
		t.Errorf("after a new spec the limit is %d: %v", changed.Limit(), changed)
	}
	if r.Limit() != 1 || !strings.Contains(r.Error(), "limit 1") {
		t.Errorf("the old rejection changed: %v", r)
	}
	replace(t, rt, map[registry.Key]registry.Spec{"shop.Store.Get": {Limit: 1}})
	if back := rejectionOf(t, g.Do(nothing), guard.ReasonFull); back.Limit() != 1 {
		t.Errorf("the limit is %d", back.Limit())
	}
}

// A full key has a place again after about a service time: RetryAfter is its mean, rounded up to a step.
func TestRetryAfterFollowsTheServiceTime(t *testing.T) {
	steps := []time.Duration{
		100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second,
		5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute,
	}
	for _, c := range []struct{ service, after time.Duration }{
		{time.Millisecond, 100 * time.Millisecond},
		{100 * time.Millisecond, 100 * time.Millisecond},
		{101 * time.Millisecond, 200 * time.Millisecond},
		{450 * time.Millisecond, 500 * time.Millisecond},
		{3 * time.Second, 5 * time.Second},
		{59 * time.Second, time.Minute},
		{time.Hour, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := declared(t, newRuntime(t), "k", registry.Spec{Limit: 1, Stale: 24 * time.Hour})
			refused := func() *guard.Rejection {
				h := block(g.Do)
				r := rejectionOf(t, g.Do(nothing), guard.ReasonFull)
				elapse(c.service)
				_ = h.end()
				return r
			}
			if r := refused(); r.RetryAfter() != time.Second {
				t.Errorf("before anything is known: %v, want 1 s", r.RetryAfter())
			}
			first := refused()
			if first.RetryAfter() != c.after {
				t.Errorf("service %v: come back after %v, want %v", c.service, first.RetryAfter(), c.after)
			}
			for range 100 { // the service gets quick, and RetryAfter comes down step by step
				if err := g.Do(func() error { elapse(10 * time.Millisecond); return nil }); err != nil {
					t.Fatal(err)
				}
			}
			h := block(g.Do)
			r := rejectionOf(t, g.Do(nothing), guard.ReasonFull)
			if r.RetryAfter() > max(c.after/5, 100*time.Millisecond) || !slices.Contains(steps, r.RetryAfter()) {
				t.Errorf("service %v, then 100 quick calls: come back after %v", c.service, r.RetryAfter())
			}
			_ = h.end()
		})
	}
}
