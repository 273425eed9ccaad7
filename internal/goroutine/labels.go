package goroutine

import (
	"context"
	"reflect"
	"runtime/pprof"
	"strings"
	"sync"
	"unsafe"
)

// The public way to label a goroutine, pprof.SetGoroutineLabels, sets labels but cannot read them, so that nobody could put back what a
// user's code had set before. The runtime keeps these two functions reachable and their types unchanged for that purpose, see
// runtime/proflabel.go. In a build in which they do not behave as known, no goroutine wears a badge: there is no public way to fall back to
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

// labelKey is BadgeLabel at an address of its own, that no user's constant shares: it tells our label sets from theirs.
var labelKey = strings.Clone(BadgeLabel)

// badgeOf returns the badge that a goroutine's label set is, or nil if it is the user's own, or none.
func badgeOf(set unsafe.Pointer) *Badge {
	if set == nil {
		return nil
	}
	list := (*labels)(set).list
	if len(list) == 0 || unsafe.StringData(list[0].key) != unsafe.StringData(labelKey) {
		return nil
	}
	return (*Badge)(set)
}

// Recognizable reports whether goroutines can wear badges in this build: its label sets and the two functions above are what this package
// takes them for. It asks once.
var Recognizable = sync.OnceValue(func() bool {
	Verify()
	if !Fast() {
		return false // a badge must know its goroutine, and 5 us a call is too much for that
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
