package bulkhead

import (
	"strconv"
	"sync"
	"testing"
)

// slots counts the slots of all tables, and sums up the distances of busy slots from where their search began.
func slots(b *Bulkhead) (slots, entries, distance int) {
	for t := b.table.Load(); t != nil; t = t.prev {
		slots += len(t.slots)
		for i := range t.slots {
			s := &t.slots[i]
			st := s.state.Load()
			if st&kindMask == kindFree {
				continue
			}
			number := s.goroutine.Load()
			if st&scoped == 0 {
				number = st >> startBits & seqMask
			}
			entries++
			for n := range t.slots {
				if t.at(number, n) == s {
					distance += n
					break
				}
			}
		}
	}
	return slots, entries, distance
}

// TestOneGoroutineHoldsThousands: its permits spread over the table instead of standing in one row behind its home, so that each finds
// a slot within a few steps, and the table stays within four slots per entry.
func TestOneGoroutineHoldsThousands(t *testing.T) {
	b := mustNew(t, Config{Limit: 10_000})
	permits := enterAll(t, b)
	size, entries, distance := slots(b)
	if entries != 10_000 {
		t.Fatalf("%d entries, want 10000", entries)
	}
	if distance > 2*entries {
		t.Errorf("10000 entries stand %d steps from where their search began, want at most 2 each", distance)
	}
	if size > 4*entries+128 {
		t.Errorf("%d slots for 10000 entries", size)
	}
	for _, p := range permits {
		exits(t, p, true)
	}
	// Now nothing stands in the older tables. From then on the same load needs nothing new.
	for round := range 5 {
		for _, p := range enterAll(t, b) {
			p.Exit()
		}
		now, _, _ := slots(b)
		if round == 0 {
			size = now
		}
		if now != size || size > 4*10_000 {
			t.Fatalf("round %d: %d slots, before that %d", round, now, size)
		}
	}
	check(t, b, 0, 0, 0)
}

// TestManyGoroutinesHoldOneEach: scoped entries stand within a few steps of home, which is how far a refused call looks for one
// that it is nested in.
func TestManyGoroutinesHoldOneEach(t *testing.T) {
	for _, n := range []int{20, 500, 3000} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			b := mustNew(t, Config{Limit: n, Expand: 1})
			var in, out sync.WaitGroup
			leave := make(chan struct{})
			in.Add(n)
			for range n {
				out.Go(func() {
					tk, o := scopedTicket(b)
					in.Done()
					<-leave
					if !o.Admitted() || !b.Give(tk) {
						t.Errorf("a call within the limit: %v", o)
					}
				})
			}
			in.Wait()
			if got := len(b.Entries()); got != n {
				t.Errorf("%d entries, want %d", got, n)
			}
			size, entries, distance := slots(b)
			if entries != n || distance > 2*n || size > 8*n+64 {
				t.Errorf("%d entries in %d slots, %d steps from home in all", entries, size, distance)
			}
			for tab := b.table.Load(); tab != nil; tab = tab.prev {
				if r := tab.reach.Load(); r > 64 {
					t.Errorf("an entry stands %d steps from home in a table of %d", r, len(tab.slots))
				}
			}
			close(leave)
			out.Wait()
			check(t, b, 0, 0, 0)
		})
	}
}

func TestCeilPow2(t *testing.T) {
	for n, want := range map[int]int{0: 1, 1: 1, 2: 2, 3: 4, 8: 8, 9: 16, 1000: 1024, 1024: 1024} {
		if got := ceilPow2(n); got != want {
			t.Errorf("ceilPow2(%d) = %d, want %d", n, got, want)
		}
	}
}

// TestSlotIndex: each slot of a table is found in that table and in no other.
func TestSlotIndex(t *testing.T) {
	b := mustNew(t, Config{Limit: 100})
	one := b.table.Load()
	two := newTable(b, 32, one)
	for _, tab := range []*table{one, two} {
		other := one
		if tab == one {
			other = two
		}
		for i := range tab.slots {
			if got, ok := tab.index(&tab.slots[i]); !ok || got != i {
				t.Fatalf("slot %d is found at %d, %v", i, got, ok)
			}
			if _, ok := other.index(&tab.slots[i]); ok {
				t.Fatalf("slot %d is found in another table", i)
			}
		}
	}
}
