package watchdog

import (
	"context"
	"reflect"
	"runtime/pprof"
	"strings"
	"sync"
	"unsafe"

	"github.com/spillway-go/spillway/internal/goroutine"
)

// The public way to label a goroutine, pprof.SetGoroutineLabels, sets labels but cannot read them, so that nobody could put back what a
// user's code had set before. The runtime keeps these two functions reachable and their types unchanged for that purpose, see
// runtime/proflabel.go. In a build in which they do not behave as known, no goroutine is marked: there is no public way to fall back to
// that would leave the user's labels alone.

//go:linkname getLabels runtime/pprof.runtime_getProfLabel
func getLabels() unsafe.Pointer

//go:linkname setLabels runtime/pprof.runtime_setProfLabel
func setLabels(set unsafe.Pointer)

// labels has the memory layout of the label sets of runtime/pprof. See sameLayout.
type labels struct {
	list []label
}

type label struct {
	key, value string
}

// labelName is the name of our label in profiles.
const labelName = "spillway"

// labelKey is labelName at an address of its own, that no user's constant shares: it tells our label sets from theirs.
var labelKey = strings.Clone(labelName)

// tag is a label set of ours: what a marked goroutine wears. It is immutable, since goroutines and profiles keep it for as long as they
// like, and it keeps its Mark alive.
type tag struct {
	labels // first, as the runtime takes a pointer to it; our own label stands first in it

	mark *Mark
	user unsafe.Pointer // the label set of the user's that is part of this one, or nil
}

// tagOf returns the tag that a goroutine's label set is, or nil if it is the user's own.
func tagOf(set unsafe.Pointer) *tag {
	list := (*labels)(set).list
	if len(list) == 0 || unsafe.StringData(list[0].key) != unsafe.StringData(labelKey) {
		return nil
	}
	return (*tag)(set)
}

// newTag makes a label set of our label and the user's, in one allocation unless there are many.
func newTag(m *Mark, value string, user unsafe.Pointer) *tag {
	own := label{labelKey, value}
	if user == nil {
		b := &struct {
			tag

			array [1]label
		}{tag{mark: m}, [1]label{own}}
		b.list = b.array[:]
		return &b.tag
	}
	theirs := (*labels)(user).list
	b := new(struct {
		tag

		array [4]label
	})
	b.mark, b.user = m, user
	if n := len(theirs) + 1; n <= len(b.array) {
		b.list = b.array[:n]
	} else {
		b.list = make([]label, n)
	}
	b.list[0] = own
	copy(b.list[1:], theirs)
	return &b.tag
}

// usable reports whether this build's label sets and the two functions above are what this package takes them for. It asks once.
var usable = sync.OnceValue(func() bool {
	goroutine.Verify()
	if !goroutine.Fast() {
		return false // a mark must know its goroutine, and 5 us a call is too much for that
	}
	ctx := pprof.WithLabels(context.Background(), pprof.Labels("a", "1", "b", "2"))
	set := reflect.ValueOf(ctx.Value(contextKey()))
	if !sameLayout(set.Type()) {
		return false
	}
	list := (*labels)(set.UnsafePointer()).list
	if len(list) != 2 || list[0] != (label{"a", "1"}) || list[1] != (label{"b", "2"}) {
		return false
	}
	answer := make(chan bool)
	go func() { // a goroutine that nobody's labels can suffer on
		pprof.SetGoroutineLabels(ctx)
		ok := getLabels() == set.UnsafePointer()
		setLabels(nil)
		ok = ok && getLabels() == nil
		answer <- ok
	}()
	return <-answer
})

// contextKey is the key under which contexts carry label sets: what pprof.Label asks a context for.
func contextKey() any {
	s := spy{Context: context.Background()}
	pprof.Label(&s, "")
	return s.asked
}

type spy struct {
	context.Context

	asked any
}

func (s *spy) Value(key any) any {
	s.asked = key
	return nil
}

// sameLayout reports whether a pointer type leads to nothing but a slice of pairs of strings, in structs of one field.
func sameLayout(t reflect.Type) bool {
	if t == nil || t.Kind() != reflect.Pointer {
		return false
	}
	for t = t.Elem(); t.Kind() == reflect.Struct && t.NumField() == 1; {
		t = t.Field(0).Type
	}
	if t.Kind() != reflect.Slice {
		return false
	}
	pair := t.Elem()
	return pair.Kind() == reflect.Struct && pair.NumField() == 2 &&
		pair.Field(0).Type.Kind() == reflect.String && pair.Field(1).Type.Kind() == reflect.String
}
