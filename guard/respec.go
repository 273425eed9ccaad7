package guard

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/registry"
)

// defaultKey stands for all undeclared keys in the event of a new default spec.
const defaultKey registry.Key = "(default)"

// respec carries changed specs to the guards. Nil: the default spec changed.
func (rt *Runtime) respec(changed []registry.Key) {
	t := &rt.table
	if changed != nil {
		for _, key := range changed {
			if g := t.find(key); g != nil && t.replan(g) {
				e := g.event(EventSpec)
				e.Spec = g.plan.Load().spec
				rt.hub.publish(e)
			}
		}
		t.trim()
		return
	}
	t.each(func(g *Guard) { t.replan(g) }) // one event for all of them: there can be thousands
	e := Event{Time: time.Now(), Kind: EventSpec, Key: defaultKey}
	e.Spec, _ = rt.reg.Lookup("") // no key can be empty
	rt.hub.publish(e)
}

// replan follows a replaced spec. It reports whether the spec is another one.
func (t *table) replan(g *Guard) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := g.plan.Load()
	declared := t.plan(g)
	switch _, held := t.byKey.Load(g.key); {
	case g == t.invalid || g == t.overflow:
	case !held && declared:
		t.hold(g, true)
	case held && declared != g.declared:
		g.declared = declared
		if declared {
			t.undeclared--
		} else {
			t.undeclared++
			g.came = time.Now()
		}
	}
	return g.plan.Load().spec != old.spec
}

// plan makes a guard's first plan, or a new one after its spec was replaced, and reports whether the key is declared. The bulkhead
// changes first, so that a call that sees the new plan sees all of it. Under mu.
func (t *table) plan(g *Guard) (declared bool) {
	spec, declared := t.rt.reg.Lookup(g.key)
	cfg := bulkheadConfig(spec)
	if g.plan.Load() == nil {
		g.growth = t.open(&g.own, g.key, cfg, g)
		g.settings = settingsOf(cfg)
	}
	t.regroup(g, spec.Group, cfg)
	p := &plan{spec: spec, inject: t.rt.opts.injector, invalid: g.key == invalidKey, bulkhead: &g.own}
	p.loose = bulkhead.Demand{Weight: 1, Level: p.level(context.Background()), Longest: longestWait(spec)}
	force, grow := &g.settings, g.growth
	if g.group != nil {
		p.bulkhead, force, grow = &g.group.bulkhead, &g.group.settings, g.group.growth
		p.loose.Owner = &g.self
	}
	p.scoped = p.loose
	p.scoped.Scoped = true
	if want := settingsOf(cfg); *force != want {
		*force = want
		if err := p.bulkhead.Configure(cfg); err != nil {
			panic(err) // not reached: the registry's ranges lie within the bulkhead's
		}
		if grow != nil {
			grow.resize(cfg.Limit)
		}
	}
	g.equip(p, g.plan.Load())
	g.plan.Store(p)
	g.turn(byPlan, !p.direct())
	t.attend(g)
	t.account(g)
	return declared
}

// group is the bound that several keys share.
type group struct {
	bulkhead bulkhead.Bulkhead
	name     string
	settings settings
	growth   *growth
	members  int // guards
	counted  int // N as the scaler counts it
}

// regroup takes a guard out of its group, or none, and into another. A group that nobody is in goes when its last call has left:
// until then a member that comes back must find what is in flight. Under mu.
func (t *table) regroup(g *Guard, name string, cfg bulkhead.Config) {
	if g.group != nil {
		if g.group.name == name {
			return
		}
		g.group.members--
		g.group = nil
	}
	if name != "" {
		if t.groups[name] == nil {
			x := &group{name: name, settings: settingsOf(cfg)}
			x.growth = t.open(&x.bulkhead, registry.Key(name), cfg, nil)
			t.groups[name] = x
		}
		g.group = t.groups[name]
		g.group.members++
	}
	maps.DeleteFunc(t.groups, func(_ string, x *group) bool {
		if x.members > 0 {
			return false
		}
		idle, _ := x.bulkhead.Idle()
		if idle {
			t.rt.tell(registry.Key(x.name), &x.bulkhead)
			t.rt.recount(&x.counted, 0)
			if x.growth != nil {
				x.growth.resize(int(x.settings.limit)) // it steps no more
			}
		}
		return idle
	})
}

// account keeps the scaler's sum of N right: of the guards in the table, and of the groups that they are in. Under mu.
func (t *table) account(g *Guard) {
	limit := g.plan.Load().spec.Limit
	if g.group != nil {
		t.rt.recount(&g.group.counted, limit)
		limit = 0
	}
	if !g.held {
		limit = 0
	}
	t.rt.recount(&g.counted, limit)
}

func (rt *Runtime) recount(counted *int, limit int) {
	if rt.scaler != nil && limit != *counted {
		rt.scaler.Count(limit - *counted)
		*counted = limit
	}
}

// open makes a bulkhead, and returns what lets it grow, if the runtime lets any.
func (t *table) open(b *bulkhead.Bulkhead, name registry.Key, cfg bulkhead.Config, owner *Guard) *growth {
	if owner != nil {
		cfg.Owner = owner.self
	}
	cfg.Memory, cfg.Reported = t.rt.opts.memory, &t.rt.reported
	var grow *growth
	switch {
	case t.rt.opts.expander != nil:
		cfg.Expander = &expander{name: name, ask: t.rt.opts.expander}
	case t.rt.scaler != nil:
		grow = &growth{name: name, rt: t.rt, bulkhead: b, guard: owner}
		grow.limit.Store(int64(cfg.Limit))
		cfg.Expander = grow
	}
	if err := b.Init(cfg); err != nil {
		panic(err) // not reached: the registry's ranges lie within the bulkhead's
	}
	if t.rt.closed.Load() {
		b.Close()
	}
	return grow
}

// eachBulkhead calls f for every bulkhead, with its key or the name of its group, outside of the table's lock.
func (t *table) eachBulkhead(f func(registry.Key, *bulkhead.Bulkhead)) {
	t.each(func(g *Guard) { f(g.key, &g.own) })
	t.mu.Lock()
	groups := slices.Collect(maps.Values(t.groups))
	t.mu.Unlock()
	for _, x := range groups {
		f(registry.Key(x.name), &x.bulkhead)
	}
}
