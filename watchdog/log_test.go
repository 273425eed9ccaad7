package watchdog_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/spillway-go/spillway/watchdog"
)

// The log's lines are a contract: people search for them. A change here is a change of the major version.
var lines = []struct {
	report watchdog.Report
	json   string
}{
	{
		watchdog.Report{
			Kind: watchdog.Slow, Key: key, Count: 1, Goroutines: []uint64{42}, Age: 1234567 * time.Microsecond, Youngest: 1234567 * time.Microsecond,
			Slow: time.Second, InFlight: 3, Bound: 20, Stack: []string{"main.work /src/shop/work.go:41", "main.main /src/shop/main.go:7"},
		},
		`{"level":"warn","event":"slow","key":"shop/store.Store.Get","count":1,"goroutine":42,"age_ms":1234.567,"slow_ms":1000,` +
			`"in_flight":3,"bound":20,"stack":["main.work /src/shop/work.go:41","main.main /src/shop/main.go:7"],` +
			`"message":"a call of \"shop/store.Store.Get\" runs for 1.235s"}`,
	},
	{
		watchdog.Report{
			Kind: watchdog.Still, Key: key, Count: 3, Goroutines: []uint64{42, 43, 44}, Age: 4 * time.Second, Youngest: 2 * time.Second,
			Slow: time.Second, InFlight: 3, Bound: 20, NoStack: watchdog.NoLabel, Suppressed: 5,
		},
		`{"level":"warn","event":"still_slow","key":"shop/store.Store.Get","count":3,"goroutine":42,"goroutines":[42,43,44],"age_ms":4000,` +
			`"youngest_ms":2000,"slow_ms":1000,"in_flight":3,"bound":20,"suppressed":5,"no_stack":"no goroutine wears its label: profiler ` +
			`labels were replaced inside the call, or its goroutine went on","message":"3 calls of \"shop/store.Store.Get\" still run, for 2s to 4s"}`,
	},
	{
		watchdog.Report{Kind: watchdog.More, Count: 34, Groups: 12},
		`{"level":"warn","event":"more_slow","count":34,"groups":12,"message":"34 more late calls, in 12 groups"}`,
	},
	{
		watchdog.Report{
			Kind: watchdog.Ended, Key: key, Count: 1, Goroutines: []uint64{42}, Age: 5 * time.Second, Youngest: 5 * time.Second, Slow: time.Second,
			InFlight: 2, Bound: 20,
		},
		`{"level":"info","event":"slow_ended","key":"shop/store.Store.Get","count":1,"goroutine":42,"age_ms":5000,"slow_ms":1000,"in_flight":2,` +
			`"bound":20,"message":"a call of \"shop/store.Store.Get\" ended after 5s"}`,
	},
	{
		watchdog.Report{Kind: watchdog.Lost, Key: key, Count: 1, Goroutines: []uint64{42}, Age: time.Second, Youngest: time.Second, InFlight: 2, Bound: 20, Site: "work.go:41 main.work"},
		`{"level":"warn","event":"lost","key":"shop/store.Store.Get","count":1,"goroutine":42,"age_ms":1000,"in_flight":2,"bound":20,` +
			`"site":"work.go:41 main.work","message":"the pass of a call of \"shop/store.Store.Get\" was lost without Exit after 1s"}`,
	},
	{
		watchdog.Report{Kind: watchdog.Evicted, Key: key, Count: 2, Goroutines: []uint64{42, 43}, Age: time.Minute, Youngest: time.Minute, InFlight: 20, Bound: 20},
		`{"level":"warn","event":"evicted","key":"shop/store.Store.Get","count":2,"goroutine":42,"goroutines":[42,43],"age_ms":60000,"youngest_ms":60000,` +
			`"in_flight":20,"bound":20,"message":"2 calls of \"shop/store.Store.Get\" lost their place after 1m0s and run on"}`,
	},
	{
		watchdog.Report{Kind: watchdog.Trouble, Problem: "OnSlow panicked: no"},
		`{"level":"warn","event":"watchdog","problem":"OnSlow panicked: no","message":"the watchdog: OnSlow panicked: no"}`,
	},
}

func TestLogLines(t *testing.T) {
	for _, l := range lines {
		var b bytes.Buffer
		watchdog.Zerolog(zerolog.New(&b))(l.report)
		if got := strings.TrimSpace(b.String()); got != l.json {
			t.Errorf("got\n%s\nwant\n%s", got, l.json)
		}
	}
}

// slog gets the same fields in the same order.
func TestLogBySlog(t *testing.T) {
	drop := func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey:
			return slog.Attr{}
		case slog.LevelKey:
			return slog.String(slog.LevelKey, strings.ToLower(a.Value.String()))
		default:
			return a
		}
	}
	for _, l := range lines {
		var b bytes.Buffer
		watchdog.Slog(slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{ReplaceAttr: drop})))(l.report)
		// slog writes the message behind the level, zerolog at the end.
		level, rest, _ := strings.Cut(strings.TrimSpace(b.String()), `"msg":`)
		message, fields, _ := strings.Cut(rest, `,"event":`)
		got := level + `"event":` + strings.TrimSuffix(fields, "}") + `,"message":` + message + "}"
		if got != l.json {
			t.Errorf("got\n%s\nwant\n%s", got, l.json)
		}
	}
}

func TestKindsOfOtherNumbers(t *testing.T) {
	if got := watchdog.Kind(0).String() + watchdog.Kind(200).String(); got != "Kind(0)Kind(200)" {
		t.Error(got)
	}
	if got := (watchdog.Report{}).String(); got != "Kind(0)" {
		t.Error(got)
	}
}
