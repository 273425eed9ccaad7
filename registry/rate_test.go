package registry

import (
	"strings"
	"testing"
	"time"
)

func TestRate(t *testing.T) {
	for _, c := range []struct {
		rate     Rate
		text     string
		complete Rate
	}{
		{Rate{}, "", Rate{}},
		{Rate{Calls: 100}, "100/1s", Rate{100, time.Second, 100, "token", ""}},
		{Rate{Calls: 1, Per: time.Hour, Burst: 3, By: "caller"}, "1/1h,burst:3,by:caller", Rate{1, time.Hour, 3, "token", "caller"}},
		{Rate{Calls: 5, Algorithm: "sliding"}, "5/1s,algorithm:sliding", Rate{5, time.Second, 0, "sliding", ""}},
		{Rate{Calls: 5, Algorithm: "fixed"}, "5/1s,algorithm:fixed", Rate{5, time.Second, 0, "fixed", ""}},
		{Rate{Calls: 5, Algorithm: "leaky"}, "5/1s,algorithm:leaky", Rate{5, time.Second, 5, "leaky", ""}},
	} {
		if got := c.rate.String(); got != c.text {
			t.Errorf("%+v reads %q, want %q", c.rate, got, c.text)
		}
		if got := (Spec{Rate: c.rate}).WithDefaults(); got.Rate != c.complete || got.WithDefaults() != got || got.Validate() != nil {
			t.Errorf("%+v with defaults is %+v, want %+v; %v", c.rate, got.Rate, c.complete, got.Validate())
		}
	}
	for want, rate := range map[string]Rate{
		"rate burst":     {Calls: 5, Algorithm: "fixed", Burst: 1},
		"rate algorithm": {Calls: 5, Algorithm: "Token"},
		"rate by":        {Calls: 5, By: "user"},
		"rate per":       {Calls: 5, Per: 1},
		"1 to 10000000":  {Calls: 5, Burst: -1},
		"10000000 calls": {Per: time.Second},
	} {
		if err := (Spec{Rate: rate}).Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", rate, err, want)
		}
	}
}
