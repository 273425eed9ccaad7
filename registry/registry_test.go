package registry

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// state is everything a reader can see of a registry.
func state(r *Registry) map[Key]Spec {
	seen := maps.Collect(r.All())
	fallback, _ := r.Lookup("nobody declares this")
	seen[""] = fallback
	return seen
}

func mustDeclare(t *testing.T, r *Registry, key Key, s Spec) {
	t.Helper()
	if err := r.Declare(key, s); err != nil {
		t.Fatal(err)
	}
}

func TestDeclareAndLookup(t *testing.T) {
	r := New()
	mustDeclare(t, r, "shop.Store.Get", Spec{Limit: 20, Wait: time.Second})
	got, declared := r.Lookup("shop.Store.Get")
	if want := (Spec{Limit: 20, Wait: time.Second}).WithDefaults(); got != want || !declared {
		t.Errorf("Lookup = %v, %t, want %v, true", got, declared, want)
	}
	got, declared = r.Lookup("shop.Store.Put")
	if want := (Spec{}).WithDefaults(); got != want || declared {
		t.Errorf("Lookup of an undeclared key = %v, %t, want %v, false", got, declared, want)
	}
}

func TestDeclareTwice(t *testing.T) {
	r := New()
	mustDeclare(t, r, "a.B.C", Spec{Limit: 20})
	mustDeclare(t, r, "a.B.C", Spec{Limit: 20})
	// A default that is written out is the same default.
	mustDeclare(t, r, "a.B.C", Spec{Limit: 20, Expand: 4, Stale: time.Minute})

	err := r.Declare("a.B.C", Spec{Limit: 10, Stale: time.Second})
	if !errors.Is(err, ErrDeclared) {
		t.Fatalf("another spec: %v, want ErrDeclared", err)
	}
	const want = `registry: key is declared with another spec: "a.B.C" has limit=20 and not 10, stale=60s and not 1s`
	if err.Error() != want {
		t.Errorf("\n got %s\nwant %s", err, want)
	}
	if got, _ := r.Lookup("a.B.C"); got.Limit != 20 {
		t.Errorf("the refused spec took effect: %v", got)
	}
}

func TestDeclareReportsEverything(t *testing.T) {
	r := New()
	err := r.Declare("a b", Spec{Limit: -1, Expand: 9})
	const want = `registry: key is "a b", must be 1 to 256 bytes of printable characters without spaces
registry: key "a b": limit is -1, must be 1 to 250000
registry: key "a b": expand is 9, must be 1 to 4`
	if err == nil || err.Error() != want {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
	if _, declared := r.Lookup("a b"); declared {
		t.Error("a refused key is declared")
	}
}

func TestReplace(t *testing.T) {
	r := New()
	mustDeclare(t, r, "a", Spec{Limit: 1})
	mustDeclare(t, r, "b", Spec{Limit: 2})
	if err := r.Replace(map[Key]Spec{"b": {Limit: 20}, "c": {Limit: 30}}); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[Key]int{"a": 1, "b": 20, "c": 30} {
		if got, declared := r.Lookup(key); !declared || got.Limit != want {
			t.Errorf("%s: limit %d, declared %t, want %d", key, got.Limit, declared, want)
		}
	}
	if err := r.Replace(nil); err != nil {
		t.Errorf("replacing nothing: %v", err)
	}
}

func TestReplaceRefusedChangesNothing(t *testing.T) {
	r := New()
	mustDeclare(t, r, "a", Spec{Limit: 1})
	mustDeclare(t, r, "g", Spec{Limit: 7, Group: "db"})
	before := state(r)
	for _, specs := range []map[Key]Spec{
		{"a": {Limit: 5}, "b": {Limit: -1}},
		{"a": {Limit: 5}, "b c": {}},
		{"a": {Limit: 5}, "h": {Limit: 8, Group: "db"}},
	} {
		if err := r.Replace(specs); err == nil {
			t.Errorf("%v is let through", specs)
		}
		if after := state(r); !maps.Equal(before, after) {
			t.Errorf("%v was refused and changed\n%v into\n%v", specs, before, after)
		}
	}
}

func TestReplaceReportsAllKeysInOrder(t *testing.T) {
	err := New().Replace(map[Key]Spec{"b": {Limit: -1}, "c": {}, "a": {Stale: 1}})
	const want = `registry: key "a": stale is 1ns, must be 10ms to 24h
registry: key "b": limit is -1, must be 1 to 250000`
	if err == nil || err.Error() != want {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
}

func TestRemove(t *testing.T) {
	r := New()
	mustDeclare(t, r, "a", Spec{Limit: 1})
	mustDeclare(t, r, "b", Spec{Limit: 2})
	r.Remove("a", "unknown")
	if got, declared := r.Lookup("a"); declared || got != (Spec{}).WithDefaults() {
		t.Errorf("a removed key has %v, declared %t", got, declared)
	}
	if _, declared := r.Lookup("b"); !declared {
		t.Error("another key was removed")
	}
	mustDeclare(t, r, "a", Spec{Limit: 3})
}

func TestSetDefault(t *testing.T) {
	r := New()
	mustDeclare(t, r, "declared", Spec{})
	if err := r.SetDefault(Spec{Limit: 3}); err != nil {
		t.Fatal(err)
	}
	if got, _ := r.Lookup("other"); got != (Spec{Limit: 3}).WithDefaults() {
		t.Errorf("an undeclared key has %v", got)
	}
	if got, _ := r.Lookup("declared"); got != (Spec{}).WithDefaults() {
		t.Errorf("a declared key follows the default spec: %v", got)
	}
	err := r.SetDefault(Spec{Limit: -1, Group: "all"})
	const want = `registry: limit is -1, must be 1 to 250000
registry: group is "all", must be empty in the default spec`
	if err == nil || err.Error() != want {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
	if got, _ := r.Lookup("other"); got.Limit != 3 {
		t.Errorf("a refused default took effect: %v", got)
	}
}

func TestAll(t *testing.T) {
	r := New()
	for i := range 20 {
		mustDeclare(t, r, Key(fmt.Sprintf("key%02d", (i*7)%20)), Spec{Limit: 1 + i})
	}
	want := state(r)
	var keys []Key
	for key, s := range r.All() {
		if s != want[key] {
			t.Errorf("%s comes with %v, has %v", key, s, want[key])
		}
		keys = append(keys, key)
		// The body may change the registry; the loop goes on with what it began with.
		r.Remove("key19")
		mustDeclare(t, r, key+"!", Spec{})
	}
	if len(keys) != 20 || !slices.IsSorted(keys) {
		t.Errorf("All gives %v", keys)
	}
	for range r.All() {
		break // leaving early is fine
	}
}

// The message names a key of any length in a bounded number of bytes.
func TestLongKeyInMessages(t *testing.T) {
	err := New().Declare(Key(strings.Repeat("k", 1<<20)), Spec{Limit: -1})
	if err == nil || len(err.Error()) > 1000 {
		t.Errorf("the message has %d bytes", len(err.Error()))
	}
}
