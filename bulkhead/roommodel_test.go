package bulkhead

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// The reference of the waiting room: calls in the order of their coming, and the rules that the comment of room states, without
// lists by level, locks or wake-ups. Times are readings of the bulkhead's clock.
type roomModel struct {
	limit, expand, bound, capacity int
	wait                           int64
	live                           int
	calls                          []*roomCall // all that ever came; the model never looks at one by its place in the list
	turn                           [Levels]*roomCall
	standing                       bool
	calm, service                  int64
	looked                         int64 // evicting is not tried again before: 10 s after the last try
}

type roomCall struct {
	weight, level   int
	came, end, poll int64
	waiting         bool
	began           int64 // of one that is in
	outcome         Outcome
}

func (m *roomModel) clone() *roomModel {
	c := *m
	c.calls = make([]*roomCall, len(m.calls))
	for i, x := range m.calls {
		y := *x
		c.calls[i] = &y
		for l := range m.turn {
			if m.turn[l] == x {
				c.turn[l] = &y
			}
		}
	}
	return &c
}

// room lists those who wait, the oldest first.
func (m *roomModel) room() (list []*roomCall) {
	for _, c := range m.calls {
		if c.waiting {
			list = append(list, c)
		}
	}
	return list
}

func (m *roomModel) fits(weight int) bool { return m.live+weight <= m.bound }

// next is whose turn it is: the most important; among them the one that has the turn, else the oldest, or the newest while overload
// stands. Who outweighs the bound is passed over.
func (m *roomModel) next() *roomCall {
	for level := range Levels {
		if c := m.turn[level]; c != nil && c.weight <= m.bound {
			return c
		}
		list := slices.DeleteFunc(m.room(), func(c *roomCall) bool { return c.level != level || c.weight > m.bound })
		switch {
		case len(list) == 0:
		case m.standing:
			return list[len(list)-1]
		default:
			return list[0]
		}
	}
	return nil
}

func (m *roomModel) answer(c *roomCall, out Outcome, t int64) {
	c.waiting, c.outcome, c.began = false, out, t
	if m.turn[c.level] == c {
		m.turn[c.level] = nil
	}
	if out.Admitted() {
		m.live += c.weight
	}
}

// judge looks whether overload begins or ends, and refuses the old while it stands.
func (m *roomModel) judge(t int64) {
	allowed, span := 50*int64(ms), 500*int64(ms)
	if m.service != 0 {
		allowed = min(max(2*m.service, 5*int64(ms)), allowed)
		span = min(max(20*m.service, 100*int64(ms)), span)
	}
	if !m.standing {
		if t-m.room()[0].came <= allowed {
			m.calm = t
		} else if t-m.calm > span {
			m.standing, m.calm = true, t
		}
	}
	if !m.standing {
		return
	}
	for _, c := range m.room() {
		if t-c.came > allowed {
			m.answer(c, Full, t)
			m.calm = t
		}
	}
	if t-m.calm > span {
		m.standing, m.calm = false, t
	}
}

func (m *roomModel) serve(t int64) {
	if len(m.room()) == 0 {
		return
	}
	m.judge(t)
	for c := m.next(); c != nil; c = m.next() {
		if !m.fits(c.weight) {
			if c.weight > 1 {
				m.turn[c.level] = c
			}
			return
		}
		m.answer(c, TakenLate, t)
	}
}

// look is what a newcomer and each waiter do now and then: serve, and try to evict, in vain here.
func (m *roomModel) look(t int64) {
	if m.serve(t); m.next() != nil {
		m.evict(t)
	}
}

func (m *roomModel) evict(t int64) {
	if t >= m.looked {
		m.looked = t + int64(10*time.Second)
	}
}

// sleep sets when a waiter looks next.
func (m *roomModel) sleep(c *roomCall, t int64) {
	c.poll = t + min(c.end-t, 250*int64(ms))
	first := m.next()
	if at := m.looked + 512; m.expand > 1 && at > t && at < c.poll && (first == nil || first == c) {
		c.poll = at
	}
}

func (m *roomModel) come(t int64, weight, level int, longest int64) {
	c := &roomCall{weight: weight, level: level, came: t}
	m.calls = append(m.calls, c)
	switch {
	case weight > m.limit*m.expand:
		c.outcome = TooHeavy
		return
	case len(m.room()) == 0 && m.fits(weight):
		m.answer(c, Taken, t)
		return
	}
	m.look(t)
	if first := m.next(); first == nil || first.level > level {
		if m.fits(weight) {
			m.answer(c, Taken, t)
			return
		}
		m.evict(t)
	}
	room := m.room()
	if c.outcome = Full; m.wait == 0 {
		return
	}
	if len(room) >= m.capacity {
		slices.SortStableFunc(room, func(x, y *roomCall) int { return x.level - y.level })
		last := room[len(room)-1]
		if last.level <= level {
			return
		}
		m.answer(last, Full, t)
	}
	if len(room) == 0 {
		m.standing = false
	}
	c.waiting, c.outcome = true, 0
	m.serve(t)
	c.end = t + m.wait
	if longest > 0 {
		c.end = min(c.end, t+longest)
	}
	m.sleep(c, t)
}

// until lets everything happen that falls before t.
func (m *roomModel) until(t int64) {
	for {
		var c *roomCall
		for _, x := range m.room() {
			if x.poll < t && (c == nil || x.poll < c.poll) {
				c = x
			}
		}
		if c == nil {
			return
		}
		now := c.poll
		m.look(now)
		switch {
		case !c.waiting:
		case now < c.end:
			m.sleep(c, now)
		default:
			m.answer(c, Full, now)
			m.serve(now)
		}
	}
}

func (m *roomModel) cancel(c *roomCall, t int64) {
	if c.waiting {
		m.answer(c, Ended, t)
		m.serve(t)
	}
}

func (m *roomModel) observe(c *roomCall, t int64) {
	d := (t>>unitShift - c.began>>unitShift) << unitShift
	if m.service != 0 {
		d = m.service + (d-m.service)/8
	}
	m.service = max(1, d)
}

func (m *roomModel) exit(c *roomCall, t int64) {
	if m.live -= c.weight; len(m.room()) > 0 {
		m.observe(c, t)
		m.serve(t)
	}
}

// exitAndCancel are the ways in which an exit and the end of a waiting call's context at the same instant can fall out.
func (m *roomModel) exitAndCancel(exit, cancel int, t int64) (all []*roomModel) {
	add := func(f func(m *roomModel, e, c *roomCall)) {
		x := m.clone()
		f(x, x.calls[exit], x.calls[cancel])
		all = append(all, x)
	}
	add(func(m *roomModel, e, c *roomCall) { m.cancel(c, t); m.exit(e, t) })
	add(func(m *roomModel, e, c *roomCall) {
		m.exit(e, t)
		if c.waiting {
			m.cancel(c, t)
		} else if c.outcome.Admitted() { // it gives the place back unused
			c.outcome = Ended
			m.live -= c.weight
			m.serve(t)
		}
	})
	add(func(m *roomModel, e, c *roomCall) {
		m.live -= e.weight
		m.cancel(c, t)
		m.observe(e, t)
		m.serve(t)
	})
	add(func(m *roomModel, e, c *roomCall) { // the place is handed over before its call looks whether anybody waits
		m.live -= e.weight
		if m.cancel(c, t); len(m.room()) > 0 {
			m.observe(e, t)
			m.serve(t)
		}
	})
	add(func(m *roomModel, e, c *roomCall) {
		m.live -= e.weight
		m.observe(e, t)
		m.cancel(c, t)
		m.serve(t)
	})
	return all
}

// realCall is a call of the bulkhead under test.
type realCall struct {
	cancel  context.CancelFunc
	permit  Permit
	outcome Outcome
	done    atomic.Bool
	left    bool
	began   time.Time
	took    time.Duration
	longest time.Duration
}

func (c *realCall) run(ctx context.Context, b *Bulkhead, d Demand) {
	var t Ticket
	t, c.outcome = b.TakeSlow(ctx, &d)
	if c.outcome.Admitted() {
		c.permit = b.Hold(t, Site{}, false)
	}
	c.took = time.Since(c.began)
	c.done.Store(true)
}

const roomKinds = 32

// runRoom runs a program. Each step falls on a microsecond of its own within its millisecond, and everything lasts whole milliseconds,
// so that no two things happen at the same instant unless a step wants them to.
func runRoom(program []op) string {
	cfg := Config{Limit: 2, Expand: 2, Stale: 24 * time.Hour, Wait: 3 * time.Second, Queue: 6}
	b, err := New(cfg)
	if err != nil {
		return err.Error()
	}
	m := &roomModel{limit: 2, expand: 2, bound: 2, capacity: 6, wait: int64(3 * time.Second)}
	var calls []*realCall
	defer func() {
		b.Close()
		synctest.Wait()
		runtime.KeepAlive(calls)
	}()
	pick := func(n uint8, ok func(i int, c *realCall) bool) int {
		var list []int
		for i, c := range calls {
			if ok(i, c) {
				list = append(list, i)
			}
		}
		if len(list) == 0 {
			return -1
		}
		return list[int(n)%len(list)]
	}
	running := func(_ int, c *realCall) bool { return c.done.Load() && c.outcome.Admitted() && !c.left }
	waiting := func(_ int, c *realCall) bool { return !c.done.Load() }
	start, passed := now(), time.Duration(0)
	for i, p := range program {
		switch {
		case p.a < 200:
			passed += time.Duration(p.a/4) * ms
		case p.a < 250:
			passed += time.Duration(p.a-150) * ms
		case p.a < 255:
			passed += 270 * ms
		default:
			passed += 4 * time.Second
		}
		t := start + int64(passed) + int64(i+1)*int64(time.Microsecond)
		<-time.After(time.Duration(t - now()))
		synctest.Wait()
		m.until(t)
		possible := []*roomModel{m}
		what := ""
		switch p.kind % roomKinds {
		default: // somebody comes
			d := Demand{Weight: 1, Level: int(p.b) % Levels, Longest: []time.Duration{0, 0, 0, 30 * ms, 249 * ms, time.Second}[p.b/4%6]}
			if k := p.kind % roomKinds; k >= 14 {
				d.Weight = 1 + int(p.b)%6
			}
			what = fmt.Sprintf("%+v comes", d)
			ctx, cancel := context.WithCancel(context.Background())
			c := &realCall{cancel: cancel, began: time.Now(), longest: time.Duration(m.wait)}
			if d.Longest > 0 {
				c.longest = min(c.longest, d.Longest)
			}
			calls = append(calls, c)
			go c.run(ctx, b, d)
			m.come(t, d.Weight, d.Level, int64(d.Longest))
		case 19, 20, 21, 22, 23, 24, 25, 26, 27:
			if k := pick(p.b, running); k >= 0 {
				what = fmt.Sprintf("call %d leaves", k)
				calls[k].left = true
				if !calls[k].permit.Exit() {
					return "Exit does not count"
				}
				m.exit(m.calls[k], t)
			}
		case 28:
			if k := pick(p.b, waiting); k >= 0 {
				what = fmt.Sprintf("call %d is cancelled", k)
				calls[k].cancel()
				m.cancel(m.calls[k], t)
			}
		case 29, 30:
			k, w := pick(p.b, running), pick(p.b/8, waiting)
			if k >= 0 && w >= 0 {
				what = fmt.Sprintf("call %d leaves as call %d is cancelled", k, w)
				calls[k].left = true
				calls[w].cancel()
				calls[k].permit.Exit()
				possible = m.exitAndCancel(k, w, t)
			}
		case 18: // else overload stands in one step of a hundred
			if what = "overload begins"; len(m.room()) > 0 {
				b.mu.Lock()
				b.room.standing, b.room.calm = true, t
				b.mu.Unlock()
				m.standing, m.calm = true, t
			}
		case 31:
			m.looked = 0
			if p.b%3 > 0 {
				n := int(p.b / 3 % 9)
				what = fmt.Sprint("SetBound ", n)
				b.SetBound(n)
				m.bound = max(1, min(n, m.limit*m.expand))
				m.serve(t)
				break
			}
			cfg.Limit, cfg.Expand, cfg.Queue = 1+int(p.b/3)%4, 1+int(p.b/16)%3, 1+int(p.b/8)%6
			cfg.Wait = []time.Duration{3 * time.Second, 3 * time.Second, 400 * ms, 0}[p.b/64]
			what = fmt.Sprintf("%+v", cfg)
			if err := b.Configure(cfg); err != nil {
				return err.Error()
			}
			m.limit, m.expand, m.bound, m.capacity, m.wait = cfg.Limit, cfg.Expand, cfg.Limit, cfg.Queue, int64(cfg.Wait)
			for _, c := range m.room() {
				if c.weight > m.limit*m.expand {
					m.answer(c, TooHeavy, t)
				}
			}
			m.serve(t)
		}
		synctest.Wait()
		wrong := ""
		for _, x := range possible {
			if wrong = compareRoom(b, x, calls); wrong == "" {
				m = x
				break
			}
		}
		if wrong != "" {
			return fmt.Sprintf("step %d after %v, %s: %s", i, passed, what, wrong)
		}
	}
	return ""
}

func compareRoom(b *Bulkhead, m *roomModel, calls []*realCall) string {
	for i, c := range calls {
		x := m.calls[i]
		if c.done.Load() == x.waiting || c.done.Load() && c.outcome != x.outcome {
			return fmt.Sprintf("call %d (%+v): answered %v with %v", i, *x, c.done.Load(), c.outcome)
		}
		if c.done.Load() && c.took > c.longest {
			return fmt.Sprintf("call %d is answered after %v, its wait is %v", i, c.took, c.longest)
		}
	}
	s := b.Snapshot()
	if s.InFlight != m.live || s.Waiting != len(m.room()) || s.Bound != m.bound {
		return fmt.Sprintf("%+v, want in flight %d, waiting %d, bound %d", s, m.live, len(m.room()), m.bound)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.service.Load() != m.service {
		return fmt.Sprintf("service time %d, want %d", b.service.Load(), m.service)
	}
	if s.Waiting > 0 && (b.room.standing != m.standing || b.room.calm != m.calm) {
		return fmt.Sprintf("overload stands: %v since %d; want %v since %d", b.room.standing, b.room.calm, m.standing, m.calm)
	}
	return ""
}

// TestModelOfTheRoom: who is served when, who is refused when, and what is learned from it, compared with the reference after every
// step.
func TestModelOfTheRoom(t *testing.T) {
	step := rapid.Custom(func(t *rapid.T) op {
		return op{evenly(roomKinds).Draw(t, "kind"), evenly(256).Draw(t, "a"), evenly(256).Draw(t, "b")}
	})
	rapid.Check(t, func(rt *rapid.T) {
		program := rapid.SliceOfN(step, 40, 150).Draw(rt, "program")
		failure := ""
		synctest.Test(t, func(*testing.T) { failure = runRoom(program) })
		if failure != "" {
			rt.Fatal(failure)
		}
	})
}
