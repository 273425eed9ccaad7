package breaker

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sony/gobreaker/v2"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errWork = errors.New("work failed")

func fine() error   { return nil }
func broken() error { return errWork }

func mustNew(t testing.TB, cfg Config) *Breaker {
	t.Helper()
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// elapse lets time pass; only inside a bubble.
func elapse(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func wantState(t testing.TB, b *Breaker, want State) {
	t.Helper()
	if got := b.Snapshot().State; got != want {
		t.Errorf("the breaker is %v, want %v", got, want)
	}
}

// opened returns a breaker that two failures have opened, and that opens for a second.
func opened(t testing.TB, cfg Config) *Breaker {
	t.Helper()
	cfg.Min, cfg.Open = 2, time.Second
	b := mustNew(t, cfg)
	for range 2 {
		if err := b.Do(broken); !errors.Is(err, errWork) {
			t.Fatal(err)
		}
	}
	wantState(t, b, Open)
	return b
}

// alone is gobreaker with the settings of opened, opened too.
func alone() *gobreaker.CircuitBreaker[struct{}] {
	cb := gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests: 1, Timeout: time.Second,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.TotalFailures >= 2 },
	})
	for range 2 {
		_, _ = cb.Execute(failed)
	}
	return cb
}

// half returns a breaker in half-open with one probe, and gobreaker in the same state.
func half(t testing.TB, cfg Config) (*Breaker, *gobreaker.CircuitBreaker[struct{}]) {
	t.Helper()
	cfg.Probes = 1
	b, cb := opened(t, cfg), alone()
	elapse(time.Second + time.Millisecond)
	return b, cb
}
