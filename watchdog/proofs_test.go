package watchdog_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/watchdog"
)

// Each of these builds the one situation in which a proof would fail without one of its conditions: the right goroutine wears something
// else, and another one looks like it.

// sometimes enters only if it is told to, after it has done something before.
//
//go:noinline
func sometimes(l *watchdog.Ledger, enter bool, before, work func()) {
	before()
	if enter {
		p := l.EnterScoped(key)
		defer p.Exit()
	}
	work()
}

// atTimes calls sometimes, always by the same statement.
//
//go:noinline
func atTimes(l *watchdog.Ledger, enter bool, before, work func()) {
	sometimes(l, enter, before, work)
}

// begin returns the pass that it took, after it has done something before.
//
//go:noinline
func begin(l *watchdog.Ledger, before func()) watchdog.LedgerPass {
	before()
	return l.Enter(key)
}

// proof runs f in a bubble, where every call is late, and ends what stands still after it.
func proof(t *testing.T, f func(l *watchdog.Ledger, leave chan struct{})) {
	t.Helper()
	watchdog.NeedsBadges(t)
	synctest.Test(t, func(*testing.T) {
		l, leave := watchdog.NewLedger(time.Nanosecond), make(chan struct{})
		f(l, leave)
		close(leave)
		synctest.Wait()
	})
}

// wantSilence checks that no call of the key is shown with a stack.
func wantSilence(t *testing.T, list []watchdog.Shown) {
	t.Helper()
	found := false
	for _, s := range list {
		if s.Key != key {
			continue
		}
		found = true
		if s.NoStack == "" {
			t.Errorf("shown: %q", s.Stack)
		}
	}
	if !found {
		t.Error("the call is not there")
	}
}

func nop() {}

// The goroutine of the call wears the label of another pass of its own, which ended elsewhere and whose place somebody else has.
func TestProofStrayLabel(t *testing.T) {
	for name, end := range map[string]func(watchdog.LedgerPass){
		"exit elsewhere": func(p watchdog.LedgerPass) {
			done := make(chan struct{})
			go func() { p.Exit(); close(done) }()
			<-done
		},
		"lost": func(p watchdog.LedgerPass) { p.Lose() },
	} {
		t.Run(name, func(t *testing.T) {
			proof(t, func(l *watchdog.Ledger, leave chan struct{}) {
				go atTimes(l, true, nop, func() {
					go atTimes(l, false, nop, func() { bystander(leave) })
					// The first one's label is renewed when its place is taken again, the second one's is not before a dump.
					for range 2 {
						end(l.Enter("other"))
					}
					stuck(leave)
				})
				synctest.Wait()
				go loose(l, func(p watchdog.LedgerPass) { defer p.Exit(); bystander(leave) })
				elapse(time.Millisecond)
				for _, s := range watchdog.Dump(l) {
					if s.Scoped && s.NoStack == "" {
						t.Errorf("shown: %q", s.Stack)
					}
				}
			})
		})
	}
}

// The goroutine of the call wears the label of a function's call that is over, as a pass that was taken in there put it back.
func TestProofLabelOfADeadCall(t *testing.T) {
	proof(t, func(l *watchdog.Ledger, leave chan struct{}) {
		go atTimes(l, true, nop, func() {
			go atTimes(l, false, nop, func() { bystander(leave) })
			var pass watchdog.LedgerPass
			l.Do("inner", func() error { pass = l.Enter("inner pass"); return nil })
			pass.Exit()
			stuck(leave)
		})
		synctest.Wait()
		for range 2 { // they take both places
			go l.Do("another", func() error { bystander(leave); return nil })
		}
		elapse(time.Millisecond)
		wantSilence(t, watchdog.Dump(l))
	})
}

// The function that entered has returned its pass; a goroutine of the call is in that function, before it enters.
func TestProofFunctionCalledFromElsewhere(t *testing.T) {
	for _, gone := range []bool{false, true} {
		proof(t, func(l *watchdog.Ledger, leave chan struct{}) {
			go func() {
				p := begin(l, nop)
				go func() { begin(l, func() { <-leave }).Exit() }()
				if gone {
					go func() { <-leave; p.Exit() }()
					return
				}
				defer p.Exit()
				stuck(leave)
			}()
			elapse(time.Millisecond)
			wantSilence(t, watchdog.Dump(l))
		})
	}
}

// A pass that was handed on is not shown by what its first goroutine does now.
func TestProofPassHandedOn(t *testing.T) {
	proof(t, func(l *watchdog.Ledger, leave chan struct{}) {
		go func() {
			p := l.Enter(key)
			go func() { defer p.Exit(); <-leave }()
			l.Do("inner", func() error { return stuck(leave) })
		}()
		elapse(time.Millisecond)
		wantSilence(t, watchdog.Dump(l))
	})
}
