package contender

import (
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

// Goroutines that peers start at import are there before the first test. hystrix-go starts two for each command and has
// no way to end them; our two Runtimes live as long as the process.
func TestMain(m *testing.M) {
	opts := []goleak.Option{
		goleak.IgnoreCurrent(),
		goleak.IgnoreAnyFunction("github.com/afex/hystrix-go/hystrix.(*metricExchange).Monitor"),
		goleak.IgnoreAnyFunction("github.com/afex/hystrix-go/hystrix.(*poolMetrics).Monitor"),
		goleak.IgnoreAnyFunction("github.com/spillway-go/spillway/guard.(*Runtime).keepHouse"),
		goleak.IgnoreAnyFunction("github.com/spillway-go/spillway/guard.(*Runtime).writeLog"),
		goleak.IgnoreAnyFunction("github.com/spillway-go/spillway/pressure.(*Sampler).run"),
		goleak.IgnoreAnyFunction("github.com/spillway-go/spillway/watchdog.(*Watchdog).watch"),
	}
	code := m.Run()
	if err := goleak.Find(opts...); err != nil && code == 0 {
		println(err.Error())
		code = 1
	}
	os.Exit(code)
}

func TestEveryContenderDoesWhatItSays(t *testing.T) {
	for _, c := range All() {
		t.Run(c.Name, func(t *testing.T) {
			const goroutines, calls = 8, 500
			loop := c.Setup(t.Cleanup)

			var ran atomic.Int64
			body := counting(&ran)
			check := func(n, admitted int) {
				t.Helper()
				if want := c.Admits(n); admitted != want {
					t.Errorf("%d of %d calls were admitted, want %d", admitted, n, want)
				}
				want := int64(c.Admits(n))
				if c.Pair {
					want = 0
				}
				if got := ran.Swap(0); got != want {
					t.Errorf("the call ran %d times, want %d", got, want)
				}
			}

			check(calls, loop(calls, body))
			check(0, loop(0, body))

			var admitted atomic.Int64
			var wg sync.WaitGroup
			for range goroutines {
				wg.Go(func() { admitted.Add(int64(loop(calls, body))) })
			}
			wg.Wait()
			check(goroutines*calls, int(admitted.Load()))
		})
	}
}

// A bound that is never reached could be no bound at all: what claims one must refuse when it is taken. Breakers and
// the clock have none, and the shedders' refusing rows show theirs.
func TestBoundsHold(t *testing.T) {
	unbounded := map[string]bool{
		"gobreaker: Execute": true, "go-zero breaker": true, "aegis BBR": true, "go-zero shedder": true,
	}
	for _, c := range All() {
		if c.Pair || c.Refuses || unbounded[c.Name] {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			loop := c.Setup(t.Cleanup)
			bound := limit
			if c.Module == hystrixGo {
				bound = hystrixLimit
			}
			var entered, left sync.WaitGroup
			release := make(chan struct{})
			for range bound {
				entered.Add(1)
				left.Go(func() {
					loop(1, func() error { entered.Done(); <-release; return nil })
				})
			}
			entered.Wait() // hangs when fewer fit at once
			if got := loop(10, func() error { return nil }); got != 0 {
				t.Errorf("with %d calls inside, %d more were admitted", bound, got)
			}
			close(release)
			left.Wait()
			if got := loop(10, func() error { return nil }); got != 10 {
				t.Errorf("after all left, %d of 10 calls were admitted", got)
			}
		})
	}
}

func TestNamesAreUniqueAndTargetsExist(t *testing.T) {
	seen := map[string]bool{}
	refusing := false
	for _, c := range All() {
		if seen[c.Name] {
			t.Errorf("two contenders are called %q", c.Name)
		}
		seen[c.Name] = true
		if c.Does == "" {
			t.Errorf("%s does not say what it does", c.Name)
		}
		if refusing && !c.Refuses {
			t.Errorf("%s admits, but stands below one that refuses", c.Name)
		}
		refusing = c.Refuses
	}
	for _, name := range []string{
		Channel, ChannelAgain, HandleDo, KeyDo, HandleUnwatched, KeyUnwatched, Everything, EverythingFailing, EverythingOpen, FailsafeThree, HandleRefused, KeyRefused, FailsafeRun, Scoped, Loose, HandleDoCtx, HandleCall,
	} {
		if !seen[name] {
			t.Errorf("no contender is called %q", name)
		}
	}
}

// counting returns a call that counts how often it ran.
func counting(ran *atomic.Int64) func() error {
	return func() error { ran.Add(1); return nil }
}
