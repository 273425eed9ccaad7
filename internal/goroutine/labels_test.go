package goroutine

import (
	"reflect"
	"testing"
)

// A build whose label sets are not what they are today is not touched.
func TestLayout(t *testing.T) {
	type pair struct{ A, B string }
	type set struct{ List []pair }
	type nested struct{ Set set }
	for _, c := range []struct {
		like any
		want bool
	}{
		{&set{}, true}, {&nested{}, true}, {nested{}, false}, {&map[string]string{}, false}, {&struct{ List []string }{}, false},
		{&struct {
			List []pair
			More int
		}{}, false},
		{&struct {
			List []struct{ A, B, C string }
		}{}, false}, {&struct{ List []struct{ A, B any } }{}, false},
	} {
		if got := sameLayout(reflect.TypeOf(c.like)); got != c.want {
			t.Errorf("%T: %v", c.like, got)
		}
	}
	if sameLayout(nil) {
		t.Error("nil")
	}
	if !Recognizable() {
		t.Error("goroutines of this build cannot be marked")
	}
}
