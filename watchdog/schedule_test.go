package watchdog_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/registry"
	"github.com/spillway-go/spillway/watchdog"
)

// entry is a call of a script: a place without a mark.
type entry struct {
	call    watchdog.Call
	from    time.Time
	over    atomic.Bool
	another uint64 // identity of the call that has the place
}

func (e *entry) Holds(identity uint64) bool { return identity != e.another && !e.over.Load() }

// script is a Source that is told who is in flight.
type script struct {
	mu   sync.Mutex
	list []*entry
	asks int
}

func (s *script) Late(_ int64, f func(watchdog.Call)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks++
	for _, e := range s.list {
		c := e.call
		if c.Age = time.Since(e.from); c.Age >= c.Slow && !e.over.Load() {
			f(c)
		}
	}
}

// begin adds a call that is slow after a second.
func (s *script) begin(key registry.Key, goroutine uint64) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &entry{from: time.Now()}
	e.call = watchdog.Call{Key: key, Goroutine: goroutine, Slow: time.Second, InFlight: len(s.list) + 1, Bound: 8, Place: e, Identity: 1, Scoped: true}
	s.list = append(s.list, e)
	return e
}

func (e *entry) end() { e.over.Store(true) }

func kinds(list []watchdog.Report) string {
	var all []string
	for _, r := range list {
		all = append(all, r.Kind.String())
	}
	return strings.Join(all, " ")
}

// W2: one report when a call becomes slow, one for each doubling of its age, one line when it ends.
func TestW2Schedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		_, pen := watch(t, watchdog.Config{Source: s})
		call := s.begin(key, 7)
		began := time.Now()
		for range 4 * 30 { // looks
			elapse(250 * time.Millisecond)
		}
		call.end()
		elapse(250 * time.Millisecond)
		list := pen.take()
		want := []watchdog.Kind{watchdog.Slow, watchdog.Still, watchdog.Still, watchdog.Still, watchdog.Still, watchdog.Ended}
		if len(list) != len(want) {
			t.Fatalf("got %s", kinds(list))
		}
		for i, seconds := range []int{1, 2, 4, 8, 16, 30} {
			r := list[i]
			if r.Kind != want[i] {
				t.Errorf("report %d is %v", i, r)
			}
			want := time.Duration(seconds) * time.Second
			if r.Age < want || r.Age > want+250*time.Millisecond || r.Count != 1 || r.Goroutines[0] != 7 {
				t.Errorf("report %d: age %v, want %v: %+v", i, r.Age, want, r)
			}
			if at := r.Time.Sub(began); at < want || at > want+250*time.Millisecond {
				t.Errorf("report %d came after %v, want %v", i, at, want)
			}
		}
		elapse(time.Minute)
		if list := pen.take(); len(list) != 0 {
			t.Errorf("after the end: %v", list)
		}
	})
}

// A call that was in flight for long when the watchdog began is reported once, then at the next doubling.
func TestW2LateStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		call := s.begin(key, 7)
		elapse(7900 * time.Millisecond)
		_, pen := watch(t, watchdog.Config{Source: s})
		elapse(9 * time.Second)
		call.end()
		elapse(time.Second)
		if got := kinds(pen.take()); got != "slow still_slow slow_ended" { // at 8.15 and 16.15 s
			t.Errorf("got %s", got)
		}
	})
}

// A call that ends before it is slow is not heard of; nor is one whose place has another call by then.
func TestW2NotSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		w, pen := watch(t, watchdog.Config{Source: s})
		for range 20 {
			call := s.begin(key, 1)
			elapse(999 * time.Millisecond)
			call.end()
		}
		if list := pen.take(); len(list) != 0 {
			t.Errorf("reports: %v", list)
		}
		if got := w.Stats(); got != (watchdog.Stats{}) {
			t.Errorf("stats %+v", got)
		}
	})
}

// A threshold that is raised does not end a call.
func TestW2ThresholdChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		_, pen := watch(t, watchdog.Config{Source: s})
		call := s.begin(key, 1)
		elapse(1500 * time.Millisecond)
		s.mu.Lock()
		call.call.Slow = time.Hour
		s.mu.Unlock()
		elapse(10 * time.Second)
		call.end()
		elapse(time.Second)
		list := pen.take()
		if got := kinds(list); got != "slow slow_ended" {
			t.Fatalf("got %s", got)
		}
		if age := list[1].Age; age < 11500*time.Millisecond || age > 11750*time.Millisecond {
			t.Errorf("ended after %v, want 11.5 s", age)
		}
	})
}

// W4: as long as nobody is late no profile is taken.
func TestW4NobodyLate(t *testing.T) {
	scene(t, func(t *testing.T, s *stage) {
		w, _ := watch(t, watchdog.Config{Source: s})
		for range 100 {
			done := make(chan struct{})
			s.do(func() { <-done })
			elapse(900 * time.Millisecond)
			close(done)
		}
		if got := w.Stats(); got != (watchdog.Stats{}) {
			t.Errorf("stats %+v", got)
		}
	})
}

// W3: calls that are late together share a dump; a late call between two reports costs none.
func TestW3OneDumpForAll(t *testing.T) {
	scene(t, func(t *testing.T, s *stage) {
		w, pen := watch(t, watchdog.Config{Source: s})
		for range 100 {
			s.do(func() { stuck(s.leave) })
		}
		elapse(1900 * time.Millisecond)
		if got := w.Stats(); got.Dumps != 1 || got.Late != 100 || got.Reports != 1 || got.NoStack != 0 {
			t.Errorf("stats %+v", got)
		}
		r := only(t, pen.take())
		if r.Count != 100 || len(r.Goroutines) != 10 {
			t.Errorf("%d calls, goroutines %v", r.Count, r.Goroutines)
		}
		wantStuck(t, r)
	})
}

// W3: a standing stream of late calls is written about in pages, at most twenty in a row, then one each ten seconds. What comes in between is
// told by the next page or by the line of the end, and counted.
func TestW3Pages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		w, pen := watch(t, watchdog.Config{Source: s})
		total := 0
		for range 4 * 60 {
			total++
			call := s.begin(registry.Key(fmt.Sprint("key", total%3)), 1)
			time.AfterFunc(3*time.Second, call.end)
			elapse(250 * time.Millisecond)
		}
		elapse(30 * time.Second)
		pages := map[time.Time]int{}
		ends, endPages := 0, map[time.Time]int{}
		suppressed := uint64(0)
		for _, r := range pen.take() {
			suppressed += r.Suppressed
			if r.Kind == watchdog.Ended {
				ends += r.Count
				endPages[r.Time]++
			} else {
				pages[r.Time]++
			}
		}
		if n := len(pages); n < 20 || n > 27 {
			t.Errorf("%d pages about slow calls, want 20 at once and 6 in a minute", n)
		}
		if n := len(endPages); n < 20 || n > 30 {
			t.Errorf("%d pages about ends", n)
		}
		if ends != total {
			t.Errorf("the ends of %d calls were told, want %d", ends, total)
		}
		if got := w.Stats(); got.Suppressed == 0 || got.Suppressed != suppressed || got.Late != 0 {
			t.Errorf("%d reports are told to be suppressed, stats %+v", suppressed, got)
		}
	})
}

// Ten thousand calls that are stuck in the same place make one line, then one for each doubling.
func TestTenThousandStuckCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("10,000 goroutines")
	}
	scene(t, func(t *testing.T, s *stage) {
		w, pen := watch(t, watchdog.Config{Source: s})
		for i := range 10_000 {
			if i%100 == 0 {
				go scoped(s.Ledger, func() { stuck(s.leave) })
			} else {
				s.do(func() { stuck(s.leave) })
			}
		}
		elapse(2250 * time.Millisecond)
		list := pen.take()
		if len(list) != 4 {
			t.Fatalf("%d reports, want two groups, twice", len(list))
		}
		for i, want := range []int{9900, 100, 9900, 100} {
			if list[i].Count != want || list[i].Kind != []watchdog.Kind{watchdog.Slow, watchdog.Still}[i/2] {
				t.Errorf("report %d: %v, want %d", i, list[i], want)
			}
			wantStuck(t, list[i])
		}
		if got := w.Stats(); got.Dumps != 2 {
			t.Errorf("%d dumps", got.Dumps)
		}
	})
}

// One slow call among 10,000 goroutines is found with its own stack.
func TestOneSlowCallAmongTenThousand(t *testing.T) {
	if testing.Short() {
		t.Skip("10,000 goroutines")
	}
	scene(t, func(t *testing.T, s *stage) {
		for range 9_000 {
			go bystander(s.leave)
		}
		for range 1_000 { // in flight, not late for long
			s.do(func() {
				select {
				case <-s.leave:
				case <-time.After(900 * time.Millisecond):
				}
			})
		}
		s.do(func() { stuck(s.leave) })
		r := only(t, s.slow())
		wantStuck(t, r)
		if r.Count != 1 {
			t.Errorf("%d calls", r.Count)
		}
	})
}

// A page has so many lines; the largest groups come first, the rest is summed up.
func TestPageOfManyGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		_, pen := watch(t, watchdog.Config{Source: s, Lines: 3})
		for i := range 10 {
			for range i + 1 {
				s.begin(registry.Key(fmt.Sprint("key", i)), uint64(i))
			}
		}
		elapse(1500 * time.Millisecond)
		list := pen.take()
		if len(list) != 4 || list[2].Kind != watchdog.Slow || list[3].Kind != watchdog.More {
			t.Fatalf("got %s", kinds(list))
		}
		if list[0].Count != 10 || list[1].Count != 9 || list[2].Count != 8 || list[3].Count != 28 || list[3].Groups != 7 {
			t.Errorf("got %v", list)
		}
	})
}

// Calls of one group differ in age; the report tells both ends, and the oldest call's goroutine first.
func TestGroupedAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		for i := range uint64(20) {
			s.begin(key, 100+i)
			elapse(100 * time.Millisecond)
		}
		elapse(time.Second)
		_, pen := watch(t, watchdog.Config{Source: s})
		elapse(250 * time.Millisecond)
		r := only(t, pen.take())
		if r.Count != 20 || r.Age != 3250*time.Millisecond || r.Youngest != 1350*time.Millisecond {
			t.Errorf("%d calls of %v to %v", r.Count, r.Youngest, r.Age)
		}
		if want := []uint64{100, 101, 102, 103, 104, 105, 106, 107, 108, 109}; !slices.Equal(r.Goroutines, want) {
			t.Errorf("goroutines %v", r.Goroutines)
		}
	})
}

// More late calls than can be followed are counted, and told once a minute.
func TestTooManyLateCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		w, pen := watch(t, watchdog.Config{Source: s, MaxCalls: 3})
		for range 10 {
			s.begin(key, 1)
		}
		elapse(1900 * time.Millisecond)
		list := pen.take()
		if got := kinds(list); got != "slow watchdog" || !strings.Contains(list[1].Problem, "7 late calls are not followed, beyond the first 3") {
			t.Errorf("got %v", list)
		}
		if late := w.Stats().Late; late != 10 {
			t.Errorf("%d are late", late)
		}
		elapse(60 * time.Second)
		troubles := 0
		for _, r := range pen.take() {
			if r.Kind == watchdog.Trouble {
				troubles++
			}
		}
		if troubles != 1 {
			t.Errorf("told %d times in the next minute", troubles)
		}
	})
}

// With more goroutines than allowed there is no profile, and the line says so. Different stacks beyond the bound of bytes are left out.
func TestDumpIsBounded(t *testing.T) {
	scene(t, func(t *testing.T, s *stage) {
		w, pen := watch(t, watchdog.Config{Source: s, MaxGoroutines: 10})
		for range 20 {
			s.do(func() { stuck(s.leave) })
		}
		elapse(1500 * time.Millisecond)
		wantNone(t, only(t, pen.take()), watchdog.TooMany)
		if got := w.Stats(); got.Dumps != 0 || got.NoStack != 20 {
			t.Errorf("stats %+v", got)
		}
	})
	scene(t, func(t *testing.T, s *stage) {
		_, pen := watch(t, watchdog.Config{Source: s, MaxBytes: 1 << 10, MaxFrames: 1000})
		s.do(func() { deep(100, s.leave) })
		s.do(func() { stuck(s.leave) })
		elapse(1500 * time.Millisecond)
		shown := 0
		for _, r := range pen.take() {
			if len(r.Stack) > 0 {
				wantStuck(t, r)
				shown++
			} else {
				wantNone(t, r, watchdog.NoRoom)
			}
		}
		if shown != 1 {
			t.Errorf("%d stacks shown, want 1", shown)
		}
	})
}

// The source is asked once a period, and no more after Close.
func TestPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		w, _ := watch(t, watchdog.Config{Source: s, Period: 100 * time.Millisecond})
		elapse(time.Second + time.Millisecond)
		w.Close()
		elapse(time.Second)
		if s.asks != 10 {
			t.Errorf("asked %d times in a second", s.asks)
		}
		w.Start()
		w.Close()
		elapse(time.Second)
		if s.asks != 10 {
			t.Error("asked after Close")
		}
	})
}

// A watchdog that never started has nothing to end.
func TestCloseWithoutStart(t *testing.T) {
	w, err := watchdog.New(watchdog.Config{Source: &script{}, OnSlow: func(watchdog.Report) {}})
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	w.Start()
	w.Close()
}
