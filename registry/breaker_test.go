package registry

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestBreakerAndThrottleDefaults(t *testing.T) {
	var none Spec
	if s := none.WithDefaults(); s.Breaker != (Breaker{}) || s.Throttle != (Throttle{}) {
		t.Errorf("a key has %v and %v that did not ask", s.Breaker, s.Throttle)
	}
	s := Spec{Breaker: Breaker{On: true}, Throttle: Throttle{K: 3}}.WithDefaults()
	if want := (Breaker{On: true, Ratio: 0.5, Min: 20, Window: 10 * time.Second, Open: 5 * time.Second, Probes: 3}); s.Breaker != want {
		t.Errorf("got %+v", s.Breaker)
	}
	if want := (Throttle{On: true, K: 3, Window: 10 * time.Second}); s.Throttle != want {
		t.Errorf("got %+v", s.Throttle)
	}
	if s.WithDefaults() != s || s.Validate() != nil {
		t.Error("defaults of defaults differ, or are wrong")
	}
}

func TestBreakerAndThrottleAsText(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{Breaker: Breaker{On: true}, Throttle: Throttle{On: true}}, "breaker=on throttle=on"},
		{Spec{Breaker: Breaker{Ratio: 0.25, Slow: time.Second}}, "breaker=ratio:0.25,slow:1s"},
		{Spec{Throttle: Throttle{K: 1.5, Window: time.Minute}}, "throttle=k:1.5,window:60s"},
		{
			Spec{Limit: 1, Breaker: Breaker{On: true}}.withDefaults(1),
			"limit=1 expand=4 stale=60s slow=5s criticality=critical breaker=ratio:0.5,min:20,window:10s,open:5s,probes:3",
		},
	} {
		if got := c.spec.String(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestBreakerAndThrottleAreChecked(t *testing.T) {
	err := Spec{
		Breaker:  Breaker{Ratio: 1.5, Min: -1, Window: time.Millisecond, Open: 2 * time.Hour, Probes: 1001, Slow: -1},
		Throttle: Throttle{K: 1, Window: -1},
	}.Validate()
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for _, want := range []string{
		"breaker ratio", "1.5", "above 0 and at most 1", "breaker min", "1 to 1000000", "breaker window", "100ms to 1h", "breaker open", "1ms to 1h",
		"breaker probes", "1 to 1000", "breaker slow", "throttle k", "above 1 and at most 100", "throttle window",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
	if _, ok := errors.AsType[*Problem](err); !ok {
		t.Errorf("%T", err)
	}
	if (Spec{Breaker: Breaker{Ratio: math.NaN()}}).Validate() == nil || (Spec{Throttle: Throttle{K: math.NaN()}}).Validate() == nil {
		t.Error("NaN passes")
	}
}
