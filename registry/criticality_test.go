package registry

import (
	"errors"
	"slices"
	"testing"
)

func TestCriticalityOrder(t *testing.T) {
	if !slices.IsSorted([]Criticality{CriticalityUnset, CriticalPlus, Critical, SheddablePlus, Sheddable}) {
		t.Error("levels are not ordered from the most to the least important")
	}
	var zero Criticality
	if zero != CriticalityUnset {
		t.Error("the zero value is a level")
	}
}

func TestParseCriticality(t *testing.T) {
	for _, c := range []Criticality{CriticalPlus, Critical, SheddablePlus, Sheddable} {
		got, err := ParseCriticality(c.String())
		if err != nil || got != c {
			t.Errorf("ParseCriticality(%q) = %v, %v", c, got, err)
		}
	}
	const must = ", must be critical_plus, critical, sheddable_plus or sheddable"
	for _, tc := range []struct{ in, want string }{
		{"", `registry: criticality is ""` + must},
		{"unset", `registry: criticality is "unset"` + must},
		{"Critical", `registry: criticality is "Critical"` + must},
		{"CRITICAL_PLUS", `registry: criticality is "CRITICAL_PLUS"` + must},
		{"critical ", `registry: criticality is "critical "` + must},
		{"critical-plus", `registry: criticality is "critical-plus"` + must},
		{"1", `registry: criticality is "1"` + must},
		{"a\nb", `registry: criticality is "a\nb"` + must},
	} {
		got, err := ParseCriticality(tc.in)
		if err == nil || err.Error() != tc.want {
			t.Errorf("ParseCriticality(%q)\n got %v\nwant %s", tc.in, err, tc.want)
		}
		if got != CriticalityUnset {
			t.Errorf("ParseCriticality(%q) returns %v beside its error", tc.in, got)
		}
	}
}

func TestCriticalityString(t *testing.T) {
	if got := CriticalityUnset.String(); got != "unset" {
		t.Errorf("unset prints as %q", got)
	}
	if got := Criticality(9).String(); got != "criticality(9)" {
		t.Errorf("a value that is no level prints as %q", got)
	}
}

func FuzzParseCriticality(f *testing.F) {
	for _, s := range []string{"critical_plus", "critical", "sheddable_plus", "sheddable", "unset", "", "Critical", "critical\n", "\xff"} {
		f.Add(s)
	}
	names := []string{"critical_plus", "critical", "sheddable_plus", "sheddable"}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseCriticality(s)
		switch known := slices.Contains(names, s); {
		case known && (err != nil || c.String() != s):
			t.Fatalf("ParseCriticality(%q) = %v, %v", s, c, err)
		case !known && (err == nil || c != CriticalityUnset):
			t.Fatalf("ParseCriticality(%q) = %v, %v, want a refusal", s, c, err)
		case !known:
			if _, ok := errors.AsType[*Problem](err); !ok {
				t.Fatalf("%T is not a *Problem", err)
			}
		}
	})
}
