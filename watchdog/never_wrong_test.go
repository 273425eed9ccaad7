package watchdog_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/internal/goroutine"
	"github.com/spillway-go/spillway/watchdog"
)

// Every goroutine of these tests carries its own number on its stack, one frame a digit, so that a stack says whose it is. Random scripts then
// nest calls, start goroutines inside them, replace labels, panic, hand passes on and lose them, in functions that enter and functions that
// only sometimes do. Whatever they do: a stack that is shown is that of the goroutine that entered.

//go:noinline
func digit0(f func()) { f(); runtime.KeepAlive(&f) }

//go:noinline
func digit1(f func()) { f(); runtime.KeepAlive(&f) }

//go:noinline
func digit2(f func()) { f(); runtime.KeepAlive(&f) }

//go:noinline
func digit3(f func()) { f(); runtime.KeepAlive(&f) }

// signed runs f under the frames of a number, its last digit outermost.
func signed(number uint64, f func()) {
	if number == 0 {
		f()
		return
	}
	inner := func() { signed(number/4, f) }
	[]func(func()){digit0, digit1, digit2, digit3}[number%4](inner)
}

// signature is the number on a stack.
func signature(stack []string) (number uint64) {
	for _, line := range stack {
		if _, rest, ok := strings.Cut(line, "watchdog_test.digit"); ok {
			number = number*4 + uint64(rest[0]-'0')
		}
	}
	return number
}

// actor runs a random script.
type actor struct {
	*watchdog.Ledger

	rand  *rand.Rand
	leave chan struct{} // closed: end
	busy  bool          // do not block but go on until the end
	all   *sync.WaitGroup
}

// start runs a script on a goroutine of its own.
func (a *actor) start(depth int) {
	b := *a
	b.rand = rand.New(rand.NewPCG(a.rand.Uint64(), a.rand.Uint64()))
	b.all.Go(func() { signed(goroutine.ID(), func() { b.act(depth) }) })
}

func (a *actor) over() bool {
	select {
	case <-a.leave:
		return true
	default:
		return false
	}
}

// act does a few things and then stays where it is.
func (a *actor) act(depth int) {
	for range 1 + a.rand.IntN(3) {
		if depth == 0 || a.over() {
			break
		}
		a.step(depth - 1)
	}
	if a.busy {
		runtime.Gosched()
		return
	}
	<-a.leave
}

func (a *actor) step(depth int) {
	inner := func() { a.act(depth) }
	switch a.rand.IntN(14) {
	case 0, 1:
		a.Do(key, func() error { inner(); return nil })
	case 2:
		scopedOne(a, inner)
	case 3:
		scopedTwo(a, inner)
	case 4:
		maybeScoped(a, a.rand.IntN(2) == 0, inner)
	case 5:
		looseHere(a, inner)
	case 6:
		looseElsewhere(a, depth, inner)
	case 7:
		p := looseBegin(a)
		inner()
		p.Exit()
	case 8, 9:
		if !a.over() {
			a.start(depth)
		}
	case 10:
		replace()
	case 11:
		pprof.Do(context.Background(), pprof.Labels("step", strconv.Itoa(a.rand.IntN(3))), func(context.Context) { inner() })
	case 12:
		func() {
			defer func() { _ = recover() }()
			defer inner()
			a.Do(key, func() error { panic("planned") })
		}()
	case 13:
		scopedOne(a, func() {})
		a.Do(key, func() error { return nil })
	}
}

//go:noinline
func scopedOne(a *actor, work func()) {
	p := a.EnterScoped(key)
	defer p.Exit()
	work()
}

//go:noinline
func scopedTwo(a *actor, work func()) {
	p := a.EnterScoped("two")
	defer p.Exit()
	if a.rand.IntN(3) == 0 {
		replace()
	}
	work()
}

//go:noinline
func maybeScoped(a *actor, enter bool, work func()) {
	if enter {
		p := a.EnterScoped("maybe")
		defer p.Exit()
	}
	work()
}

//go:noinline
func looseHere(a *actor, work func()) {
	p := a.Enter(key)
	defer p.Exit()
	work()
}

//go:noinline
func looseElsewhere(a *actor, depth int, work func()) {
	p := a.Enter(key)
	b := *a
	b.rand = rand.New(rand.NewPCG(a.rand.Uint64(), a.rand.Uint64()))
	a.all.Go(func() {
		signed(goroutine.ID(), func() {
			defer p.Exit()
			b.act(depth)
		})
	})
	work()
}

//go:noinline
func looseBegin(a *actor) watchdog.LedgerPass { return a.Enter("begin") }

// check compares what a dump shows with the signatures, and counts what it shows and what not.
func check(t *testing.T, list []watchdog.Shown) (shown, silent int) {
	for _, s := range list {
		if s.NoStack != "" {
			silent++
			continue
		}
		shown++
		if got := signature(s.Stack); got != s.Goroutine {
			t.Errorf("a call of %q on goroutine %d (scoped %v) is shown with the stack of goroutine %d:\n%s",
				s.Key, s.Goroutine, s.Scoped, got, strings.Join(s.Stack, "\n"))
		}
	}
	return shown, silent
}

// Scripts that have come to rest.
func TestW1NeverWrongAtRest(t *testing.T) {
	watchdog.NeedsBadges(t)
	shown, silent := 0, 0
	scenes := 60
	if testing.Short() {
		scenes = 20
	}
	for seed := range scenes {
		synctest.Test(t, func(t *testing.T) {
			a := &actor{
				Ledger: watchdog.NewLedger(time.Nanosecond), leave: make(chan struct{}), all: new(sync.WaitGroup),
				rand: rand.New(rand.NewPCG(uint64(seed), 1)),
			}
			for range 12 {
				a.start(4)
			}
			synctest.Wait()
			if seed%3 == 0 {
				a.Shut() // later calls wait
			}
			for range 4 {
				a.start(4)
			}
			elapse(time.Millisecond)
			n, m := check(t, watchdog.Dump(a.Ledger))
			shown += n
			silent += m
			close(a.leave)
			a.Open()
			a.all.Wait()
		})
		if t.Failed() {
			t.Fatalf("scene %d", seed)
		}
	}
	t.Logf("%d calls shown, %d not", shown, silent)
	if shown < silent/4 {
		t.Errorf("only %d stacks shown, %d not", shown, silent)
	}
}

// Scripts that go on while dumps are taken.
func TestW1NeverWrongInMotion(t *testing.T) {
	watchdog.NeedsBadges(t)
	shown, silent := 0, 0
	dumps := 150
	if testing.Short() {
		dumps = 20
	}
	a := &actor{
		Ledger: watchdog.NewLedger(time.Nanosecond), leave: make(chan struct{}), all: new(sync.WaitGroup),
		rand: rand.New(rand.NewPCG(1, 2)), busy: true,
	}
	var drivers sync.WaitGroup
	for i := range 8 {
		b := *a
		b.rand = rand.New(rand.NewPCG(uint64(i), 3))
		b.all = new(sync.WaitGroup)
		drivers.Go(func() {
			for !b.over() {
				b.start(5)
				b.all.Wait()
			}
		})
	}
	for range dumps {
		n, m := check(t, watchdog.Dump(a.Ledger))
		shown += n
		silent += m
	}
	close(a.leave)
	drivers.Wait()
	t.Logf("%d calls shown, %d not", shown, silent)
	if shown == 0 {
		t.Error("no stack was ever shown")
	}
}
