package registry

import (
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

func TestWatchHearsEveryKindOfChange(t *testing.T) {
	r := New()
	var heard [][]Key
	stop := r.Watch(func(changed []Key) { heard = append(heard, changed) })
	mustDeclare(t, r, "b", Spec{Limit: 1})
	steps := []struct {
		name   string
		change func() error
		want   []Key // nil with called: the default spec
		called bool
	}{
		{"declare", func() error { return r.Declare("a", Spec{Limit: 1}) }, []Key{"a"}, true},
		{"declare again", func() error { return r.Declare("a", Spec{Limit: 1}) }, nil, false},
		{"replace", func() error { return r.Replace(map[Key]Spec{"c": {}, "b": {Limit: 2}, "a": {Limit: 2}}) }, []Key{"a", "b", "c"}, true},
		{"replace one of two", func() error { return r.Replace(map[Key]Spec{"a": {Limit: 2}, "b": {Limit: 3}}) }, []Key{"b"}, true},
		{"replace with the same", func() error { return r.Replace(map[Key]Spec{"a": {Limit: 2}}) }, nil, false},
		{"replace nothing", func() error { return r.Replace(nil) }, nil, false},
		{"remove", func() error { r.Remove("b", "unknown", "a", "a"); return nil }, []Key{"a", "b"}, true},
		{"remove nothing", func() error { r.Remove("unknown"); return nil }, nil, false},
		{"default", func() error { return r.SetDefault(Spec{Limit: 3}) }, nil, true},
		{"same default", func() error { return r.SetDefault(Spec{Limit: 3}) }, nil, false},
	}
	for _, step := range steps {
		heard = nil
		if err := step.change(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		switch {
		case !step.called && len(heard) != 0:
			t.Errorf("%s: %v is reported, nothing changed", step.name, heard)
		case step.called && len(heard) != 1:
			t.Errorf("%s is reported %d times", step.name, len(heard))
		case step.called && (!slices.Equal(heard[0], step.want) || (heard[0] == nil) != (step.want == nil)):
			t.Errorf("%s is reported as %v, want %v", step.name, heard[0], step.want)
		}
	}
	heard = nil
	for _, refused := range []func() error{
		func() error { return r.Declare("c", Spec{Limit: 99}) },
		func() error { return r.Declare("x y", Spec{}) },
		func() error { return r.Replace(map[Key]Spec{"d": {}, "e": {Limit: -1}}) },
		func() error { return r.SetDefault(Spec{Limit: -1}) },
	} {
		if refused() == nil {
			t.Error("a wrong change is let through")
		}
	}
	stop()
	stop()
	mustDeclare(t, r, "after", Spec{})
	if len(heard) != 0 {
		t.Errorf("refused changes or changes after stop are reported: %v", heard)
	}
}

func TestWatchSeesTheChange(t *testing.T) {
	r := New()
	var seen []int
	defer r.Watch(func(changed []Key) {
		s, _ := r.Lookup(changed[0])
		seen = append(seen, s.Limit)
		changed[0] = "scribbled" // the slice is the watcher's own
	})()
	defer r.Watch(func(changed []Key) {
		if changed[0] != "a" {
			t.Errorf("the second watcher gets %q", changed[0])
		}
	})()
	mustDeclare(t, r, "a", Spec{Limit: 1})
	if err := r.Replace(map[Key]Spec{"a": {Limit: 2}}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(seen, []int{1, 2}) {
		t.Errorf("limits seen %v, want [1 2]", seen)
	}
}

func TestWatchStopsOnlyItself(t *testing.T) {
	r := New()
	calls := [2]int{}
	fn := func(i int) func([]Key) { return func([]Key) { calls[i]++ } }
	stop0 := r.Watch(fn(0))
	stop1 := r.Watch(fn(1))
	mustDeclare(t, r, "a", Spec{})
	stop0()
	mustDeclare(t, r, "b", Spec{})
	stop1()
	mustDeclare(t, r, "c", Spec{})
	if calls != [2]int{1, 2} {
		t.Errorf("calls %v, want [1 2]", calls)
	}
	r.Watch(nil)()
	r.Watch(nil)
	mustDeclare(t, r, "d", Spec{})
}

// A watcher may do anything with the registry that called it. Were it called
// under the lock, this test would not come back.
func TestWatcherMayCallEverything(t *testing.T) {
	r := New()
	depth := 0
	var stop func()
	stop = r.Watch(func(changed []Key) {
		depth++
		defer func() { depth-- }()
		if depth > 1 {
			return // the changes below are reported from within this call
		}
		r.Lookup("a")
		for range r.All() {
			break
		}
		for _, err := range []error{
			r.Declare("from-watcher", Spec{Limit: 1}),
			r.Replace(map[Key]Spec{"a": {Limit: 5}}),
			r.SetDefault(Spec{Limit: 5}),
		} {
			if err != nil {
				t.Error(err)
			}
		}
		r.Remove("from-watcher")
		r.Watch(func([]Key) {})()
		stop()
	})
	mustDeclare(t, r, "a", Spec{Limit: 1})
	if s, _ := r.Lookup("a"); s.Limit != 5 {
		t.Errorf("the watcher's own change is lost: %v", s)
	}
}

// A change is told once: a watcher that panics, or ends the goroutine, must not keep it from those behind it.
func TestWatcherThatPanics(t *testing.T) {
	for name, change := range map[string]func(r *Registry) error{
		"declare": func(r *Registry) error { return r.Declare("new", Spec{}) },
		"replace": func(r *Registry) error { return r.Replace(map[Key]Spec{"k": {Limit: 2}}) },
		"remove":  func(r *Registry) error { r.Remove("k"); return nil },
		"default": func(r *Registry) error { return r.SetDefault(Spec{Limit: 2}) },
	} {
		for _, end := range []struct {
			name string
			fn   func()
			want any
		}{
			{"panic", func() { panic("boom") }, "boom"},
			{"goexit", runtime.Goexit, nil},
		} {
			t.Run(name+"/"+end.name, func(t *testing.T) {
				r := New()
				mustDeclare(t, r, "k", Spec{Limit: 1})
				calls := [5]int{}
				for i := range calls {
					r.Watch(func([]Key) {
						calls[i]++
						if i%2 == 1 { // one after another
							end.fn()
						}
					})
				}
				var got any
				var stack string
				returned := false
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() {
						stack = string(debug.Stack())
						got = recover()
					}()
					_ = change(r)
					returned = true
				}()
				<-done
				if calls != [5]int{1, 1, 1, 1, 1} {
					t.Errorf("calls %v, want each once", calls)
				}
				if got != end.want || returned {
					t.Errorf("got %v, returned %v; want %v to go on", got, returned, end.want)
				}
				if !strings.Contains(stack, "TestWatcherThatPanics.func5") && end.want != nil {
					t.Errorf("the stack of the panic is lost:\n%s", stack)
				}
				// The registry is as usable as before.
				if err := r.SetDefault(r.fallback); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
