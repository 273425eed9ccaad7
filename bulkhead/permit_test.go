package bulkhead

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// TestB2AnEntryLeavesOnce, whoever gives it back, how often, when and where.
func TestB2AnEntryLeavesOnce(t *testing.T) {
	for _, weight := range []int{1, 3} {
		for _, tt := range []struct {
			name string
			do   func(t *testing.T, b *Bulkhead, p Permit)
		}{
			{"twice", func(t *testing.T, b *Bulkhead, p Permit) { exits(t, p, true, false, false) }},
			{"by a copy", func(t *testing.T, b *Bulkhead, p Permit) {
				q := p
				exits(t, q, true)
				exits(t, p, false)
			}},
			{"on another goroutine", func(t *testing.T, b *Bulkhead, p Permit) {
				onGoroutine(func() { exits(t, p, true) })
				exits(t, p, false)
			}},
			{"late, when its slot is somebody else's", func(t *testing.T, b *Bulkhead, p Permit) {
				exits(t, p, true)
				next := enterN(t, b, weight)
				for next.token != p.token {
					next.Exit()
					next = enterN(t, b, weight)
				}
				exits(t, p, false)
				check(t, b, weight, 0, 0)
				exits(t, next, true, false)
			}},
			{"late, after thousands of others", func(t *testing.T, b *Bulkhead, p Permit) {
				exits(t, p, true)
				for range 5000 {
					enterN(t, b, weight).Exit()
				}
				last := enterN(t, b, weight)
				exits(t, p, false)
				check(t, b, weight, 0, 0)
				exits(t, last, true)
			}},
			{"with a tag", func(t *testing.T, b *Bulkhead, p Permit) {
				q := p
				q.SetTag(3)
				exits(t, q, true)
				exits(t, p, false)
			}},
		} {
			t.Run(fmt.Sprintf("%s, weight %d", tt.name, weight), func(t *testing.T) {
				b := mustNew(t, Config{Limit: 3})
				tt.do(t, b, enterN(t, b, weight))
				check(t, b, 0, 0, 0)
				b = mustNew(t, Config{Limit: 3}) // the same for a scoped permit
				tk, out := b.TakeSlow(context.Background(), &Demand{Weight: weight, Scoped: true})
				if !out.Admitted() {
					t.Fatal(out)
				}
				if tt.name[:4] != "late" { // these enter on the same goroutine again
					tt.do(t, b, b.Hold(tk, Site{}, false))
					check(t, b, 0, 0, 0)
				}
			})
		}
	}
}

func exits(t *testing.T, p Permit, want ...bool) {
	t.Helper()
	for i, w := range want {
		if got := p.Exit(); got != w {
			t.Fatalf("Exit number %d reports %v, want %v", i+1, got, w)
		}
	}
}

// TestB2OneOfManyExitsCounts: all at the same time.
func TestB2OneOfManyExitsCounts(t *testing.T) {
	b := mustNew(t, Config{Limit: 2})
	for range 2_000 {
		p := enter(t, b)
		var first atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if p.Exit() {
					first.Add(1)
				}
			})
		}
		wg.Wait()
		if first.Load() != 1 {
			t.Fatalf("%d of 4 Exits report to be the first", first.Load())
		}
	}
	check(t, b, 0, 0, 0)
}

// TestB2LatePinPinsNobodyElse, and takes nobody else's pin away.
func TestB2LatePinPinsNobodyElse(t *testing.T) {
	b := mustNew(t, Config{Limit: 1})
	gone := enter(t, b)
	gone.Exit()
	gone.Pin()
	p := enter(t, b)
	gone.Pin()
	if e := b.Entries(); len(e) != 1 || e[0].Pinned {
		t.Errorf("entries after a late Pin: %+v", e)
	}
	p.Pin()
	gone.Pin()
	if e := b.Entries(); len(e) != 1 || !e[0].Pinned {
		t.Errorf("a late Pin took the pin of another entry away: %+v", e)
	}
	p.Exit()
	if enter(t, b); b.Entries()[0].Pinned {
		t.Error("a pin outlives its entry")
	}
}

func TestZeroPermitAndTicket(t *testing.T) {
	b := mustNew(t, Config{Limit: 1})
	var p Permit
	p.Pin()
	if p.Exit() || p.Owner() != nil || p.Age() != 0 || p.Ticket() != (Ticket{}) {
		t.Error("a zero Permit does something")
	}
	if b.Give(Ticket{}) || (Ticket{}).Held() || b.Hold(Ticket{}, Site{}, false) != (Permit{}) {
		t.Error("a zero Ticket does something")
	}
	check(t, b, 0, 0, 0)
}

func TestPermitKeepsATagAndAnOwner(t *testing.T) {
	b := mustNew(t, Config{Limit: 4, Owner: "the bulkhead's"})
	var own any = "the entry's"
	for _, tt := range []struct {
		demand Demand
		want   any
	}{
		{Demand{Weight: 1}, "the bulkhead's"},
		{Demand{Weight: 2}, "the bulkhead's"},
		{Demand{Weight: 1, Owner: &own}, "the entry's"},
		{Demand{Weight: 2, Owner: &own}, "the entry's"},
		{Demand{Weight: 2}, "the bulkhead's"}, // in a slot that knew another one
	} {
		tk, out := b.TakeSlow(context.Background(), &tt.demand)
		if !out.Admitted() {
			t.Fatal(out)
		}
		p := b.Hold(tk, Site{}, false)
		for tag := range uint8(4) {
			if p.SetTag(tag); p.Tag() != tag || p.Owner() != tt.want {
				t.Errorf("%+v: tag %d, owner %v; want %d, %v", tt.demand, p.Tag(), p.Owner(), tag, tt.want)
			}
		}
		if e := b.Entries(); len(e) != 1 || e[0].Owner != tt.want || e[0].Weight != tt.demand.Weight {
			t.Errorf("%+v: entries %+v", tt.demand, e)
		}
		tk = p.Ticket()
		p.Exit()
		if !tk.Held() || tk.Hash() != p.Ticket().Hash() {
			t.Error("a permit's ticket changes with Exit")
		}
	}
}
