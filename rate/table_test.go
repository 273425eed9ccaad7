package rate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"pgregory.net/rapid"
)

// inspect checks that index, entries and counts of all shards agree, while nobody uses them.
func (l *Limiter) inspect() error {
	total := 0
	for i := range l.shards {
		if err := l.shards[i].inspect(); err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
		total += l.shards[i].used
	}
	if got := l.Stats().Keys; got != total {
		return fmt.Errorf("%d keys are counted, %d there", got, total)
	}
	return nil
}

func (s *shard) inspect() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	indexed, live, free := 0, 0, 0
	for _, v := range s.index {
		if v != 0 {
			indexed++
		}
	}
	for k := range s.made {
		e, _ := s.entry(k)
		if e.gen == 0 {
			continue
		}
		if live++; s.find(id{e.a, e.b}) != k {
			return fmt.Errorf("entry %d cannot be found", k)
		}
	}
	for f := s.free; f != 0; free++ {
		e, _ := s.entry(f - 1)
		if e.gen != 0 {
			return fmt.Errorf("entry %d is in use and free", f-1)
		}
		f = int(e.at)
	}
	if indexed != s.used || live != s.used || free != s.made-s.used {
		return fmt.Errorf("%d in the index, %d live, %d free, of %d and %d made", indexed, live, free, s.used, s.made)
	}
	return nil
}

// With room for all, every key is its own bucket, by name and by handle; what is dropped comes back as it was.
func TestKeysAreIndependent(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a := rapid.SampledFrom(four).Draw(rt, "algorithm").a
		names, room := rapid.IntRange(1, 60).Draw(rt, "names"), rapid.IntRange(1, 20).Draw(rt, "room")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 6))
		var err error
		synctest.Test(t, func(t *testing.T) { err = playKeys(t, a, rng, names, room) }) // rapid must not fail inside a bubble
		if err != nil {
			rt.Fatal(err)
		}
	})
}

func playKeys(t *testing.T, a Algorithm, rng *rand.Rand, names, room int) error {
	l := limiter(t, a, 2+names*room)
	own, handles, ctx := map[string]*Bucket{}, map[string]*Bucket{}, context.Background()
	for range 300 {
		if rng.IntN(3) == 0 {
			pause(time.Duration(rng.Int64N(int64(300 * time.Millisecond))))
		}
		k := strconv.Itoa(rng.IntN(names))
		if own[k] == nil {
			own[k], handles[k] = bucket(t, a), l.Bucket(k)
		}
		n := 1 + rng.Int64N(3)
		want := take(t, own[k], n)
		var got Decision
		if rng.IntN(2) == 0 {
			got = take(t, handles[k], n)
		} else {
			got, _ = l.Take(ctx, strings.Clone(k), n)
		}
		if rng.IntN(4) == 0 {
			_ = own[k].GiveBack(ctx, want)
			_ = handles[k].GiveBack(ctx, got)
		}
		if got, want := figures(got), figures(want); got != want {
			return fmt.Errorf("%s: %+v, want %+v", k, got, want)
		}
	}
	return l.inspect()
}

// figures are the public part of a decision.
func figures(d Decision) Decision {
	return Decision{OK: d.OK, Limit: d.Limit, Remaining: d.Remaining, RetryAfter: d.RetryAfter, ResetAfter: d.ResetAfter, Wait: d.Wait}
}

// At the bound, a key that took something keeps its state whatever comes; newcomers share one bucket; idle keys make room.
func TestFloodGivesNobodyAFreshStart(t *testing.T) {
	for _, c := range four {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const room = 500
				l := limiter(t, c.a, room)
				attacker := func() bool { d, _ := l.Take(t.Context(), "attacker", 3); return d.OK }
				if !attacker() {
					t.Fatal("the first three pass")
				}
				through := 0
				for i := range 20 * room {
					if d, _ := l.Take(t.Context(), "flood-"+strconv.Itoa(i), 3); d.OK {
						through++
					}
					if attacker() {
						t.Fatalf("a fresh start after %d new keys", i+1)
					}
				}
				// Each of the keys that there is room for, and all others together, once.
				if st := l.Stats(); through != room-1+1 || st.Keys != room || st.Crowded != 20*room-(room-1) {
					t.Errorf("%d passed, %+v", through, st)
				}
				pause(time.Minute)
				for i := range 20 * room { // all are as new and make room, one for one
					if d, _ := l.Take(t.Context(), "late-"+strconv.Itoa(i), 1); !d.OK && i < room/2 {
						t.Fatalf("newcomer %d was refused, though all others are idle", i)
					}
				}
				if err := l.inspect(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// The table agrees with a map, whatever is added and dropped.
func TestTableModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l, err := New(Config{Algorithm: TokenBucket{Rate: PerSecond(1000), Burst: 1}, Keys: rapid.IntRange(2, 3000).Draw(rt, "keys")})
		if err != nil {
			rt.Fatal(err)
		}
		now := int64(1) << 61
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 7))
		taken := map[int]int64{} // when the key's only token was taken
		for range 10_000 {
			now += rng.Int64N(int64(time.Millisecond) / 200)
			k := rng.IntN(6000)
			b := l.bucket(strconv.Itoa(k))
			s, e, segs := b.lock(now)
			_, ok := s.rule.take(&e.cell, segs, now, 1)
			own := s != &l.shared
			s.mu.Unlock()
			at, used := taken[k]
			if fresh := !used || now-at >= int64(time.Millisecond); own && ok != fresh || !own && !fresh && e.gen != 1 {
				rt.Fatalf("key %d passed %v; taken %v %d ns ago", k, ok, used, now-at)
			} else if own && ok {
				taken[k] = now
			}
		}
		if err := l.inspect(); err != nil {
			rt.Fatal(err)
		}
	})
}

func TestLongKeys(t *testing.T) {
	l := limiter(t, TokenBucket{Rate: PerHour(1), Burst: 1}, 10)
	long := strings.Repeat("k", 1<<20)
	if !l.Allow(long+"a") || !l.Allow(long+"b") || l.Allow(long+"a") {
		t.Error("long keys are keys like others")
	}
}

func TestNothingIsAllocated(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, c := range four {
		l := limiter(t, c.a, 1000)
		b, ctx := l.Bucket("b"), t.Context()
		l.Allow("key")
		for name, f := range map[string]func(){
			"Allow":          func() { b.Allow() },
			"Take, GiveBack": func() { d, _ := b.Take(ctx, 1); _ = b.GiveBack(ctx, d) },
			"Peek":           func() { _, _ = b.Peek(ctx, 1) },
			"Allow by key":   func() { l.Allow("key") },
			"Take by key":    func() { _, _ = l.Take(ctx, "key", 1) },
			"Wait":           func() { _ = b.Wait(ctx, 4) }, // refused at once: an error is made
		} {
			most := 0.0
			if name == "Wait" {
				most = 4
			}
			if got := testing.AllocsPerRun(500, f); got > most {
				t.Errorf("%s, %s: %v allocations", c.name, name, got)
			}
		}
	}
}

// footprint is what a limiter's tables take, in bytes.
func (l *Limiter) footprint() (sum int64) {
	for i := range l.shards {
		s := &l.shards[i]
		sum += int64(unsafe.Sizeof(*s)) + 8*int64(cap(s.index)) + 24*int64(cap(s.chunks)+cap(s.segs))
		for _, c := range s.chunks {
			sum += int64(cap(c)) * int64(unsafe.Sizeof(entry{}))
		}
		for _, c := range s.segs {
			sum += 8 * int64(cap(c))
		}
	}
	return sum
}

// A key takes 64 bytes at most, and 9 for each counted segment (8, and what the allocator rounds up), however many there are.
func TestKeysAreSmall(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 || raceEnabled {
		t.Skip("figures are for 64 bits, without the detector")
	}
	const n = 200_000
	for _, a := range []Algorithm{four[0].a, SlidingWindow{Limit: 1, Window: time.Hour}, SlidingWindow{Limit: 1, Window: time.Hour, Segments: 60}} {
		names := make([]string, n)
		for i := range names {
			names[i] = "user-" + strconv.Itoa(i)
		}
		before := heap()
		l := limiter(t, a, n)
		worst := 0.0
		for i, k := range names {
			l.Allow(k)
			if i > n/4 && i%2000 == 0 {
				worst = max(worst, float64(l.footprint())/float64(i))
			}
		}
		per := float64(heap()-before) / n
		most := 64.0 + 9*float64(l.shared.rule.segments)
		t.Logf("%T: %.1f bytes a key, at worst %.1f; %.0f promised", a, per, worst, most)
		if per > most || worst > most {
			t.Errorf("%T: %.1f bytes a key, at worst %.1f, want at most %.0f", a, per, worst, most)
		}
		runtime.KeepAlive(l)
		runtime.KeepAlive(names)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Many goroutines, few places: no key ever passes more than its burst, and the table stays whole.
func TestStress(t *testing.T) {
	const goroutines, rounds, names = 8, 3000, 400
	l := limiter(t, TokenBucket{Rate: PerHour(1), Burst: 5}, 300)
	var mu sync.Mutex
	total := map[string]int{}
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 8))
			mine := map[string]int{}
			hs := map[string]*Bucket{}
			for range rounds {
				k := strconv.Itoa(rng.IntN(names))
				if hs[k] == nil {
					hs[k] = l.Bucket(k)
				}
				switch rng.IntN(5) {
				case 0:
					if l.Allow(k) {
						mine[k]++
					}
				case 1:
					if hs[k].Allow() {
						mine[k]++
					}
				case 2:
					d, _ := hs[k].Take(t.Context(), 2)
					if d.OK {
						_ = hs[k].GiveBack(t.Context(), d)
					}
				case 3:
					ds, err := Take(t.Context(), []Request{{l, k, 1, false}, {l, k + "x", 1, false}, {l, k + "y", 6, true}})
					if err != nil || ds[0].OK {
						t.Errorf("6 of 5 passed: %+v %v", ds, err)
					}
				case 4:
					_, _ = hs[k].Peek(t.Context(), 1)
					if rng.IntN(100) == 0 {
						_ = l.SetRate(PerHour(1 + rng.Int64N(2)))
					}
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for k, n := range mine {
				total[k] += n
			}
		})
	}
	wg.Wait()
	crowd := 0
	for k, n := range total {
		if n > 5 {
			crowd += n - 5 // only the shared bucket may have let them through
		}
		_ = k
	}
	if crowd > 5 {
		t.Errorf("%d more than the bursts", crowd)
	}
	if err := l.inspect(); err != nil {
		t.Error(err)
	}
}
