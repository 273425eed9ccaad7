package guard

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/spillway-go/spillway/registry"
)

// tableModel is what the table of keys should hold, written down plainly.
type tableModel struct {
	rt       *Runtime
	keys     []registry.Key
	room     int
	in       map[registry.Key]*use // undeclared guards in the table
	toDrop   int                   // how many of them have to go in this step
	declared map[registry.Key]bool // in the registry
	pinned   map[registry.Key]bool // guards of declared keys, in the table for good
	known    map[registry.Key]weak.Pointer[Guard]
	handles  map[registry.Key]*Guard
	passes   map[registry.Key][]Pass
	overflow []Pass
}

// use is when a guard's last call started and ended; both are when it came into the table before its first.
type use struct{ start, end time.Time }

// dropTo notes that the table has to come down to n guards now. It reports whether it can.
func (m *tableModel) dropTo(n int) bool {
	idle := 0
	for key := range m.in {
		if len(m.passes[key]) == 0 {
			idle++
		}
	}
	need := max(0, len(m.in)-n)
	m.toDrop = min(need, idle)
	return need <= idle
}

// dropped sees which guards the table has dropped. It may choose, but never one that was used after another became idle.
func (m *tableModel) dropped(t *rapid.T) {
	var gone []registry.Key
	for key := range m.in {
		if _, ok := m.rt.table.byKey.Load(key); !ok {
			gone = append(gone, key)
		}
	}
	if len(gone) != m.toDrop {
		t.Fatalf("the table dropped %q, want %d guards", gone, m.toDrop)
	}
	m.toDrop = 0
	for _, key := range gone {
		for other, u := range m.in {
			if !slices.Contains(gone, other) && len(m.passes[other]) == 0 && u.end.Before(m.in[key].start) {
				t.Fatalf("%q was dropped, in use after %q had become idle", key, other)
			}
		}
		if len(m.passes[key]) > 0 {
			t.Fatalf("%q was dropped with a call in flight", key)
		}
	}
	for _, key := range gone {
		delete(m.in, key)
	}
}

func used() *use { return &use{time.Now(), time.Now()} }

// get looks a key up in both and returns the guard, with whether it is the key's own.
func (m *tableModel) get(t *rapid.T, key registry.Key) (*Guard, bool) {
	_, in := m.in[key]
	in = in || m.pinned[key]
	m.rt.table.mu.Lock()
	before := m.rt.table.weak[key].Value() // nobody may hold it, and yet it is not collected
	m.rt.table.mu.Unlock()
	own := in || m.declared[key] || m.dropTo(m.room-1) || before != nil
	g := m.rt.For(key)
	m.dropped(t)
	switch {
	case m.declared[key]:
		m.pinned[key] = true
	case own && !in:
		m.in[key] = used()
	}
	switch {
	case own && g.key != key || !own && g.key != overflowKey:
		t.Fatalf("For(%q) is the guard of %q, should be its own: %v", key, g.key, own)
	case !own:
		return g, false
	case (in || before != nil || len(m.passes[key]) > 0 || m.handles[key] != nil) && m.known[key] != weak.Make(g):
		t.Fatalf("%q has a second guard", key)
	}
	m.known[key] = weak.Make(g)
	return g, true
}

func (m *tableModel) enter(t *rapid.T, key registry.Key) {
	g, own := m.get(t, key)
	pass, err := g.Enter(context.Background())
	if err != nil {
		return
	}
	if !own {
		m.overflow = append(m.overflow, pass)
		return
	}
	m.passes[key] = append(m.passes[key], pass)
	if _, in := m.in[key]; in {
		m.in[key] = used()
	}
}

func (m *tableModel) exit(_ *rapid.T, key registry.Key) {
	list := m.passes[key]
	if len(list) == 0 {
		return
	}
	list[0].Exit()
	m.passes[key] = list[1:]
	if u := m.in[key]; u != nil {
		u.end = time.Now()
	}
	if len(list) == 1 {
		delete(m.passes, key)
	}
}

func (m *tableModel) declare(t *rapid.T, key registry.Key) {
	if err := m.rt.reg.Replace(map[registry.Key]registry.Spec{key: {Limit: 3}}); err != nil {
		t.Fatal(err)
	}
	again := m.declared[key]
	m.declared[key] = true
	if _, in := m.in[key]; in || m.handles[key] != nil || len(m.passes[key]) > 0 {
		m.pinned[key] = true
	} else if g := m.rt.table.find(key); g != nil { // not collected yet
		m.pinned[key] = true
	}
	delete(m.in, key)
	if !again {
		m.dropTo(m.room) // what busy keys had too much
		m.dropped(t)
	}
}

func (m *tableModel) remove(t *rapid.T, key registry.Key) {
	if !m.declared[key] {
		m.rt.reg.Remove(key)
		return // no change, nobody hears of it
	}
	delete(m.declared, key)
	if m.pinned[key] {
		delete(m.pinned, key)
		m.in[key] = used()
	}
	m.dropTo(m.room)
	m.rt.reg.Remove(key)
	m.dropped(t)
}

// check compares the table with the model.
func (m *tableModel) check(t *rapid.T) {
	tab := &m.rt.table
	tab.mu.Lock()
	defer tab.mu.Unlock()
	var got []registry.Key
	for _, v := range tab.byKey.Range {
		got = append(got, guardIn(v).key)
	}
	want := slices.Concat(slices.Collect(maps.Keys(m.in)), slices.Collect(maps.Keys(m.pinned)))
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("the table holds %q, want %q", got, want)
	}
	if tab.undeclared != len(m.in) {
		t.Fatalf("it counts %d undeclared guards, there are %d", tab.undeclared, len(m.in))
	}
	for i := range tab.front {
		if g := tab.front[i].Load(); g != nil && !slices.Contains(want, g.key) {
			t.Fatalf("the front still has the guard of %q, which was dropped", g.key)
		}
	}
	for key, p := range tab.weak {
		if g := p.Value(); g != nil && (g.key != key || slices.Contains(want, key)) {
			t.Fatalf("%q is known weakly as %q, and held as well", key, g.key)
		}
	}
	for key, list := range m.passes {
		if g := m.known[key].Value(); g == nil || g.own.InFlight() != len(list) {
			t.Fatalf("%q: %v, want %d in flight", key, g, len(list))
		}
	}
}

// inBubble hides the deadline of a test, which rapid asks for and which a bubble does not have.
type inBubble struct{ rapid.TB }

func TestTableOfKeysFollowsItsModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(inBubble{t}, func(t *rapid.T) {
			room := rapid.IntRange(1, 5).Draw(t, "room")
			rt, err := NewRuntime(nil, WithLogger(zerolog.Nop()), WithMaxKeys(room))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = rt.Close() }()
			if err := rt.reg.SetDefault(registry.Spec{Limit: 2}); err != nil {
				t.Fatal(err)
			}
			m := &tableModel{
				rt: rt, room: room, in: map[registry.Key]*use{}, declared: map[registry.Key]bool{}, pinned: map[registry.Key]bool{},
				known: map[registry.Key]weak.Pointer[Guard]{}, handles: map[registry.Key]*Guard{}, passes: map[registry.Key][]Pass{},
			}
			for i := range 8 {
				m.keys = append(m.keys, registry.Key(fmt.Sprint("key", i)))
			}
			key := rapid.SampledFrom(m.keys)
			act := func(f func(*rapid.T, registry.Key)) func(*rapid.T) {
				return func(t *rapid.T) {
					<-time.After(searchPause + time.Millisecond) // no two things at once, and no pause in force
					f(t, key.Draw(t, "key"))
				}
			}
			t.Repeat(map[string]func(*rapid.T){
				"":      m.check,
				"look":  act(func(t *rapid.T, key registry.Key) { m.get(t, key) }),
				"call":  act(m.enter),
				"call2": act(m.enter),
				"exit":  act(m.exit),
				"hold": act(func(t *rapid.T, key registry.Key) {
					if g, own := m.get(t, key); own {
						m.handles[key] = g
					}
				}),
				"let go":  act(func(_ *rapid.T, key registry.Key) { delete(m.handles, key) }),
				"declare": act(m.declare),
				"remove":  act(m.remove),
				"default": act(func(t *rapid.T, _ registry.Key) {
					if err := rt.reg.SetDefault(registry.Spec{Limit: 2 + rapid.IntRange(0, 1).Draw(t, "limit")}); err != nil {
						t.Fatal(err)
					}
				}),
				"collect": act(func(*rapid.T, registry.Key) { runtime.GC() }),
			})
			for _, list := range m.passes {
				for _, pass := range list {
					pass.Exit()
				}
			}
			for _, pass := range m.overflow {
				pass.Exit()
			}
		})
	})
}
