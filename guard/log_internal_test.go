package guard

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/spillway-go/spillway/registry"
)

// The names of the fields are a contract: people search their logs by them.
func TestLogLines(t *testing.T) {
	when := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		event         Event
		zerolog, slog string
	}{
		{
			Event{Time: when, Kind: EventRefused, Key: "k", Count: 3, Total: 3, InFlight: 2, Bound: 2},
			`{"level":"warn","event":"refused","key":"k","count":3,"total":3,"in_flight":2,"bound":2,"message":"k: 3 calls refused, 3 since it began (2 of 2 in flight)"}`,
			`level=WARN msg="k: 3 calls refused, 3 since it began (2 of 2 in flight)" event=refused key=k count=3 total=3 in_flight=2 bound=2`,
		},
		{
			Event{Time: when, Kind: EventCalm, Key: "k", Count: 5, Duration: 1500 * time.Millisecond, Bound: 2},
			`{"level":"info","event":"calm","key":"k","count":5,"duration_ms":1500,"in_flight":0,"bound":2,"message":"k: no more refusals; 5 calls were refused in 1.5s"}`,
			`level=INFO msg="k: no more refusals; 5 calls were refused in 1.5s" event=calm key=k count=5 duration_ms=1500 in_flight=0 bound=2`,
		},
		{
			Event{Time: when, Kind: EventLost, Key: "k", Count: 1, Duration: 1234567 * time.Nanosecond, Goroutine: 7, Site: "a.go:3 main.f", InFlight: 1, Bound: 2},
			`{"level":"warn","event":"lost","key":"k","count":1,"duration_ms":1.234567,"in_flight":1,"bound":2,"goroutine":7,"site":"a.go:3 main.f","message":"k: a pass taken by goroutine 7 1ms ago was lost without Exit; its place is free again, taken at a.go:3 main.f"}`,
			`level=WARN msg="k: a pass taken by goroutine 7 1ms ago was lost without Exit; its place is free again, taken at a.go:3 main.f" event=lost key=k count=1 duration_ms=1.234567 in_flight=1 bound=2 goroutine=7 site="a.go:3 main.f"`,
		},
		{
			Event{Time: when, Kind: EventEvicted, Key: "k", Count: 2, Duration: time.Minute, Goroutine: 7, InFlight: 2, Bound: 2},
			`{"level":"warn","event":"evicted","key":"k","count":2,"duration_ms":60000,"in_flight":2,"bound":2,"goroutine":7,"message":"k: a call of goroutine 7 is stuck for 1m0s; its place went to a newcomer"}`,
			`level=WARN msg="k: a call of goroutine 7 is stuck for 1m0s; its place went to a newcomer" event=evicted key=k count=2 duration_ms=60000 in_flight=2 bound=2 goroutine=7`,
		},
		{
			Event{Time: when, Kind: EventSpec, Key: "k", Bound: 4, Spec: registry.Spec{Limit: 4}},
			`{"level":"info","event":"spec","key":"k","in_flight":0,"bound":4,"spec":"limit=4","message":"k: spec is now limit=4"}`,
			`level=INFO msg="k: spec is now limit=4" event=spec key=k in_flight=0 bound=4 spec="limit=4"`,
		},
		{
			Event{Time: when, Kind: EventKeysFull, Key: overflowKey, Count: 9, InFlight: 1, Bound: 32},
			`{"level":"warn","event":"keys_full","key":"(overflow)","count":9,"in_flight":1,"bound":32,"message":"too many undeclared keys are busy at once: 9 calls shared the overflow guard"}`,
			`level=WARN msg="too many undeclared keys are busy at once: 9 calls shared the overflow guard" event=keys_full key=(overflow) count=9 in_flight=1 bound=32`,
		},
		{
			Event{Time: when, Kind: EventDropped, Key: "k", Count: 9, Bound: 1},
			`{"level":"warn","event":"dropped","key":"k","count":9,"in_flight":0,"bound":1,"message":"k: 9 reports of lost or stuck calls were dropped"}`,
			`level=WARN msg="k: 9 reports of lost or stuck calls were dropped" event=dropped key=k count=9 in_flight=0 bound=1`,
		},
		{
			Event{Time: when, Kind: EventDropped, Count: 9},
			`{"level":"warn","event":"dropped","count":9,"message":"9 events were not logged: the logger is slower than they come"}`,
			`level=WARN msg="9 events were not logged: the logger is slower than they come" event=dropped count=9`,
		},
	} {
		var z, s bytes.Buffer
		zerologLogger(zerolog.New(&z))(c.event)
		if got := strings.TrimSuffix(z.String(), "\n"); got != c.zerolog {
			t.Errorf("zerolog writes\n%s\nwant\n%s", got, c.zerolog)
		}
		slogLogger(slog.New(slog.NewTextHandler(&s, &slog.HandlerOptions{ReplaceAttr: withoutTime})))(c.event)
		if got := strings.TrimSuffix(s.String(), "\n"); got != c.slog {
			t.Errorf("slog writes\n%s\nwant\n%s", got, c.slog)
		}
	}
}

// A logger that panics loses its own events and nobody else's, says so once with its stack, and in the end how many they were.
func TestLoggersThatPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told, others bytes.Buffer
		broken := 3 // events
		rt, err := NewRuntime(nil, WithPressure(nil),
			WithLogger(zerolog.New(panicking(func() {
				if broken > 0 {
					broken--
					panic("out of\npaper")
				}
			}))),
			WithSlog(slog.New(slog.NewTextHandler(panicking(func() { panic(unprintable{}) }), nil))),
			WithLogger(zerolog.New(&others)),
			func(o *options) error { o.stderr = &told; return nil })
		if err != nil {
			t.Fatal(err)
		}
		rt.For("k")
		const n = 10
		for i := range n {
			if err := rt.Registry().Replace(map[registry.Key]registry.Spec{"k": {Limit: 1 + i}}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if got := strings.Count(others.String(), "\n"); got != n {
			t.Errorf("the logger behind those that panic has %d lines, want %d", got, n)
		}
		if broken != 0 {
			t.Errorf("the first logger did not go on: %d panics are left", broken)
		}
		const once = "panicked and lost an event; it goes on, and later panics are counted: "
		first := told.String()
		for _, want := range []string{
			"guard: logger 1 of 3 " + once + `"out of\npaper"` + "\ngoroutine ",
			"guard: logger 2 of 3 " + once + `"guard.unprintable"` + "\ngoroutine ",
			"panicking.Write", // where it happened
		} {
			if !strings.Contains(first, want) {
				t.Errorf("standard error lacks %q:\n%s", want, first)
			}
		}
		if strings.Count(first, once) != 2 || len(first) > 2*(maxStack+1000) {
			t.Errorf("%d panics are told in %d bytes, want each logger's first", strings.Count(first, once), len(first))
		}
		_ = rt.Close()
		want := "guard: logger 1 of 3 panicked and lost 3 events\nguard: logger 2 of 3 panicked and lost 10 events\n"
		if got := strings.TrimPrefix(told.String(), first); got != want {
			t.Errorf("in the end standard error has\n%s\nwant\n%s", got, want)
		}
	})
}

type panicking func()

func (p panicking) Write(b []byte) (int, error) { p(); return len(b), nil }

// unprintable is the value of a panic that panics when it is printed, and so does what it panics with.
type unprintable struct{}

func (unprintable) Error() string { panic(unprintable{}) }

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

func TestDefaultLoggerIsQuietAboutRoutine(t *testing.T) {
	if routine(Event{Kind: EventRefused}) || routine(Event{Kind: EventLost}) || !routine(Event{Kind: EventSpec}) || !routine(Event{Kind: EventCalm}) {
		t.Error("what is worth a warning has changed")
	}
}
