package guard

import (
	"cmp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
	"weak"

	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/registry"
)

// table finds the guard of a key. It never holds two guards of one key: a guard that is dropped for want of room stays known
// weakly, and comes back if somebody still holds it.
type table struct {
	rt *Runtime
	// front is indexed by a hash of the key's address: a constant has one. The content is compared, so that a wrong
	// index is a miss and never a wrong answer.
	front [256]atomic.Pointer[Guard]
	byKey sync.Map // registry.Key -> *Guard

	mu         sync.Mutex // guards the rest, and what is stored in byKey; a bulkhead's lock may be taken inside it
	weak       map[registry.Key]weak.Pointer[Guard]
	undeclared int // in byKey
	overflow   *Guard
	invalid    *Guard
	allBusy    time.Time     // when drop last found nothing to drop
	shared     atomic.Uint64 // look-ups that got the overflow guard, not told of
	told       time.Time
}

func (t *table) init(rt *Runtime) {
	t.rt = rt
	t.weak = map[registry.Key]weak.Pointer[Guard]{}
}

func (t *table) get(key registry.Key) *Guard {
	address := uint64(uintptr(unsafe.Pointer(unsafe.StringData(string(key)))))
	i := (address + uint64(len(key))) * 0x9E3779B97F4A7C15 >> 56
	if g := t.front[i].Load(); g != nil && g.key == key {
		return g
	}
	return t.miss(key, i)
}

//go:noinline
func (t *table) miss(key registry.Key, i uint64) *Guard {
	v, ok := t.byKey.Load(key)
	if !ok {
		g, keep := t.create(key)
		if !keep {
			return g
		}
		v = g
	}
	g := v.(*Guard)
	if t.front[i].Load() != g {
		t.front[i].Store(g)
	}
	return g
}

// find returns the guard of a key if there is one, held or not.
func (t *table) find(key registry.Key) *Guard {
	if v, ok := t.byKey.Load(key); ok {
		return v.(*Guard)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if v, ok := t.byKey.Load(key); ok {
		return v.(*Guard)
	}
	return t.weak[key].Value()
}

// create finds or makes the guard of a key that byKey lacks. keep is false for the guards that stand in for others.
func (t *table) create(key registry.Key) (g *Guard, keep bool) {
	t.rt.start()
	if key.Validate() != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.invalid == nil {
			t.invalid = t.make("(invalid)", true)
		}
		return t.invalid, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if v, ok := t.byKey.Load(key); ok {
		return v.(*Guard), true
	}
	_, declared := t.rt.reg.Lookup(key)
	if !declared && t.undeclared >= t.rt.opts.maxKeys && t.weak[key].Value() == nil && !t.drop() {
		if t.overflow == nil {
			t.overflow = t.make("(overflow)", false)
		}
		t.shared.Add(1)
		return t.overflow, false
	}
	if g = t.weak[key].Value(); g == nil {
		g = t.make(registry.Key(strings.Clone(string(key))), false)
	}
	delete(t.weak, key)
	g.declared = declared
	if !declared {
		t.undeclared++
	}
	t.byKey.Store(g.key, g)
	return g, true
}

func (t *table) make(key registry.Key, invalid bool) *Guard {
	g := &Guard{key: key, rt: t.rt, invalid: invalid, refused: newRefusals(), created: time.Now()}
	g.self = g
	t.plan(g)
	return g
}

// dropPause is how long a table in which all guards were busy is not searched again.
const dropPause = 100 * time.Millisecond

// drop lets go of a sixteenth of the undeclared guards, those idle the longest. False: all are busy. Under mu.
func (t *table) drop() bool {
	now := time.Now()
	if d := now.Sub(t.allBusy); d >= 0 && d < dropPause {
		return false
	}
	type idle struct {
		g     *Guard
		since time.Duration
	}
	var list []idle
	t.byKey.Range(func(_, v any) bool {
		g := v.(*Guard)
		if g.declared {
			return true
		}
		if ok, since := g.plan.Load().bulkhead.Idle(); ok {
			list = append(list, idle{g, min(since, now.Sub(g.created))})
		}
		return true
	})
	slices.SortFunc(list, func(a, b idle) int { return cmp.Compare(b.since, a.since) })
	list = list[:min(len(list), max(1, t.rt.opts.maxKeys/16))]
	gone := make(map[*Guard]bool, len(list))
	for _, x := range list {
		t.forget(x.g)
		gone[x.g] = true
	}
	for i := range t.front {
		if g := t.front[i].Load(); gone[g] {
			t.front[i].CompareAndSwap(g, nil)
		}
	}
	if len(list) == 0 {
		t.allBusy = now
	}
	return len(list) > 0
}

// forget keeps a guard only for those who hold it. Under mu.
func (t *table) forget(g *Guard) {
	t.byKey.Delete(g.key)
	t.undeclared--
	p := weak.Make(g)
	t.weak[g.key] = p
	runtime.AddCleanup(g, func(key registry.Key) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.weak[key] == p {
			delete(t.weak, key)
		}
	}, g.key)
}

// plan makes a guard's first plan, or a new one after its spec was replaced. Under mu.
func (t *table) plan(g *Guard) {
	spec, _ := t.rt.reg.Lookup(g.key)
	old := g.plan.Load()
	p := &plan{spec: spec, inject: t.rt.opts.injector, invalid: g.invalid, bulkhead: &g.own}
	p.loose = bulkhead.Demand{Weight: 1, Level: p.level(nil)}
	if spec.Group != "" {
		p.loose.Owner = &g.self
		p.bulkhead = t.group(spec)
	}
	p.scoped = p.loose
	p.scoped.Scoped = true
	if old == nil {
		t.open(&g.own, g.key, spec, g.self)
	}
	g.plan.Store(p)
	g.direct.Store(p.direct())
	if old != nil && bulkheadConfig(old.spec) != bulkheadConfig(spec) {
		if err := p.bulkhead.Configure(bulkheadConfig(spec)); err != nil {
			panic(err) // not reached: the registry's ranges lie within the bulkhead's
		}
	}
}

// replan follows a replaced spec, and tells of it.
func (t *table) replan(g *Guard) {
	t.mu.Lock()
	old := g.plan.Load()
	t.plan(g)
	spec, declared := t.rt.reg.Lookup(g.key)
	if held, ok := t.byKey.Load(g.key); ok && held == g && declared != g.declared {
		g.declared = declared
		if declared {
			t.undeclared--
		} else {
			t.undeclared++
		}
	}
	t.mu.Unlock()
	if old.spec != spec {
		e := g.event(EventSpec)
		e.Spec = spec
		t.rt.hub.publish(e)
	}
}

// group is the bulkhead that the keys of a group share. Under mu.
func (t *table) group(spec registry.Spec) *bulkhead.Bulkhead {
	b := t.rt.groups[spec.Group]
	if b == nil {
		b = new(bulkhead.Bulkhead)
		t.open(b, registry.Key(spec.Group), spec, nil)
		t.rt.groups[spec.Group] = b
	}
	return b
}

func (t *table) open(b *bulkhead.Bulkhead, name registry.Key, spec registry.Spec, owner any) {
	cfg := bulkheadConfig(spec)
	cfg.Owner, cfg.Memory, cfg.Reported = owner, t.rt.opts.memory, &t.rt.reported
	if t.rt.opts.expander != nil {
		cfg.Expander = t.rt.opts.expander(name)
	}
	if err := b.Init(cfg); err != nil {
		panic(err) // not reached: the registry's ranges lie within the bulkhead's
	}
	if t.rt.closed.Load() {
		b.Close()
	}
}

// each calls f for every guard that is held, and those that stand in for others, outside of the table's lock.
func (t *table) each(f func(*Guard)) {
	t.byKey.Range(func(_, v any) bool { f(v.(*Guard)); return true })
	t.mu.Lock()
	extra := []*Guard{t.overflow, t.invalid}
	for _, p := range t.weak {
		extra = append(extra, p.Value())
	}
	t.mu.Unlock()
	for _, g := range extra {
		if g != nil {
			f(g)
		}
	}
}

// close closes every bulkhead, those to come included.
func (t *table) close() {
	t.mu.Lock()
	t.rt.closed.Store(true)
	t.mu.Unlock()
	t.each(func(g *Guard) { g.plan.Load().bulkhead.Close() })
}

// tellOverflow tells of calls that shared the overflow guard, at most once a minute.
func (t *table) tellOverflow() {
	if t.shared.Load() == 0 || !t.told.IsZero() && time.Since(t.told) < time.Minute {
		return
	}
	t.told = time.Now()
	t.mu.Lock()
	g := t.overflow
	t.mu.Unlock()
	e := g.event(EventKeysFull)
	e.Count = t.shared.Swap(0)
	t.rt.hub.publish(e)
}

func ours(function string) bool {
	return strings.HasPrefix(function, "github.com/spillway-go/spillway/guard.") ||
		strings.HasPrefix(function, "github.com/spillway-go/spillway/bulkhead.") ||
		strings.HasPrefix(function, "github.com/spillway-go/spillway/httpguard.")
}
