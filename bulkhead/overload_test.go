package bulkhead

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestB6AllowanceAndInterval(t *testing.T) {
	for _, tt := range []struct{ service, allowance, interval time.Duration }{
		{0, 50 * ms, 500 * ms}, // not known yet
		{1, 5 * ms, 100 * ms},
		{2 * ms, 5 * ms, 100 * ms},
		{2500 * time.Microsecond, 5 * ms, 100 * ms},
		{5 * ms, 10 * ms, 100 * ms},
		{6 * ms, 12 * ms, 120 * ms},
		{25 * ms, 50 * ms, 500 * ms},
		{time.Hour, 50 * ms, 500 * ms},
	} {
		if a, i := allowance(int64(tt.service)), interval(int64(tt.service)); a != int64(tt.allowance) || i != int64(tt.interval) {
			t.Errorf("service %v: allowance %v, interval %v; want %v, %v", tt.service, time.Duration(a), time.Duration(i), tt.allowance, tt.interval)
		}
	}
}

// TestB6StandingOverload: a burst is served in order; when the queue stands, the newest are served and the old refused; when it
// is over, order is back.
func TestB6StandingOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 1, Wait: time.Second, Queue: 1000})
		const service = 10 * ms // allowance 20 ms, interval 200 ms
		var mu sync.Mutex
		var served []int
		var waited, refused []time.Duration
		load := func(calls int, every time.Duration) {
			for i := range calls {
				go func() {
					began := time.Now()
					p, err := b.Enter(context.Background())
					mu.Lock()
					if err != nil {
						refused = append(refused, time.Since(began))
					} else {
						served, waited = append(served, i), append(waited, time.Since(began))
					}
					mu.Unlock()
					if err == nil {
						<-time.After(service)
						p.Exit()
					}
				}()
				pass(every)
			}
		}
		burst := func(name string) {
			t.Helper()
			mu.Lock()
			served, refused = nil, nil
			mu.Unlock()
			load(5, ms)
			pass(100 * ms)
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(served, []int{0, 1, 2, 3, 4}) || len(refused) != 0 {
				t.Fatalf("%s is served as %v, refused %v", name, served, refused)
			}
			served, waited = nil, nil
		}
		burst("a burst")

		load(400, 5*ms+1) // two seconds at twice the capacity
		mu.Lock()
		b.mu.Lock()
		standing := b.room.standing
		b.mu.Unlock()
		if !standing {
			t.Error("no standing overload after two seconds")
		}
		if n := len(served); n < 195 || n > 202 {
			t.Errorf("%d served in two seconds, the capacity is 200", n)
		}
		if last := served[len(served)-1]; last < 395 {
			t.Errorf("at the end call %d of 400 is served", last)
		}
		if d := slices.Max(waited[len(waited)/2:]); d > 10*ms {
			t.Errorf("once overload stands a call waits %v, and there is always a newer one after 5ms", d)
		}
		for _, d := range refused[len(refused)/2:] {
			if d < 20*ms || d > 31*ms {
				t.Errorf("refused after %v, want the allowance of 20ms and the time until somebody looks", d)
			}
		}
		mu.Unlock()

		pass(2 * time.Second)
		check(t, b, 0, 0, 0)
		burst("after the overload a burst")
	})
}

// TestB6OverloadEnds in a room that is never empty, when nobody had to be refused for an interval: order is back.
func TestB6OverloadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 1, Wait: time.Minute, Queue: 10})
		p := enter(t, b)
		calls := []*call{enterLater(t, b, 1, 0)}
		pass(30 * ms) // the service time: the allowance is 50 ms
		b.mu.Lock()
		b.room.standing, b.room.calm = true, now()
		b.mu.Unlock()
		served := func() (first bool) {
			t.Helper()
			calls = append(calls, enterLater(t, b, 1, 0))
			synctest.Wait()
			p.Exit()
			synctest.Wait()
			i := 0
			if calls[1].in() {
				i = 1
			}
			if calls[i].in() == calls[1-i].in() {
				t.Fatal("both are in, or none")
			}
			p, calls = calls[i].permit, append(calls[:i:i], calls[i+1:]...)
			return i == 0
		}
		if served() {
			t.Error("while overload stands the oldest is first")
		}
		for range 120 { // nobody waits longer than 35 ms
			if pass(5 * ms); calls[0].done.Load() {
				t.Fatalf("the test wants a room without refusals: %v", calls[0].err)
			}
			next := enterLater(t, b, 1, 0)
			synctest.Wait()
			calls[0].cancel()
			synctest.Wait()
			calls = []*call{next}
		}
		if !served() {
			t.Error("an interval after the last refusal the newest is still first")
		}
		b.Close()
	})
}

// TestB6OnlyServiceIsMeasured: neither nested calls, nor places that were granted and not used, pass for quick service.
func TestB6OnlyServiceIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 1, Wait: time.Minute, Queue: 10})
		p := enter(t, b)
		for range 20 {
			c := enterLater(t, b, 1, 0)
			last := enterLater(t, b, 1, 3)
			pass(10 * ms)
			c.cancel()
			p.Exit()
			synctest.Wait()
			p = last.permit
		}
		if s := time.Duration(b.service.Load()); s < 9*ms || s > 11*ms {
			t.Errorf("the mean service time is %v, want 10ms", s)
		}
	})
}
