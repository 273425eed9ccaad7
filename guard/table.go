package guard

import (
	"maps"
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

	mu         sync.Mutex          // guards the rest, and what is stored in byKey; a bulkhead's lock may be taken inside it
	held       []*Guard            // the same guards as in byKey, in no order
	equipped   map[*Guard]struct{} // of the held ones those with a breaker or a throttle, whose windows move on
	weak       map[registry.Key]weak.Pointer[Guard]
	undeclared int // in byKey
	overflow   *Guard
	invalid    *Guard
	groups     map[string]*group
	leaving    []*Guard // dropped with refusals that were not told of, held until they are

	idle        []idle    // what is left of the last search for idle guards
	searchAfter time.Time // it found too few to search again before

	shared atomic.Uint64 // look-ups that got the overflow guard, not told of
	told   time.Time     // the housekeeper's
}

// The keys of the guards that stand in for others. A spec that is declared for overflowKey is that of the guard which keys
// share when there are too many.
const (
	overflowKey registry.Key = "(overflow)"
	invalidKey  registry.Key = "(invalid)"
)

func (t *table) init(rt *Runtime) {
	t.rt = rt
	t.weak = map[registry.Key]weak.Pointer[Guard]{}
	t.groups = map[string]*group{}
	t.equipped = map[*Guard]struct{}{}
}

// attend keeps equipped up. Under mu.
func (t *table) attend(g *Guard) {
	if p := g.plan.Load(); p.breaker == nil && p.throttle == nil || !g.held {
		delete(t.equipped, g)
		return
	}
	t.equipped[g] = struct{}{}
}

// tick moves the windows of breakers and throttles on.
func (t *table) tick() {
	t.mu.Lock()
	list := slices.Collect(maps.Keys(t.equipped))
	t.mu.Unlock()
	for _, g := range list {
		p := g.plan.Load()
		if p.breaker != nil {
			p.breaker.Tick()
		}
		if p.throttle != nil {
			p.throttle.Tick()
		}
	}
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
	g := guardIn(v)
	if t.front[i].Load() != g {
		t.front[i].Store(g)
	}
	return g
}

// guardIn is a value of byKey.
func guardIn(v any) *Guard {
	g, _ := v.(*Guard)
	return g
}

// find returns the guard of a key if there is one, held or not.
func (t *table) find(key registry.Key) *Guard {
	if v, ok := t.byKey.Load(key); ok {
		return guardIn(v)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if v, ok := t.byKey.Load(key); ok {
		return guardIn(v)
	}
	if key == overflowKey {
		return t.overflow
	}
	return t.weak[key].Value()
}

// create finds or makes the guard of a key that byKey lacks. keep is false for the guards that stand in for others.
func (t *table) create(key registry.Key) (g *Guard, keep bool) {
	t.rt.start()
	valid := key.Validate() == nil
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !valid || key == invalidKey:
		return t.standIn(&t.invalid, invalidKey), false
	case key == overflowKey:
		return t.standIn(&t.overflow, overflowKey), false
	}
	if v, ok := t.byKey.Load(key); ok {
		return guardIn(v), true
	}
	g = t.weak[key].Value()
	_, declared := t.rt.reg.Lookup(key)
	if !declared && t.undeclared >= t.rt.opts.maxKeys && !t.drop(1) && g == nil {
		t.shared.Add(1)
		return t.standIn(&t.overflow, overflowKey), false
	}
	if g == nil {
		g = t.make(registry.Key(strings.Clone(string(key))))
	}
	t.hold(g, declared)
	return g, true
}

// hold puts a guard into byKey. Under mu.
func (t *table) hold(g *Guard, declared bool) {
	delete(t.weak, g.key)
	g.declared, g.came = declared, time.Now()
	if !declared {
		t.undeclared++
	}
	t.byKey.Store(g.key, g)
	g.held, g.at = true, int32(len(t.held))
	t.held = append(t.held, g)
	t.attend(g)
	t.account(g)
}

// standIn is the guard that stands in for those that cannot be held, made when first needed. Under mu.
func (t *table) standIn(at **Guard, key registry.Key) *Guard {
	if *at == nil {
		*at = t.make(key)
	}
	return *at
}

func (t *table) make(key registry.Key) *Guard {
	g := &Guard{key: key, rt: t.rt, refused: newRefusals(), marks: t.rt.watchdog != nil}
	g.self = g
	t.plan(g)
	return g
}

// each calls f for every guard that is held by the table or by somebody else, outside of the table's lock. The list is made
// under it, since a guard can move from the one to the other.
func (t *table) each(f func(*Guard)) {
	t.mu.Lock()
	list := make([]*Guard, 0, len(t.held)+len(t.weak)+2)
	list = append(list, t.held...)
	list = append(list, t.overflow, t.invalid)
	for _, p := range t.weak {
		list = append(list, p.Value())
	}
	t.mu.Unlock()
	for _, g := range list {
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
	t.eachBulkhead(func(_ registry.Key, b *bulkhead.Bulkhead) { b.Close() })
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
