package breaker

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func newThrottle(t testing.TB, cfg ThrottleConfig) *Throttle {
	t.Helper()
	if cfg.Random == nil {
		cfg.Random = rand.New(rand.NewPCG(1, 2)).Float64
	}
	th, err := NewThrottle(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return th
}

// traffic sends calls evenly for a while and returns how many there were, reached the other side, and were accepted.
func traffic(th *Throttle, d, gap time.Duration, level func(i int) int, accepts func() bool) (all, sent, accepted int) {
	for start := time.Now(); time.Since(start) < d; all++ {
		<-time.After(gap)
		if !th.Allow(level(all)) {
			continue
		}
		sent++
		if accepts() {
			accepted++
			th.Report(Success)
		} else {
			th.Report(Failure)
		}
	}
	return all, sent, accepted
}

func always(int) int { return 1 }

// A backend that accepts one in ten: what reaches it stays within K times what it accepts, and the probes.
func TestThrottleOfABackendThatAcceptsATenth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		tenth := func() bool { return r.IntN(10) == 0 }
		th := newThrottle(t, ThrottleConfig{})
		traffic(th, 20*time.Second, 5*time.Millisecond, always, tenth) // it settles
		all, sent, accepted := traffic(th, 60*time.Second, 5*time.Millisecond, always, tenth)
		t.Logf("of %d calls %d were sent, %d accepted", all, sent, accepted)
		// In each of six windows there are ten probes, and one call or two that the formula lets pass whatever was accepted: 1 / (requests + 1).
		if most := DefaultK*accepted + 6*(probesPerWindow+2); sent > most {
			t.Errorf("%d calls reached the backend, want at most %d", sent, most)
		}
		if sent < all/200 {
			t.Errorf("only %d of %d calls were sent", sent, all)
		}
	})
}

// After an outage of any length full traffic is back soon.
func TestThrottleAfterAnOutage(t *testing.T) {
	for _, outage := range []time.Duration{3 * time.Second, time.Minute, time.Hour} {
		for _, gap := range []time.Duration{2 * time.Millisecond, 100 * time.Millisecond} {
			if outage/gap > 100_000 {
				continue // it would take too long
			}
			synctest.Test(t, func(t *testing.T) {
				var down atomic.Bool
				up := func() bool { return !down.Load() }
				th := newThrottle(t, ThrottleConfig{})
				if all, sent, _ := traffic(th, 20*time.Second, gap, always, up); sent != all {
					t.Errorf("%d of %d calls are sent while all is well", sent, all)
				}
				down.Store(true)
				_, sent, _ := traffic(th, outage, gap, always, up)
				t.Logf("%v of outage, a call every %v: %d were sent", outage, gap, sent)
				down.Store(false)
				start := time.Now()
				for th.refuses.Load() {
					traffic(th, gap, gap, always, up)
				}
				if took := time.Since(start); took > 10*time.Second {
					t.Errorf("after %v of outage full traffic is back after %v", outage, took)
				}
				if all, sent, _ := traffic(th, 10*time.Second, gap, always, up); sent != all {
					t.Errorf("then %d of %d calls are sent", sent, all)
				}
			})
		}
	}
}

// The least critical go first, and nobody above before they are gone altogether.
func TestThrottleByCriticality(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThrottle(t, ThrottleConfig{K: 1.1})
		var sent, all [Levels]int
		r := rand.New(rand.NewPCG(5, 6))
		// The backend accepts 60 of 100 a second; of each level come 25.
		budget, second := 60, time.Now()
		for i := range 100 * 60 {
			<-time.After(10 * time.Millisecond)
			if time.Since(second) >= time.Second {
				second, budget = time.Now(), 60
			}
			level := r.IntN(Levels)
			counts := i > 100*20
			if counts {
				all[level]++
			}
			if !th.Allow(level) {
				continue
			}
			if counts {
				sent[level]++
			}
			if budget > 0 {
				budget--
				th.Report(Success)
				th.mu.Lock()
				th.row = 0 // or else it forgets now and then
				th.mu.Unlock()
			} else {
				th.Report(Failure)
			}
		}
		t.Logf("sent %v of %v, %v", sent, all, th.Snapshot())
		share := func(l int) float64 { return float64(sent[l]) / float64(all[l]) }
		if share(0) < 0.99 || share(1) < 0.9 {
			t.Errorf("critical calls are refused: %.2f, %.2f", share(0), share(1))
		}
		if share(3) > 0.2 || share(3) > share(2) {
			t.Errorf("sheddable calls are sent: %.2f, %.2f", share(2), share(3))
		}
	})
}

// Over a real server that goes down and comes back.
func TestThrottleOverHTTP(t *testing.T) {
	if testing.Short() {
		t.Skip("takes four seconds of real time")
	}
	var down atomic.Bool
	var reached atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	client := server.Client()
	defer client.CloseIdleConnections()
	th := newThrottle(t, ThrottleConfig{Window: time.Second, Random: rand.Float64})
	call := func() error {
		resp, err := client.Get(server.URL)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errWork
		}
		return nil
	}
	run := func(d time.Duration) (all, refused int64) {
		var callers sync.WaitGroup
		var calls, no atomic.Int64
		end := time.Now().Add(d)
		for range 4 {
			callers.Go(func() {
				for pace := time.NewTicker(2 * time.Millisecond); time.Now().Before(end); <-pace.C {
					calls.Add(1)
					if err := th.Do(1, call); errors.Is(err, ErrThrottled) {
						no.Add(1)
					}
				}
			})
		}
		callers.Wait()
		return calls.Load(), no.Load()
	}
	if _, refused := run(500 * time.Millisecond); refused != 0 {
		t.Errorf("%d refused while all is well", refused)
	}
	down.Store(true)
	run(time.Second)
	before := reached.Load()
	all, refused := run(time.Second)
	if sent := reached.Load() - before; sent > 4*probesPerWindow || refused < all/2 {
		t.Errorf("a second into the outage %d of %d calls reached the server, %d were refused", sent, all, refused)
	}
	down.Store(false)
	run(1500 * time.Millisecond) // one and a half windows
	if all, refused := run(500 * time.Millisecond); refused != 0 {
		t.Errorf("a window and a half after the outage %d of %d calls are refused", refused, all)
	}
}

// Many at once: nothing is lost but what is refused.
func TestThrottleStress(t *testing.T) {
	th := newThrottle(t, ThrottleConfig{Window: 100 * time.Millisecond, Random: rand.Float64})
	var callers sync.WaitGroup
	for w := range 8 {
		callers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			for range 1_000 {
				_ = th.Do(r.IntN(6)-1, func() error {
					if r.IntN(3) > 0 {
						return errWork
					}
					return nil
				})
				th.Snapshot()
			}
		})
	}
	callers.Wait()
	for range 10 { // enough for any state
		for !th.Allow(0) {
		}
		th.Report(Success)
	}
	if th.refuses.Load() {
		t.Errorf("it still refuses: %v", th.Snapshot())
	}
}
