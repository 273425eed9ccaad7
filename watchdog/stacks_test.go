package watchdog_test

import (
	"context"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/watchdog"
)

// The functions that calls of these tests stand in. Each says by its name whose stack it is on.

//go:noinline
func stuck(leave chan struct{}) error {
	<-leave
	return nil
}

//go:noinline
func bystander(leave chan struct{}) { <-leave }

//go:noinline
func scoped(l *watchdog.Ledger, work func()) {
	p := l.EnterScoped(key)
	defer p.Exit()
	work()
}

//go:noinline
func loose(l *watchdog.Ledger, work func(watchdog.LedgerPass)) {
	p := l.Enter(key)
	work(p)
}

// replace throws all labels of the goroutine away, as pprof.Do does with ours.
func replace() { pprof.SetGoroutineLabels(context.Background()) }

// scene runs a test in a bubble, with a ledger whose calls are slow after a second.
func scene(t *testing.T, f func(t *testing.T, s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{Ledger: watchdog.NewLedger(time.Second), leave: make(chan struct{})}
		_, s.pen = watch(t, watchdog.Config{Source: s.Ledger})
		f(t, s)
		close(s.leave)
		s.Open()
		synctest.Wait()
		if n := s.InFlight(); n != 0 {
			t.Errorf("%d calls are left", n)
		}
	})
}

type stage struct {
	*watchdog.Ledger

	pen   *pen
	leave chan struct{} // closed when the scene ends
}

// slow lets 1.5 s pass and returns what was written.
func (s *stage) slow() []watchdog.Report {
	elapse(1500 * time.Millisecond)
	return s.pen.take()
}

// do starts a call of work on a goroutine of its own.
func (s *stage) do(work func()) {
	go s.Do(key, func() error { work(); return nil })
}

func TestW1FunctionShowsItsOwnStack(t *testing.T) {
	scene(t, func(t *testing.T, s *stage) {
		for range 100 {
			go bystander(s.leave)
		}
		s.do(func() { stuck(s.leave) })
		wantStuck(t, only(t, s.slow()))
	})
}

func TestW1PassShowsItsOwnStack(t *testing.T) {
	scene(t, func(t *testing.T, s *stage) {
		for range 100 {
			go bystander(s.leave)
		}
		go scoped(s.Ledger, func() { stuck(s.leave) })
		r := only(t, s.slow())
		wantStuck(t, r)
		if !strings.Contains(strings.Join(r.Stack, "\n"), "watchdog_test.scoped ") {
			t.Errorf("the function that entered is missing: %q", r.Stack)
		}
	})
}

func TestW1LoosePassShowsItsOwnStack(t *testing.T) {
	scene(t, func(t *testing.T, s *stage) {
		go loose(s.Ledger, func(p watchdog.LedgerPass) { defer p.Exit(); stuck(s.leave) })
		wantStuck(t, only(t, s.slow()))
	})
}

// The goroutine that a report names is the one whose stack it shows.
func TestW1ReportNamesTheCall(t *testing.T) {
	scene(t, func(t *testing.T, s *stage) {
		id := make(chan string, 1)
		s.do(func() {
			var buf [64]byte
			id <- strings.Fields(string(buf[:runtime.Stack(buf[:], false)]))[1]
			stuck(s.leave)
		})
		r := only(t, s.slow())
		if len(r.Goroutines) != 1 || <-id != itoa(r.Goroutines[0]) {
			t.Errorf("goroutines %v", r.Goroutines)
		}
		if r.Key != key || r.Count != 1 || r.InFlight != 1 || r.Bound != 20_000 || r.Slow != time.Second {
			t.Errorf("%+v", r)
		}
		if r.Age < time.Second || r.Age > 1250*time.Millisecond || r.Youngest != r.Age {
			t.Errorf("ages %v to %v", r.Youngest, r.Age)
		}
	})
}

// Goroutines that are started inside of a call inherit its label.
func TestW1GoroutinesOfTheCall(t *testing.T) {
	enter := map[string]func(s *stage, work func()){
		"function": func(s *stage, work func()) { s.do(work) },
		"scoped":   func(s *stage, work func()) { go scoped(s.Ledger, work) },
		"loose": func(s *stage, work func()) {
			go loose(s.Ledger, func(p watchdog.LedgerPass) { defer p.Exit(); work() })
		},
	}
	for name, enter := range enter {
		t.Run(name+" keeps its labels", func(t *testing.T) {
			scene(t, func(t *testing.T, s *stage) {
				enter(s, func() {
					for range 3 {
						go bystander(s.leave)
					}
					stuck(s.leave)
				})
				wantStuck(t, only(t, s.slow()))
			})
		})
		t.Run(name+" replaces its labels", func(t *testing.T) {
			scene(t, func(t *testing.T, s *stage) {
				enter(s, func() {
					go bystander(s.leave)
					replace()
					stuck(s.leave)
				})
				wantNone(t, only(t, s.slow()), watchdog.NoProof)
			})
		})
		t.Run(name+" in pprof.Do", func(t *testing.T) {
			scene(t, func(t *testing.T, s *stage) {
				enter(s, func() {
					pprof.Do(context.Background(), pprof.Labels("a", "b"), func(context.Context) { stuck(s.leave) })
				})
				wantNone(t, only(t, s.slow()), watchdog.NoLabel)
			})
		})
		t.Run(name+" after pprof.Do", func(t *testing.T) {
			scene(t, func(t *testing.T, s *stage) {
				enter(s, func() {
					pprof.Do(context.Background(), pprof.Labels("a", "b"), func(context.Context) {})
					stuck(s.leave)
				})
				wantNone(t, only(t, s.slow()), watchdog.NoLabel)
			})
		})
	}
}

// A goroutine that a call left behind wears the label of one that enters again later.
func TestW1GoroutinesOfAnEarlierCall(t *testing.T) {
	for _, replaces := range []bool{false, true} {
		scene(t, func(t *testing.T, s *stage) {
			s.do(func() { go bystander(s.leave) })
			go scoped(s.Ledger, func() { go bystander(s.leave) })
			synctest.Wait()
			s.do(func() {
				if replaces {
					replace()
				}
				stuck(s.leave)
			})
			r := only(t, s.slow())
			if replaces {
				wantNone(t, r, r.NoStack)
			} else {
				wantStuck(t, r)
			}
		})
	}
}

// A goroutine of the call runs the very function that entered, and is in no call itself.
func TestW1SameFunctionWithoutACall(t *testing.T) {
	for _, replaces := range []bool{false, true} {
		scene(t, func(t *testing.T, s *stage) {
			maybe := func(enter bool, work func()) {
				if enter {
					p := s.EnterScoped(key)
					defer p.Exit()
				}
				work()
			}
			go maybe(true, func() {
				go maybe(false, func() { bystander(s.leave) })
				if replaces {
					replace()
				}
				stuck(s.leave)
			})
			wantNone(t, only(t, s.slow()), watchdog.NoProof)
		})
	}
}

// Others wait to get into the function's call, some of them started by the call.
func TestW1OthersWaitInTheSameFunction(t *testing.T) {
	scene(t, func(t *testing.T, s *stage) {
		go scoped(s.Ledger, func() {
			s.Shut()
			go scoped(s.Ledger, func() {})
			go func() {
				replace()
				scoped(s.Ledger, func() {})
			}()
			stuck(s.leave)
		})
		wantStuck(t, only(t, s.slow()))
		s.Open()
	})
	scene(t, func(t *testing.T, s *stage) {
		go scoped(s.Ledger, func() { stuck(s.leave) })
		synctest.Wait()
		s.Shut()
		for range 5 {
			go scoped(s.Ledger, func() {})
		}
		wantStuck(t, only(t, s.slow()))
		s.Open()
	})
}

// Many calls of one function at once, each by its own stack.
func TestW1ManyPassesOfOneFunction(t *testing.T) {
	scene(t, func(t *testing.T, s *stage) {
		for range 50 {
			go scoped(s.Ledger, func() { stuck(s.leave) })
			s.do(func() { stuck(s.leave) })
		}
		total := 0
		for _, r := range s.slow() {
			wantStuck(t, r)
			total += r.Count
		}
		if total != 100 {
			t.Errorf("%d calls reported, want 100", total)
		}
	})
}

// A late call that waits inside another one is shown too: they are one goroutine's.
func TestW1NestedCalls(t *testing.T) {
	scene(t, func(t *testing.T, s *stage) {
		s.do(func() {
			s.Do("inner", func() error { return stuck(s.leave) })
		})
		list := s.slow()
		if len(list) != 2 {
			t.Fatalf("%d reports, want 2: %v", len(list), list)
		}
		for _, r := range list {
			wantStuck(t, r)
		}
	})
	scene(t, func(t *testing.T, s *stage) {
		go scoped(s.Ledger, func() {
			scopedInner(s.Ledger, func() { stuck(s.leave) })
		})
		list := s.slow()
		if len(list) != 2 {
			t.Fatalf("%d reports, want 2: %v", len(list), list)
		}
		for _, r := range list {
			wantStuck(t, r)
		}
	})
}

//go:noinline
func scopedInner(l *watchdog.Ledger, work func()) {
	p := l.EnterScoped("inner")
	defer p.Exit()
	work()
}

// A loose pass whose goroutine entered another call since is not shown where it is now: its work may be elsewhere.
func TestW1LoosePassesOfALoop(t *testing.T) {
	scene(t, func(t *testing.T, s *stage) {
		go func() {
			for range 3 {
				p := s.Enter(key)
				go func() {
					defer p.Exit()
					bystander(s.leave)
				}()
			}
			stuck(s.leave)
		}()
		for _, r := range s.slow() {
			for _, line := range r.Stack {
				if strings.Contains(line, "bystander") {
					t.Errorf("another goroutine's stack: %q", r.Stack)
				}
			}
		}
	})
}

// The function that entered has returned: nothing on the stack says whose it is.
func TestW1FunctionThatEnteredReturned(t *testing.T) {
	scene(t, func(t *testing.T, s *stage) {
		go func() {
			var pass watchdog.LedgerPass
			loose(s.Ledger, func(p watchdog.LedgerPass) { pass = p })
			defer pass.Exit()
			stuck(s.leave)
		}()
		wantNone(t, only(t, s.slow()), watchdog.NoProof)
	})
}

// The goroutine that entered is gone, the pass ends on one that it started.
func TestW1ExitElsewhere(t *testing.T) {
	scene(t, func(t *testing.T, s *stage) {
		go loose(s.Ledger, func(p watchdog.LedgerPass) {
			go func() {
				defer p.Exit()
				bystander(s.leave)
			}()
		})
		r := only(t, s.slow())
		wantNone(t, r, watchdog.NoProof)
	})
}

// A pass that ended elsewhere, or was lost, leaves its label on the goroutine that entered, which says nothing wrong.
func TestW1StaleLabel(t *testing.T) {
	for name, end := range map[string]func(watchdog.LedgerPass){
		"exit elsewhere": func(p watchdog.LedgerPass) {
			done := make(chan struct{})
			go func() { p.Exit(); close(done) }()
			<-done
		},
		"lost": func(p watchdog.LedgerPass) { p.Lose() },
	} {
		for _, replaces := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				scene(t, func(t *testing.T, s *stage) {
					go loose(s.Ledger, func(p watchdog.LedgerPass) {
						end(p)
						bystander(s.leave)
					})
					synctest.Wait()
					go loose(s.Ledger, func(p watchdog.LedgerPass) { // has the same place
						defer p.Exit()
						if replaces {
							replace()
						}
						stuck(s.leave)
					})
					r := only(t, s.slow())
					if replaces {
						wantNone(t, r, watchdog.NoLabel)
					} else {
						wantStuck(t, r)
					}
				})
			})
		}
	}
}

// During a panic deferred functions run under frames of calls that are over.
func TestW1Panic(t *testing.T) {
	scene(t, func(t *testing.T, s *stage) { // the call's own
		s.do(func() {
			defer func() { _ = recover() }()
			defer stuck(s.leave)
			panic("no")
		})
		wantStuck(t, only(t, s.slow()))
	})
	scene(t, func(t *testing.T, s *stage) { // another goroutine's, which inherited the label
		s.do(func() {
			go func() {
				defer func() { _ = recover() }()
				defer bystander(s.leave)
				s.Do("other", func() error { panic("no") })
			}()
			replace()
			stuck(s.leave)
		})
		wantNone(t, only(t, s.slow()), watchdog.NoLabel) // the badge was taken off when the other call was over
	})
	scene(t, func(t *testing.T, s *stage) { // a call from a deferred function
		s.do(func() {
			defer func() { _ = recover() }()
			defer s.Do("inner", func() error { return stuck(s.leave) })
			panic("no")
		})
		for _, r := range s.slow() {
			wantStuck(t, r)
		}
	})
}

func deep(n int, leave chan struct{}) {
	if n == 0 {
		stuck(leave)
		return
	}
	deep(n-1, leave)
	runtime.KeepAlive(n)
}

func TestW1DeepStacks(t *testing.T) {
	scene(t, func(t *testing.T, s *stage) {
		s.do(func() { deep(200, s.leave) })
		wantNone(t, only(t, s.slow()), watchdog.TooDeep)
	})
	scene(t, func(t *testing.T, s *stage) {
		s.do(func() { deep(100, s.leave) })
		r := only(t, s.slow())
		wantStuck(t, r)
		if n := len(r.Stack); n != 33 || !strings.HasPrefix(r.Stack[32], "... ") || !strings.HasSuffix(r.Stack[32], " more frames") {
			t.Errorf("%d lines, the last is %q", n, r.Stack[n-1])
		}
	})
	scene(t, func(t *testing.T, s *stage) { // a deep stack of somebody's might be that of a pass
		go deep(200, s.leave)
		go scoped(s.Ledger, func() { stuck(s.leave) })
		wantNone(t, only(t, s.slow()), watchdog.NoProof)
	})
}
