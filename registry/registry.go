package registry

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// ErrDeclared is the error of declaring a key a second time with another spec.
// Two parts of a program disagree about one operation then, and the one that
// starts last must not win silently. Replace is the way to change a spec.
var ErrDeclared = errors.New("registry: key is declared with another spec")

// Registry is the table of declared keys and their specs. All methods may be
// called at any time from any goroutine. Create one with New.
type Registry struct {
	// procs is read once, so that "the same spec" means the same for as long as
	// the registry lives, even when the container gets more processors.
	procs int

	// mu guards everything below. It is held for operations on these maps only,
	// never while a watcher runs.
	mu       sync.RWMutex
	specs    map[Key]Spec                // with defaults filled
	groups   map[string]map[Key]struct{} // members of each group, never empty
	fallback Spec                        // spec of undeclared keys, with defaults filled
	watchers []*watcher                  // replaced, never changed in place
}

// New returns an empty registry. Its undeclared keys have the zero Spec with
// defaults filled.
func New() *Registry {
	procs := runtime.GOMAXPROCS(0)
	return &Registry{
		procs:    procs,
		specs:    make(map[Key]Spec),
		groups:   make(map[string]map[Key]struct{}),
		fallback: Spec{}.withDefaults(procs),
	}
}

// Declare adds a key. Declaring a key again with the same spec, defaults filled,
// changes nothing; with another spec it is ErrDeclared. Everything that is wrong
// with key and spec comes back at once, as an errors.Join of *Problem, and then
// nothing is declared.
func (r *Registry) Declare(key Key, s Spec) error {
	if problems := validate(key, s); len(problems) > 0 {
		return errors.Join(problems...)
	}
	s = s.withDefaults(r.procs)
	r.mu.Lock()
	if old, ok := r.specs[key]; ok {
		r.mu.Unlock()
		if old == s {
			return nil
		}
		return fmt.Errorf("%w: %s has %s", ErrDeclared, quote(string(key)), difference(old, s))
	}
	specs := map[Key]Spec{key: s}
	if err := r.disagreements(specs); err != nil {
		r.mu.Unlock()
		return err
	}
	watchers := r.set(specs)
	r.mu.Unlock()
	notify(watchers, []Key{key})
	return nil
}

// Replace gives every key in specs its new spec; keys that were not declared
// become so, and keys that are not in specs stay as they are. Either all of it
// takes effect in one step or, when anything is wrong, nothing does, and the error
// is an errors.Join of *Problem over all keys in order. Keys of one group that
// change what they share must be in one call.
func (r *Registry) Replace(specs map[Key]Spec) error {
	var problems []error
	filled := make(map[Key]Spec, len(specs))
	for _, key := range slices.Sorted(maps.Keys(specs)) {
		problems = append(problems, validate(key, specs[key])...)
		filled[key] = specs[key].withDefaults(r.procs)
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	r.mu.Lock()
	if err := r.disagreements(filled); err != nil {
		r.mu.Unlock()
		return err
	}
	// A rule file is applied as a whole on every reload; those who watch should
	// hear only of what became different.
	for key, s := range filled {
		if old, ok := r.specs[key]; ok && old == s {
			delete(filled, key)
		}
	}
	watchers := r.set(filled)
	r.mu.Unlock()
	notify(watchers, slices.Sorted(maps.Keys(filled)))
	return nil
}

// Remove makes keys undeclared, so that they have the default spec. Keys that
// are not declared are ignored.
func (r *Registry) Remove(keys ...Key) {
	removed := make([]Key, 0, len(keys))
	r.mu.Lock()
	for _, key := range keys {
		old, ok := r.specs[key]
		if !ok {
			continue
		}
		r.leaveGroup(key, old.Group)
		delete(r.specs, key)
		removed = append(removed, key)
	}
	watchers := r.watchers
	r.mu.Unlock()
	slices.Sort(removed)
	notify(watchers, removed)
}

// SetDefault sets the spec of keys that are not declared. Declared keys keep
// theirs: a field they leave unset has the package's default, not this one's. A
// default spec has no group, because everything that nobody thought of would
// share one bound.
func (r *Registry) SetDefault(s Spec) error {
	problems := s.problems("")
	if s.Group != "" {
		problems = append(problems, &Problem{
			Field: fieldGroup, Value: quote(s.Group), Allowed: "empty in the default spec",
		})
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	s = s.withDefaults(r.procs)
	r.mu.Lock()
	same := r.fallback == s
	r.fallback = s
	watchers := r.watchers
	r.mu.Unlock()
	if !same {
		tell(watchers, nil) // no key changed, but what undeclared keys have
	}
	return nil
}

// Lookup returns the spec of a key, with every default filled, and whether the
// key is declared. An undeclared key has the default spec.
func (r *Registry) Lookup(key Key) (Spec, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if s, ok := r.specs[key]; ok {
		return s, true
	}
	return r.fallback, false
}

// All returns the declared keys in order, each with its spec. What is seen is
// one state of the registry, taken when the loop begins; the loop's body may
// change the registry.
func (r *Registry) All() iter.Seq2[Key, Spec] {
	return func(yield func(Key, Spec) bool) {
		r.mu.RLock()
		specs := maps.Clone(r.specs)
		r.mu.RUnlock()
		for _, key := range slices.Sorted(maps.Keys(specs)) {
			if !yield(key, specs[key]) {
				return
			}
		}
	}
}

// set stores filled specs and returns who must hear of it. The caller holds mu.
func (r *Registry) set(specs map[Key]Spec) []*watcher {
	for key, s := range specs {
		r.leaveGroup(key, r.specs[key].Group)
		r.joinGroup(key, s.Group)
		r.specs[key] = s
	}
	return r.watchers
}

// validate reports everything that is wrong with a key and its spec. A broken key
// does not hide what is wrong with the spec: one run shows every slip.
func validate(key Key, s Spec) []error {
	var problems []error
	if err := key.Validate(); err != nil {
		problems = append(problems, err)
	}
	return append(problems, s.problems(key)...)
}

// difference names the fields in which two filled specs differ.
func difference(declared, now Spec) string {
	var b strings.Builder
	other := now.fields()
	for i, f := range declared.fields() {
		if f.value == other[i].value {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s=%s and not %s", f.name, f.value, other[i].value)
	}
	return b.String()
}
