package bulkhead

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/internal/goroutine"
	"pgregory.net/rapid"
)

// The reference: a list of entries with their times, without slots, sequences, gates or flags. Times are whole milliseconds,
// so that the 256 ns of an entry's start never decide.
type queueModel struct {
	limit, expand, bound int
	stale                time.Duration
	tight                bool
	entries              []*modelEntry // that hold places, in the order of their admission
	admitted, evicted    uint64
	// A failed eviction is not tried again before noUntil by calls of noWeight or more.
	noUntil  time.Time
	noWeight int
	// The Expander is not asked before askAfter.
	askAfter time.Time
}

type modelEntry struct {
	began            time.Time
	weight           int
	goroutine        uint64
	pinned, detached bool
}

func (m *queueModel) held(detached bool) (n int) {
	for _, e := range m.entries {
		if e.detached == detached {
			n += e.weight
		}
	}
	return n
}

func (m *queueModel) ceiling() int { return m.limit * m.expand }

func (m *queueModel) fits(weight int) bool {
	return m.held(false)+weight <= min(m.bound, m.ceiling()-m.held(true))
}

func (m *queueModel) admit(weight int, id uint64) *modelEntry {
	e := &modelEntry{began: time.Now(), weight: weight, goroutine: id}
	m.entries = append(m.entries, e)
	m.admitted++
	return e
}

// no remembers that no call of this weight or more can evict for a while.
func (m *queueModel) no(d time.Duration, weight int) bool {
	m.noUntil, m.noWeight = time.Now().Add(d), weight
	return false
}

// evict makes room for a call, or does nothing.
func (m *queueModel) evict(weight int) bool {
	if weight >= m.noWeight && time.Now().Before(m.noUntil) {
		return false
	}
	var stale []*modelEntry
	oldest, sum := time.Duration(0), 0
	for _, e := range m.entries {
		if age := time.Since(e.began); !e.detached && !e.pinned {
			oldest = max(oldest, age)
			if age >= m.stale {
				stale = append(stale, e)
				sum += e.weight
			}
		}
	}
	live := m.held(false)
	switch {
	case m.expand == 1:
		return m.no(10*time.Second, 1)
	case len(stale) == 0:
		return m.no(min(10*time.Second, max(m.stale-oldest, ms)), 1)
	case m.tight:
		return m.no(250*ms, 1)
	case live+m.held(true)+weight > m.ceiling(), live-sum+weight > m.bound:
		return m.no(250*ms, weight)
	}
	for _, e := range stale {
		if m.held(false)+weight > m.bound {
			e.detached = true
			m.evicted++
		}
	}
	return true
}

// leave removes an entry, and reports whether it was there.
func (m *queueModel) leave(e *modelEntry) bool {
	for i, x := range m.entries {
		if x == e {
			m.entries = append(m.entries[:i:i], m.entries[i+1:]...)
			if e.detached {
				m.noUntil = time.Time{}
			}
			return true
		}
	}
	return false
}

// op is a step of a program: what to do, and two numbers that say to whom and how.
type op struct{ kind, a, b uint8 }

// evenly draws numbers below n. The integers of rapid are mostly small, and most programs of those do nothing.
func evenly(n int) *rapid.Generator[uint8] {
	all := make([]uint8, n)
	for i := range all {
		all[i] = uint8(i)
	}
	return rapid.SampledFrom(all)
}

// oracle is the Expander and the memory gauge of the tested bulkhead.
type oracle struct {
	bound int
	pause time.Duration
	asked int
	tight bool
}

func (o *oracle) Expand(Load) (int, time.Duration) { o.asked++; return o.bound, o.pause }
func (o *oracle) MemoryTight() bool                { return o.tight }

// queueRun is a program's run on a bulkhead and on the reference.
type queueRun struct {
	b       *Bulkhead
	m       *queueModel
	o       *oracle
	loose   []looseCall // ever
	workers []*modelWorker
	main    uint64
}

type looseCall struct {
	permit Permit
	entry  *modelEntry
}

// modelWorker is a goroutine that does as it is told, and the scoped calls that it is in.
type modelWorker struct {
	do    chan func()
	ready chan struct{}
	id    uint64
	calls []scopedCall
}

type scopedCall struct {
	ticket Ticket
	entry  *modelEntry // nil: nested
}

func (w *modelWorker) run(f func()) {
	w.do <- f
	<-w.ready
}

// runQueue runs a program, and returns what went wrong, or "". Inside a bubble.
func runQueue(program []op) (failure string) {
	o := &oracle{}
	b, err := New(Config{Limit: 3, Expand: 2, Stale: 100 * ms, Expander: o, Memory: o})
	if err != nil {
		return err.Error()
	}
	r := &queueRun{b: b, o: o, main: goroutine.ID(), m: &queueModel{limit: 3, expand: 2, bound: 3, stale: 100 * ms}}
	for range 3 {
		w := &modelWorker{do: make(chan func()), ready: make(chan struct{})}
		go func() {
			for f := range w.do {
				f()
				w.ready <- struct{}{}
			}
		}()
		w.run(func() { w.id = goroutine.ID() })
		r.workers = append(r.workers, w)
	}
	defer func() {
		for _, w := range r.workers {
			close(w.do)
		}
	}()
	for i, p := range program {
		what, wrong := r.step(p)
		if wrong == "" {
			wrong = r.compare()
		}
		if wrong != "" {
			return fmt.Sprintf("step %d, %s: %s", i, what, wrong)
		}
	}
	list, dropped := b.Reports()
	if n := uint64(len(list)) + dropped; n != r.m.evicted {
		return fmt.Sprintf("%d reports for %d evictions", n, r.m.evicted)
	}
	runtime.KeepAlive(r)
	return ""
}

// kinds is how many kinds of steps there are.
const kinds = 14

func (r *queueRun) step(p op) (what, wrong string) {
	a, c := int(p.a), int(p.b)
	switch p.kind % kinds {
	case 0, 1:
		return "Enter", r.enter(1, false)
	case 2:
		w := 1 + a%7
		return fmt.Sprint("EnterN ", w), r.enter(w, true)
	case 3, 4:
		return fmt.Sprintf("worker %d takes", a%3), r.take(r.workers[a%3], 1)
	case 5:
		return fmt.Sprintf("worker %d takes %d", a%3, 1+c%4), r.take(r.workers[a%3], 1+c%4)
	case 6, 7:
		return fmt.Sprintf("worker %d gives", a%3), r.give(r.workers[a%3])
	case 8, 9:
		if len(r.loose) == 0 {
			return "nothing", ""
		}
		i := (a<<8 | c) % len(r.loose)
		return fmt.Sprintf("exit of call %d", i), r.exit(r.loose[i], p.kind%kinds == 9)
	case 10:
		if len(r.loose) == 0 {
			return "nothing", ""
		}
		x := r.loose[(a<<8|c)%len(r.loose)]
		x.permit.Pin()
		x.entry.pinned = !x.entry.detached // a pinned one is never detached
		return "pin", ""
	case 11:
		d := []time.Duration{ms, 9 * ms, 40 * ms, 100 * ms, 249 * ms, time.Second, 11 * time.Second}[a%7]
		pass(d)
		return d.String(), ""
	case 12:
		if a%2 == 0 {
			r.b.SetBound(c % 14)
			r.m.bound = max(1, min(c%14, r.m.ceiling()))
			r.m.noUntil = time.Time{}
			return fmt.Sprint("SetBound ", c%14), ""
		}
		r.o.bound, r.o.pause = c%12, []time.Duration{0, 50 * ms, 2 * time.Second}[a/2%3]
		return fmt.Sprint("the Expander says ", r.o.bound, ", ", r.o.pause), ""
	default:
		if a%4 == 0 {
			r.o.tight = !r.o.tight
			r.m.tight = r.o.tight
			return fmt.Sprint("memory is tight: ", r.o.tight), ""
		}
		cfg := Config{Limit: 1 + c%5, Expand: 1 + a%4, Stale: []time.Duration{10 * ms, 100 * ms, time.Second}[c/5%3]}
		if err := r.b.Configure(cfg); err != nil {
			return "Configure", err.Error()
		}
		r.m.limit, r.m.expand, r.m.stale, r.m.bound = cfg.Limit, cfg.Expand, cfg.Stale, cfg.Limit
		r.m.noUntil, r.m.askAfter = time.Time{}, time.Time{}
		return fmt.Sprintf("Configure %d %d %v", cfg.Limit, cfg.Expand, cfg.Stale), ""
	}
}

// admits asks the reference for the answer to a call that is not nested. asked is how often the Expander was asked: where no
// bound would make room the bulkhead may save itself the question.
func (m *queueModel) admits(weight, asked int, o *oracle) (Outcome, string) {
	if weight > m.ceiling() {
		if asked != 0 {
			return 0, "the Expander is asked about a call that is too heavy"
		}
		return TooHeavy, ""
	}
	if m.fits(weight) {
		if asked != 0 {
			return 0, "the Expander is asked although there is a place"
		}
		return Taken, ""
	}
	switch paused := time.Now().Before(m.askAfter); {
	case asked > 1 || asked == 1 && paused:
		return 0, fmt.Sprintf("the Expander is asked %d times, paused: %v", asked, paused)
	case asked == 0 && !paused && m.bound < m.ceiling() && m.held(false)+m.held(true)+weight <= m.ceiling():
		return 0, "the Expander is not asked"
	case asked == 1:
		m.askAfter = time.Now().Add(o.pause)
		if o.bound > m.bound {
			m.noUntil = time.Time{}
			m.bound = min(o.bound, m.ceiling())
		}
	}
	if m.fits(weight) || m.evict(weight) {
		return Taken, ""
	}
	return Full, ""
}

func (r *queueRun) enter(weight int, n bool) string {
	r.o.asked = 0
	var p Permit
	var err error
	if n {
		p, err = r.b.EnterN(context.Background(), weight, 0)
	} else {
		p, err = r.b.Enter(context.Background())
	}
	want, wrong := r.m.admits(weight, r.o.asked, r.o)
	if wrong != "" {
		return wrong
	}
	if wanted := map[Outcome]error{Full: ErrFull, TooHeavy: ErrTooHeavy}[want]; !errors.Is(err, wanted) {
		return fmt.Sprintf("%v, want %v", err, wanted)
	}
	if want.Admitted() {
		r.loose = append(r.loose, looseCall{p, r.m.admit(weight, r.main)})
	}
	return ""
}

func (r *queueRun) take(w *modelWorker, weight int) string {
	var t Ticket
	var out Outcome
	r.o.asked = 0
	w.run(func() {
		if weight == 1 {
			t, out = scopedTicket(r.b)
		} else {
			t, out = r.b.TakeSlow(context.Background(), &Demand{Weight: weight, Scoped: true})
		}
	})
	if len(w.calls) > 0 {
		switch {
		case out == Nested:
			w.calls = append(w.calls, scopedCall{})
			return ""
		case !out.Admitted() || !r.m.fits(weight):
			return fmt.Sprintf("a nested call: %v", out)
		}
	} else {
		want, wrong := r.m.admits(weight, r.o.asked, r.o)
		if wrong != "" {
			return wrong
		}
		if out != want {
			return fmt.Sprintf("outcome %v, want %v", out, want)
		}
	}
	if out.Admitted() {
		w.calls = append(w.calls, scopedCall{t, r.m.admit(weight, w.id)})
	}
	return ""
}

func (r *queueRun) give(w *modelWorker) string {
	if len(w.calls) == 0 {
		return ""
	}
	last := w.calls[len(w.calls)-1]
	w.calls = w.calls[:len(w.calls)-1]
	want := last.entry != nil && r.m.leave(last.entry)
	var first, second bool
	w.run(func() { first, second = r.b.Give(last.ticket), r.b.Give(last.ticket) })
	if first != want || second {
		return fmt.Sprintf("Give reports %v, %v; want %v, false", first, second, want)
	}
	return ""
}

func (r *queueRun) exit(x looseCall, elsewhere bool) string {
	want, got := r.m.leave(x.entry), false
	if elsewhere {
		r.workers[0].run(func() { got = x.permit.Exit() })
	} else {
		got = x.permit.Exit()
	}
	if got != want {
		return fmt.Sprintf("Exit reports %v, want %v", got, want)
	}
	return ""
}

// compare looks at everything that can be seen from outside.
func (r *queueRun) compare() string {
	got, m := r.b.Snapshot(), r.m
	want := Snapshot{Limit: m.limit, Bound: m.bound, Max: m.ceiling(), InFlight: m.held(false), Detached: m.held(true),
		Admitted: m.admitted, Evicted: m.evicted, Oldest: got.Oldest}
	if got != want {
		return fmt.Sprintf("snapshot %+v, want %+v", got, want)
	}
	list := r.b.Entries()
	if len(list) != len(m.entries) {
		return fmt.Sprintf("%d entries, want %d", len(list), len(m.entries))
	}
	oldest := time.Duration(-1)
	for i, e := range m.entries {
		want := Entry{Goroutine: e.goroutine, Weight: e.weight, Detached: e.detached, Pinned: e.pinned, Age: list[i].Age}
		if d := list[i].Age - time.Since(e.began); list[i] != want || d < -256 || d > 256 {
			return fmt.Sprintf("entry %d is %+v, want %+v, %v old", i, list[i], want, time.Since(e.began))
		}
		if !e.detached && oldest < 0 {
			oldest = list[i].Age
		}
	}
	if got.Oldest != max(0, oldest) {
		return fmt.Sprintf("Oldest is %v, the head is %v old", got.Oldest, oldest)
	}
	if idle, _ := r.b.Idle(); idle != (len(m.entries) == 0) {
		return fmt.Sprintf("idle: %v with %d entries", idle, len(m.entries))
	}
	return ""
}

// TestModelOfTheQueue: enter, exit, double and late exit, nested calls, evictions, weights, pins, growth and settings, compared with
// the reference after every step.
func TestModelOfTheQueue(t *testing.T) {
	step := rapid.Custom(func(t *rapid.T) op {
		return op{evenly(kinds).Draw(t, "kind"), evenly(256).Draw(t, "a"), evenly(256).Draw(t, "b")}
	})
	rapid.Check(t, func(rt *rapid.T) {
		program := rapid.SliceOfN(step, 50, 150).Draw(rt, "program")
		failure := ""
		synctest.Test(t, func(*testing.T) { failure = runQueue(program) })
		if failure != "" {
			rt.Fatal(failure)
		}
	})
}
