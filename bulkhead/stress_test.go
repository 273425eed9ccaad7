package bulkhead

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The stress test's bulkhead. Every setting that it changes to has the same ceiling, so that the ceiling holds throughout.
const (
	stressCeiling = 512
	stressWorkers = 256
	stressStale   = 10 * ms
)

var stressConfigs = []Config{
	{Limit: 128, Expand: 4, Stale: stressStale, Wait: 2 * ms, Queue: 64},
	{Limit: 256, Expand: 2, Stale: stressStale, Wait: ms, Queue: 200},
	{Limit: 512, Expand: 1},
}

// stress is what all workers share.
type stress struct {
	b         *Bulkhead
	t         *testing.T
	running   atomic.Int64 // places of calls that are admitted and have not begun to leave
	peak      atomic.Int64
	forgotten atomic.Uint64
	reported  atomic.Uint64
	elsewhere chan func(*worker)
	resizing  sync.Mutex
}

// worker is a goroutine with counters of its own: shared ones would make the race detector the bottleneck.
type worker struct {
	*stress
	admitted, refused, left uint64
}

// entered follows an admission, and running is reduced before a departure: it is never above what the bulkhead counts.
func (s *worker) entered(weight int) {
	s.admitted++
	r := s.running.Add(int64(weight))
	if r > stressCeiling {
		s.t.Errorf("%d run at once, the ceiling is %d", r, stressCeiling)
	}
	if r > s.peak.Load() {
		s.peak.Store(r)
	}
}

func (s *worker) exit(p Permit, weight int) {
	s.running.Add(-int64(weight))
	if !p.Exit() {
		s.t.Error("the only Exit of a permit does not count")
	}
	s.left++
}

// do is one scoped call, as guard.Do makes it.
func (s *worker) do(f func()) {
	tk, out := s.b.Take()
	if out == Unsure {
		tk, out = s.b.TakeSlow(context.Background(), &Demand{Weight: 1, Scoped: true})
	}
	switch out {
	case Taken, TakenLate:
		s.entered(1)
		defer func() {
			s.running.Add(-1)
			if !s.b.Give(tk) || s.b.Give(tk) {
				s.t.Error("a scoped call does not leave exactly once")
			}
			s.left++
		}()
		f()
	case Nested:
		f()
	default:
		s.refused++
	}
}

func (s *worker) enter(ctx context.Context, weight, level int) (Permit, bool) {
	var p Permit
	var err error
	if weight == 1 && level == 0 {
		p, err = s.b.Enter(ctx)
	} else {
		p, err = s.b.EnterN(ctx, weight, level)
	}
	if err != nil {
		if !errors.Is(err, ErrFull) && ctx.Err() == nil {
			s.t.Errorf("refused with %v", err)
		}
		s.refused++
		return p, false
	}
	s.entered(weight)
	return p, true
}

// work makes n calls, one after the other.
func (s *worker) work(n int, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 7))
	type holding struct {
		permit Permit
		weight int
		until  int
	}
	var held []holding
	for i := range n {
		for len(held) > 0 && held[0].until <= i {
			s.exit(held[0].permit, held[0].weight)
			held = held[1:]
		}
		if i%2000 == int(seed)%2000 {
			s.resize(random)
		}
		s.call(random, func(p Permit, weight int) {
			held = append(held, holding{p, weight, i + 30 + len(held)})
		})
	}
	for _, h := range held {
		s.exit(h.permit, h.weight)
	}
}

// call makes one call of a random kind. hold keeps its permit for a while, so that it grows stale.
func (s *worker) call(random *rand.Rand, hold func(Permit, int)) {
	background := context.Background()
	level, weight := random.IntN(Levels), 2+random.IntN(5)
	switch kind := random.IntN(100); {
	case kind < 30: // returns, or returns an error, which is the same here
		s.do(func() {})
	case kind < 35: // calls itself
		s.do(func() { s.do(func() {}) })
	case kind < 38:
		func() {
			defer func() { _ = recover() }() // its own panic
			s.do(func() { panic("the call's own") })
		}()
	case kind < 40: // on another goroutine, which it ends
		var wg sync.WaitGroup
		wg.Go(func() { s.do(runtime.Goexit) })
		wg.Wait()
	case kind < 60:
		if p, ok := s.enter(background, 1, 0); ok {
			s.exit(p, 1)
		}
	case kind < 65:
		if p, ok := s.enter(background, 1, level); ok {
			q := p
			s.exit(p, 1)
			if p.Exit() || q.Exit() {
				s.t.Error("a second Exit counts")
			}
			q.Pin()
		}
	case kind < 70:
		if p, ok := s.enter(background, 1, level); ok {
			s.elsewhere <- func(other *worker) { other.exit(p, 1) }
		}
	case kind < 75:
		ctx, cancel := context.WithCancel(background)
		s.elsewhere <- func(*worker) { cancel() }
		if p, ok := s.enter(ctx, 1+weight%2, level); ok {
			s.exit(p, 1+weight%2)
		}
	case kind < 78:
		ctx, cancel := context.WithTimeout(background, time.Duration(random.IntN(500))*time.Microsecond)
		if p, ok := s.enter(ctx, 1, level); ok {
			s.exit(p, 1)
		}
		cancel()
	case kind < 97:
		if p, ok := s.enter(background, weight, level); ok {
			s.exit(p, weight)
		}
	case kind < 99: // kept until it is stale
		weight = max(1, weight-3)
		if p, ok := s.enter(background, weight, level); ok {
			if level == 0 {
				p.Pin()
			}
			hold(p, weight)
		}
	default:
		if random.IntN(4) == 0 {
			s.forget(weight, level)
		} else {
			s.forget(1, level)
		}
	}
}

// forget is a call whose Exit is forgotten.
//
//go:noinline
func (s *worker) forget(weight, level int) {
	if _, ok := s.enter(context.Background(), weight, level); !ok {
		return
	}
	s.running.Add(-int64(weight))
	if s.forgotten.Add(1)%64 == 0 {
		runtime.GC()
	}
}

// resize changes the settings or the bound, and looks at what must hold.
func (s *worker) resize(random *rand.Rand) {
	list, dropped := s.b.Reports()
	s.reported.Add(uint64(len(list)) + dropped)
	for _, r := range list {
		if r.Kind != Lost && r.Kind != Evicted || r.Goroutine == 0 || r.Weight < 1 || r.Weight > 6 || r.Age < 0 {
			s.t.Errorf("report %+v", r)
		}
	}
	if x := s.b.Snapshot(); x.InFlight+x.Detached > stressCeiling || x.InFlight < 0 || x.Detached < 0 {
		s.t.Errorf("impossible: %+v", x)
	}
	if !s.resizing.TryLock() {
		return
	}
	defer s.resizing.Unlock()
	if random.IntN(4) == 0 {
		if err := s.b.Configure(stressConfigs[random.IntN(len(stressConfigs))]); err != nil {
			s.t.Error(err)
		}
		return
	}
	n := 48 + random.IntN(stressCeiling-48)
	s.b.SetBound(n)
	// From here on what is in flight above the bound only falls.
	last := s.b.InFlight()
	for range 50 {
		now := s.b.InFlight()
		if now > n && now > last {
			s.t.Errorf("in flight rises from %d to %d, the bound is %d", last, now, n)
		}
		last = now
	}
}

// TestStress: two million calls from long-lived goroutines that end in every way a call can end, one in a hundred without giving its
// place back. B1, B2 and B4 hold throughout, and at the end every place is where it belongs.
func TestStress(t *testing.T) {
	calls := 2_000_000
	if testing.Short() {
		calls = 100_000
	}
	s := &stress{b: mustNew(t, stressConfigs[0]), t: t, elsewhere: make(chan func(*worker), 64)}
	var all [stressWorkers + 2]worker
	var workers, others sync.WaitGroup
	began := time.Now()
	for i := range all {
		w := &all[i]
		w.stress = s
		if i < stressWorkers {
			workers.Go(func() { w.work(calls/stressWorkers, uint64(i)) })
			continue
		}
		others.Go(func() {
			for f := range s.elsewhere {
				f(w)
			}
		})
	}
	workers.Wait()
	close(s.elsewhere)
	others.Wait()
	var sum worker
	for i := range all {
		sum.admitted += all[i].admitted
		sum.refused += all[i].refused
		sum.left += all[i].left
	}

	collectUntil(t, "every forgotten permit found", lostIs(s.b, s.forgotten.Load()))
	x := s.b.Snapshot()
	t.Logf("%v for %d calls: %d admitted, %d refused, %d evicted, %d forgotten and found, at most %d at once",
		time.Since(began).Round(ms), calls, x.Admitted, sum.refused, x.Evicted, x.Lost, s.peak.Load())
	check(t, s.b, 0, 0, 0)
	if n := len(s.b.Entries()); n != 0 {
		t.Errorf("%d entries are left", n)
	}
	if x.Admitted != sum.admitted || sum.left+s.forgotten.Load() != sum.admitted {
		t.Errorf("admitted %d, by the test's count %d; left %d + forgotten %d", x.Admitted, sum.admitted, sum.left, s.forgotten.Load())
	}
	list, dropped := s.b.Reports()
	if n := s.reported.Load() + uint64(len(list)) + dropped; n != x.Lost+x.Evicted {
		t.Errorf("%d reports, dropped ones included, for %d lost and %d evicted", n, x.Lost, x.Evicted)
	}
	if x.Evicted == 0 || x.Lost == 0 || sum.refused == 0 {
		t.Error("nothing evicted, lost or refused: the test shows nothing")
	}
	s.b.SetBound(stressCeiling)
	if p := enterN(t, s.b, stressCeiling); !p.Exit() { // every single place is free
		t.Error("Exit does not count")
	}
}

// TestStressSettings: bounds, settings and Close against calls and waiters. Everybody is answered, and nothing is left.
func TestStressSettings(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	for range rounds {
		b := mustNew(t, Config{Limit: 4, Expand: 4, Stale: 50 * time.Microsecond, Wait: time.Second, Queue: 40})
		var callers, setters sync.WaitGroup
		stop := make(chan struct{})
		for w := range 2 {
			setters.Go(func() {
				for i := w; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					if i%3 == 0 {
						if err := b.Configure(Config{Limit: 1 + i%5, Expand: 1 + i%4, Stale: 50 * time.Microsecond, Wait: time.Duration(i%2) * time.Second, Queue: 1 + i%40}); err != nil {
							t.Error(err)
						}
					} else {
						b.SetBound(i % 9)
					}
					runtime.Gosched()
				}
			})
		}
		for w := range 32 {
			callers.Go(func() {
				for i := range 100 {
					p, err := b.EnterN(context.Background(), 1+(w+i)%3, w%Levels)
					switch {
					case err == nil:
						if i%2 == 0 {
							runtime.Gosched()
						}
						if !p.Exit() || p.Exit() {
							t.Error("a call does not leave exactly once")
						}
					case errors.Is(err, ErrClosed):
						return
					case !errors.Is(err, ErrFull) && !errors.Is(err, ErrTooHeavy):
						t.Errorf("refused with %v", err)
					}
					if w == 0 && i == 70 {
						b.Close()
					}
				}
			})
		}
		callers.Wait()
		close(stop)
		setters.Wait()
		check(t, b, 0, 0, 0)
	}
}
