package bulkhead

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// late lists the calls that are late, by goroutine.
func late(b *Bulkhead, slow time.Duration) map[uint64]LateEntry {
	found := map[uint64]LateEntry{}
	b.EachLate(now(), func(any) time.Duration { return slow }, func(e LateEntry) { found[e.Goroutine] = e })
	return found
}

func TestEachLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 10, Owner: "the key"})
		leave := make(chan struct{})
		permits := make(chan Permit, 3)
		go func() {
			p, _ := b.Enter(context.Background())
			permits <- p
			<-leave
			p.Exit()
		}()
		go func() {
			tk, _ := b.Take()
			p := b.Hold(tk, Site{PC: 1, Outer: 2, Beyond: 3}, true)
			if !p.Wears() {
				t.Error("Hold's word is forgotten")
			}
			permits <- p
			<-leave
			p.Exit()
		}()
		go func() {
			p, _ := b.Enter(context.Background())
			p.Pin()
			permits <- p
			<-leave
			p.Exit()
		}()
		pass(time.Second)
		if n := len(late(b, time.Second+time.Millisecond)); n != 0 {
			t.Errorf("%d late before their time", n)
		}
		list := late(b, time.Second)
		if len(list) != 2 {
			t.Fatalf("late are %v, want two, without the pinned one", list)
		}
		for _, e := range list {
			if e.Owner != "the key" || e.Slow != time.Second || e.Age != time.Second || !e.Place.Holds(e.Identity) {
				t.Errorf("%+v", e)
			}
			if e.Scoped != (e.Site == Site{PC: 1, Outer: 2, Beyond: 3}) {
				t.Errorf("the site is %+v", e.Site)
			}
			if f, _ := runtime.CallersFrames([]uintptr{e.Site.PC}).Next(); !e.Scoped && !strings.Contains(f.Function, "TestEachLate") {
				t.Errorf("the site is in %s", f.Function)
			}
		}
		close(leave)
		synctest.Wait()
		for _, e := range list {
			if e.Place.Holds(e.Identity) {
				t.Errorf("%+v has left", e)
			}
		}
		for range 3 {
			if p := <-permits; p.Wears() && p.Exit() {
				t.Error("given back twice")
			}
		}
		if len(late(b, 0)) != 0 {
			t.Error("somebody is late in an empty bulkhead")
		}
	})
}

// An entry without a permit does not have the site of the one that stood in its slot before.
func TestSiteIsItsOwnEntrys(t *testing.T) {
	b := mustNew(t, Config{Limit: 1})
	tk, _ := b.Take()
	b.Hold(tk, Site{PC: 1}, true).Exit()
	tk, _ = b.Take()
	for _, e := range late(b, 0) {
		if e.Site != (Site{}) {
			t.Errorf("%+v", e)
		}
	}
	b.Give(tk)
	tk, _ = b.Take()
	if b.Hold(tk, Site{}, false).Wears() {
		t.Error("it wears what another put on")
	}
	b.Give(tk)
}

// A place that is declined was never used: it is no admission, and teaches the waiting room nothing.
func TestDecline(t *testing.T) {
	var owner any = "its own"
	for name, d := range map[string]Demand{
		"scoped": {Weight: 1, Scoped: true}, "loose": {Weight: 1}, "heavy": {Weight: 3}, "heavy and scoped": {Weight: 3, Scoped: true}, "owned": {Weight: 1, Owner: &owner},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := mustNew(t, Config{Limit: 4, Wait: time.Minute})
				tk, out := b.TakeSlow(context.Background(), &d)
				if out != Taken {
					t.Fatal(out)
				}
				granted := make(chan Outcome)
				go func() {
					other, out := b.TakeSlow(context.Background(), &Demand{Weight: 4, Scoped: true})
					b.Give(other)
					granted <- out
				}()
				synctest.Wait()
				b.Decline(tk)
				if out := <-granted; out != TakenLate {
					t.Errorf("the one that waits gets %v, want a place", out)
				}
				if s := b.Snapshot(); s.Admitted != 1 || s.InFlight != 0 {
					t.Errorf("%+v", s)
				}
				if mean := b.service.Load(); mean > 1 {
					t.Errorf("the mean service time is %v", time.Duration(mean))
				}
			})
		})
	}
	b := mustNew(t, Config{Limit: 1})
	b.Decline(Ticket{})
}
