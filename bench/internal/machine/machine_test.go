package machine

import (
	"runtime"
	"strings"
	"testing"
)

func TestDescribe(t *testing.T) {
	m := Describe([]string{"example.org/nobody"})
	if s := m.String(); !strings.Contains(s, runtime.Version()) || !strings.Contains(s, runtime.GOOS+"/"+runtime.GOARCH) {
		t.Errorf("%q does not name Go and the system", s)
	}
	if v, ok := m.Versions["example.org/nobody"]; ok {
		t.Errorf("a module that is not there has version %q", v)
	}
}

func TestHardware(t *testing.T) {
	m := Machine{CPU: "Abacus", CPUs: 8, MaxProcs: 2, System: "plan9/arm", Go: "go1", Load: "0.50"}
	if got, want := m.String(), "Abacus, 8 CPUs, GOMAXPROCS 2, plan9/arm, go1; load average 0.50 before the run"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := (Machine{CPUs: 1, MaxProcs: 1, System: "s", Go: "g"}).String(), "1 CPUs, s, g"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
