package guard_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// living are the keys whose guards exist after what nobody holds was collected.
func living(rt *guard.Runtime) (keys []string) {
	for range 3 {
		runtime.GC()
	}
	for _, k := range rt.Snapshot().Keys {
		keys = append(keys, string(k.Key))
	}
	return keys
}

func wantLiving(t *testing.T, rt *guard.Runtime, want ...string) {
	t.Helper()
	if got := living(rt); !slices.Equal(got, want) {
		t.Errorf("there are guards of %q, want %q", got, want)
	}
}

func TestOneGuardForOneKey(t *testing.T) {
	rt := newRuntime(t)
	const key = "shop.Store.Get"
	g := rt.For(key)
	for range 1000 { // more addresses than the front of the table has places
		if rt.For(registry.Key(strings.Clone(key))) != g || rt.For(key) != g {
			t.Fatal("another address of the same text is another guard")
		}
	}
	if g.Key() != key {
		t.Errorf("the guard's key is %q", g.Key())
	}
	if rt.For("shop.Store.Ge") == g || rt.For("shop.Store.Get.") == g || newRuntime(t).For(key) == g {
		t.Error("another key, or another runtime, has the same guard")
	}
}

// Web frameworks hand out strings that lie in a buffer and change with the next request. The answer follows the text, and a guard
// keeps none of it.
func TestKeyWhoseTextChanges(t *testing.T) {
	rt := newRuntime(t)
	buffer := []byte("shop.Store.Get")
	key := registry.Key(unsafe.String(&buffer[0], len(buffer)))
	g := rt.For(key)
	copy(buffer, "ship")
	other := rt.For(key)
	if g.Key() != "shop.Store.Get" || other == g || other.Key() != "ship.Store.Get" {
		t.Errorf("two texts at one address: %q and %q", g.Key(), other.Key())
	}
	copy(buffer, "shop")
	if rt.For(key) != g || rt.For("ship.Store.Get") != other {
		t.Error("the guards are not found again")
	}
}

func TestIdleGuardsGoOldestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t, guard.WithMaxKeys(3))
		use := func(key registry.Key) {
			t.Helper()
			if err := rt.Do(key, nothing); err != nil {
				t.Fatal(err)
			}
			elapse(time.Second)
		}
		use("a")
		use("b")
		use("c")
		wantLiving(t, rt, "a", "b", "c")
		use("a")
		use("d")
		wantLiving(t, rt, "a", "c", "d")
		use("e")
		wantLiving(t, rt, "a", "d", "e")
		rt.For("a") // looking it up is no use
		use("f")
		wantLiving(t, rt, "d", "e", "f")
		// One that was never used is as old as it is.
		rt.For("g")
		elapse(time.Second)
		wantLiving(t, rt, "e", "f", "g")
		use("e")
		use("f")
		use("h")
		wantLiving(t, rt, "e", "f", "h")
		// Used again after the table was searched for idle ones, and one let go.
		use("i")
		use("f")
		use("j")
		wantLiving(t, rt, "f", "i", "j")
	})
}

func TestBusyGuardsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t, guard.WithMaxKeys(4))
		if err := rt.Registry().SetDefault(registry.Spec{Limit: 1, Stale: time.Second}); err != nil {
			t.Fatal(err)
		}
		pass, err := rt.For("in_flight").Enter(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		stuck, _ := rt.For("detached").Enter(context.Background())
		elapse(2 * time.Second)
		if err := rt.Do("detached", nothing); err != nil { // evicts the stuck one
			t.Fatal(err)
		}
		for i := range 20 {
			elapse(time.Second)
			if err := rt.Do(registry.Key(fmt.Sprint("key", i)), nothing); err != nil {
				t.Fatal(err)
			}
		}
		wantLiving(t, rt, "detached", "in_flight", "key18", "key19")
		pass.Exit()
		stuck.Exit()
		for i := range 4 {
			elapse(time.Second)
			rt.For(registry.Key(fmt.Sprint("key", i)))
		}
		wantLiving(t, rt, "key0", "key1", "key2", "key3")
	})
}

// A guard that somebody holds is dropped from the table like any other, and found again: two guards of one key would be two bounds.
func TestHeldGuardIsFoundAgain(t *testing.T) {
	rt := newRuntime(t, guard.WithMaxKeys(2))
	held := rt.For("held")
	if err := held.Do(func() error { return errWork }); err != errWork { //nolint:errorlint // untouched
		t.Fatal(err)
	}
	for round := range 20 { // dropped and found again and again
		for i := range 5 {
			_ = rt.Do(registry.Key(fmt.Sprint("key", i)), nothing)
		}
		if round%5 == 0 {
			runtime.GC()
		}
		if round == 10 { // a new default reaches it wherever it stands
			if err := rt.Registry().SetDefault(registry.Spec{Limit: 7}); err != nil {
				t.Fatal(err)
			}
			if b := held.Snapshot().Bulkhead; b.Bound != 7 {
				t.Errorf("while the table had dropped it a new default did not reach it: the bound is %d", b.Bound)
			}
		}
		if rt.For("held") != held {
			t.Fatal("there are two guards of one key")
		}
	}
	if s := held.Snapshot(); s.Failed != 1 {
		t.Error("it lost its counters")
	}
	// A declared one is held by the table for good.
	for i := range 5 {
		_ = rt.Do(registry.Key(fmt.Sprint("key", i)), nothing)
	}
	if err := rt.Registry().Declare("held", registry.Spec{Limit: 9}); err != nil {
		t.Fatal(err)
	}
	if b := held.Snapshot().Bulkhead; b.Bound != 9 {
		t.Errorf("the bound is %d, want the declared one", b.Bound)
	}
	held = nil //nolint:wastedassign // for the collector
	for i := range 5 {
		_ = rt.Do(registry.Key(fmt.Sprint("key", i)), nothing)
	}
	if keys := living(rt); !slices.Contains(keys, "held") {
		t.Errorf("a guard that was declared while it was dropped is gone: %q", keys)
	}
	if s := rt.For("held").Snapshot(); s.Failed != 1 || s.Bulkhead.Bound != 9 {
		t.Errorf("failed %d, bound %d; want 1, 9", s.Failed, s.Bulkhead.Bound)
	}
}

func TestOverflowGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t, guard.WithMaxKeys(2))
		events := rt.Subscribe(100)
		if err := rt.Registry().SetDefault(registry.Spec{Limit: 2}); err != nil {
			t.Fatal(err)
		}
		a, b := block(rt.For("a").Do), block(rt.For("b").Do)
		over := rt.For("c")
		if over.Key() != "(overflow)" || rt.For("d") != over || rt.For("(overflow)") != over {
			t.Fatalf("c has the guard of %q", over.Key())
		}
		c, d := block(rt.For("c").Do), block(rt.For("d").Do)
		r := rejectionOf(t, rt.Do("e", nothing), guard.ReasonFull) // they share one bound
		if r.Key() != "(overflow)" {
			t.Errorf("the refusal names %q", r.Key())
		}
		if s := rt.Snapshot(); s.OverflowCalls != 5 {
			t.Errorf("%d look-ups shared it, want 5", s.OverflowCalls)
		}
		// Declared keys are not concerned.
		declared(t, rt, "declared", registry.Spec{Limit: 1})
		if g := rt.For("declared"); g.Key() != "declared" {
			t.Errorf("a declared key has the guard of %q", g.Key())
		}
		// Told at once, and then at most once a minute, with the number.
		count := func() (told int, calls uint64) {
			for {
				synctest.Wait()
				ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
				e, err := events.Next(ctx)
				cancel()
				if err != nil {
					return told, calls
				}
				if e.Kind == guard.EventKeysFull {
					told++
					calls += e.Count
				}
			}
		}
		elapse(time.Second)
		if told, calls := count(); told != 1 || calls != 5 {
			t.Errorf("told %d times of %d calls, want once of 5", told, calls)
		}
		for range 50 {
			rt.For("f")
			elapse(time.Second)
		}
		if told, _ := count(); told != 0 {
			t.Errorf("told %d times within a minute", told)
		}
		elapse(20 * time.Second)
		if told, calls := count(); told != 1 || calls != 50 {
			t.Errorf("told %d times of %d calls, want once of 50", told, calls)
		}
		if n := rt.Snapshot().OverflowCalls; n != 0 {
			t.Errorf("%d calls are left to tell", n)
		}
		// As soon as one is idle there is room again.
		_ = a.end()
		elapse(time.Second)
		if g := rt.For("c"); g.Key() != "c" {
			t.Errorf("with an idle key to drop, c has the guard of %q", g.Key())
		}
		// A spec can be declared for it, and follows a new default.
		replace(t, rt, map[registry.Key]registry.Spec{"(overflow)": {Limit: 50}})
		if n := over.Snapshot().Bulkhead.Bound; n != 50 {
			t.Errorf("declared 50, its bound is %d", n)
		}
		rt.Registry().Remove("(overflow)")
		if n := over.Snapshot().Bulkhead.Bound; n != 2 {
			t.Errorf("its bound is %d, want the default", n)
		}
		for _, h := range []*blocked{b, c, d} {
			_ = h.end()
		}
		wantIdle(t, over)
	})
}

func TestInvalidKeys(t *testing.T) {
	rt := newRuntime(t, guard.WithMaxKeys(1))
	_ = rt.Do("valid", nothing)
	g := rt.For("valid")
	invalid := []registry.Key{"", " ", "a b", "tab\t", "new\nline", "\xff", "nul\x00", registry.Key(strings.Repeat("x", registry.MaxKeyLen+1))}
	for _, key := range invalid {
		for _, way := range ways {
			err := way.do(rt.For(key), func() error { t.Errorf("%s: a call of %q ran", way.name, key); return nil })
			if r := rejectionOf(t, err, guard.ReasonInvalidKey); r.Key() != "(invalid)" {
				t.Errorf("the refusal names %q", r.Key())
			}
		}
	}
	if rt.For("(invalid)") != rt.For("") {
		t.Error("the key of the guard of invalid keys has another guard")
	}
	if rt.For("valid") != g || g.Key() != "valid" {
		t.Error("invalid keys took a valid one's place")
	}
	if s := rt.For("").Snapshot(); s.Refused[guard.ReasonInvalidKey] != uint64(len(invalid)*len(ways)) || s.Admitted != 0 {
		t.Errorf("refused %v, admitted %d", s.Refused, s.Admitted)
	}
	longest := registry.Key(strings.Repeat("x", registry.MaxKeyLen))
	if err := rt.Do(longest, nothing); err != nil {
		t.Errorf("the longest key: %v", err)
	}
}

// However many threads look up, call, drop and collect, two guards of one key must never exist: with a bound of 1 that would show
// as two calls at once.
func TestNeverTwoGuardsOfOneKey(t *testing.T) {
	const keys = 32
	rounds := 20_000
	if testing.Short() {
		rounds = 2000
	}
	rt := newRuntime(t, guard.WithMaxKeys(8))
	if err := rt.Registry().SetDefault(registry.Spec{Limit: 1}); err != nil {
		t.Fatal(err)
	}
	var running [keys]atomic.Int32
	var ran, overflowed atomic.Int64
	stop := make(chan struct{})
	var collector, workers sync.WaitGroup
	collector.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	})
	for w := range 8 {
		workers.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			var handle *guard.Guard
			for range rounds {
				k := r.IntN(keys)
				key := registry.Key(fmt.Sprint("key", k))
				g := rt.For(key)
				if g.Key() == "(overflow)" {
					overflowed.Add(1)
					continue
				}
				if g.Key() != key {
					t.Errorf("For(%q) is the guard of %q", key, g.Key())
				}
				if again := rt.For(key); again != g {
					t.Errorf("%q has the guard %p, and a moment later %p", key, g, again)
				}
				if r.IntN(10) == 0 {
					handle = g // held beyond the call
				}
				_ = g.Do(func() error {
					if n := running[k].Add(1); n > 1 {
						t.Errorf("%q: %d calls at once under a bound of 1", key, n)
					}
					ran.Add(1)
					runtime.Gosched()
					running[k].Add(-1)
					return nil
				})
			}
			runtime.KeepAlive(handle)
		})
	}
	workers.Wait()
	close(stop)
	collector.Wait()
	if ran.Load() == 0 {
		t.Error("nothing ran")
	}
	t.Logf("%d calls ran, %d look-ups got the overflow guard", ran.Load(), overflowed.Load())
}

// A million keys, as a caller makes them who puts an id into the key: the memory stays that of the bound.
func TestMillionKeysStayWithinTheBound(t *testing.T) {
	n := 1_000_000
	if testing.Short() || raceDetector {
		n = 2 * guard.DefaultMaxKeys
	}
	rt := newRuntime(t)
	heap := func() uint64 {
		for range 3 {
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	peak := uint64(0)
	start := time.Now()
	for i := range n {
		if err := rt.Do(registry.Key(fmt.Sprintf("orders/%d", i)), nothing); err != nil {
			t.Fatal(err)
		}
		if i%(n/100) == 0 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc)
		}
	}
	took := time.Since(start)
	after := heap()
	if keys := len(rt.Snapshot().Keys); keys > guard.DefaultMaxKeys || keys < guard.DefaultMaxKeys/2 {
		t.Errorf("there are %d guards", keys)
	}
	grown := after - min(after, before)
	t.Logf("%d keys in %v (%v each); the heap grew by %d KB, %d bytes for each of %d, and was at %d KB at the highest",
		n, took, took/time.Duration(n), grown>>10, grown/guard.DefaultMaxKeys, guard.DefaultMaxKeys, peak>>10)
	if grown > guard.DefaultMaxKeys*4<<10 && !raceDetector {
		t.Errorf("the heap grew by %d KB for %d guards of at most 4 KB", grown>>10, guard.DefaultMaxKeys)
	}
}
