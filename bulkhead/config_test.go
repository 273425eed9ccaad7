package bulkhead

import (
	"testing"
	"time"
)

func TestConfigSentences(t *testing.T) {
	for _, tt := range []struct {
		cfg  Config
		want string // "" if the settings are fine
	}{
		{Config{}, "bulkhead: Limit is 0, must be 1..250000"},
		{Config{Limit: -1}, "bulkhead: Limit is -1, must be 1..250000"},
		{Config{Limit: 1}, ""},
		{Config{Limit: MaxLimit}, ""},
		{Config{Limit: MaxLimit + 1}, "bulkhead: Limit is 250001, must be 1..250000"},
		{Config{Limit: 1, Expand: -1}, "bulkhead: Expand is -1, must be 1..4"},
		{Config{Limit: 1, Expand: 1}, ""},
		{Config{Limit: 1, Expand: 5}, "bulkhead: Expand is 5, must be 1..4"},
		{Config{Limit: 1, Stale: -time.Second}, "bulkhead: Stale is -1s, must not be negative"},
		{Config{Limit: 1, Wait: -1}, "bulkhead: Wait is -1ns, must not be negative"},
		{Config{Limit: 1, Queue: -1}, "bulkhead: Queue is -1, must be 0..100000"},
		{Config{Limit: 1, Queue: MaxQueue}, ""},
		{Config{Limit: 1, Queue: MaxQueue + 1}, "bulkhead: Queue is 100001, must be 0..100000"},
	} {
		b, err := New(tt.cfg)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tt.want || (b == nil) != (err != nil) {
			t.Errorf("New(%+v) = %v, %q; want %q", tt.cfg, b != nil, got, tt.want)
		}
		if got := configureError(t, tt.cfg); got != tt.want {
			t.Errorf("Configure(%+v) = %q, want %q", tt.cfg, got, tt.want)
		}
	}
}

// configureError tries settings on a running bulkhead, whose old ones must survive a refusal.
func configureError(t *testing.T, cfg Config) string {
	t.Helper()
	b := mustNew(t, Config{Limit: 3, Expand: 2})
	p := enter(t, b)
	err := b.Configure(cfg)
	if err == nil {
		return ""
	}
	if s := b.Snapshot(); s.Limit != 3 || s.Bound != 3 || s.Max != 6 || s.InFlight != 1 {
		t.Errorf("refused settings changed the bulkhead: %+v", s)
	}
	p.Exit()
	return err.Error()
}

func TestConfigDefaults(t *testing.T) {
	want := Config{Limit: 7, Expand: 4, Stale: time.Minute, Queue: 7}
	if got := (Config{Limit: 7}).withDefaults(); got != want {
		t.Errorf("defaults: %+v, want %+v", got, want)
	}
	if got := want.withDefaults(); got != want {
		t.Errorf("filling defaults twice changes them: %+v", got)
	}
	if got := (Config{Limit: MaxLimit}).withDefaults().Queue; got != MaxQueue {
		t.Errorf("the default queue of the largest limit is %d, want %d", got, MaxQueue)
	}
}

// TestInitInPlace is for a bulkhead that is part of something else, as guard's are.
func TestInitInPlace(t *testing.T) {
	var outer struct {
		name string
		b    Bulkhead
	}
	if err := outer.b.Init(Config{}); err == nil {
		t.Error("Init takes a limit of 0")
	}
	if err := outer.b.Init(Config{Limit: 1}); err != nil {
		t.Fatal(err)
	}
	p := enter(t, &outer.b)
	check(t, &outer.b, 1, 0, 0)
	p.Exit()
	check(t, &outer.b, 0, 0, 0)
}
