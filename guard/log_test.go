package guard_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/pressure"
	"github.com/spillway-go/spillway/registry"
)

// lines is a log that tests can read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// take returns what was written since the last time.
func (l *lines) take() (list []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		list = append(list, strings.TrimSpace(line))
	}
	l.buf.Reset()
	return list
}

// Of an episode of refusals the log has the beginning and the end, however long it lasts, in every logger.
func TestLogHasBeginningAndEndOfAnEpisode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var z, s lines
		withoutTime := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}
		rt := newRuntime(t, guard.WithLogger(zerolog.New(&z)), guard.WithSlog(slog.New(slog.NewTextHandler(&s, &slog.HandlerOptions{ReplaceAttr: withoutTime}))))
		g := declared(t, rt, "k", registry.Spec{Limit: 1, Stale: time.Hour})
		elapse(10 * time.Millisecond) // not in step with the housekeeper
		h := block(g.Do)
		for range 30 {
			wantReason(t, g.Do(nothing), guard.ReasonFull)
			elapse(time.Second)
		}
		_ = h.end()
		elapse(20 * time.Second)
		synctest.Wait()
		wantZ := []string{
			`{"level":"warn","event":"refused","key":"k","count":1,"total":1,"in_flight":1,"bound":1,"message":"k: 1 calls refused, 1 since it began (1 of 1 in flight)"}`,
			`{"level":"info","event":"calm","key":"k","count":30,"duration_ms":30000,"in_flight":0,"bound":1,"message":"k: no more refusals; 30 calls were refused in 30s"}`,
		}
		wantS := []string{
			`level=WARN msg="k: 1 calls refused, 1 since it began (1 of 1 in flight)" event=refused key=k count=1 total=1 in_flight=1 bound=1`,
			`level=INFO msg="k: no more refusals; 30 calls were refused in 30s" event=calm key=k count=30 duration_ms=30000 in_flight=0 bound=1`,
		}
		if got := strings.Join(z.take(), "\n"); got != strings.Join(wantZ, "\n") {
			t.Errorf("zerolog has\n%s\nwant\n%s", got, strings.Join(wantZ, "\n"))
		}
		if got := strings.Join(s.take(), "\n"); got != strings.Join(wantS, "\n") {
			t.Errorf("slog has\n%s\nwant\n%s", got, strings.Join(wantS, "\n"))
		}
	})
}

// stuckWriter blocks until it is let go.
type stuckWriter struct {
	in, leave chan struct{}
	io.Writer
}

func (w *stuckWriter) Write(p []byte) (int, error) {
	select {
	case w.in <- struct{}{}:
		<-w.leave
	default:
	}
	return w.Writer.Write(p)
}

// A logger that hangs holds up neither calls nor subscribers nor the housekeeper, and afterwards the log says what it misses.
func TestLoggerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var z lines
		w := &stuckWriter{make(chan struct{}), make(chan struct{}), &z}
		rt := newRuntime(t, guard.WithLogger(zerolog.New(w)))
		declared(t, rt, "k", registry.Spec{Limit: 1})
		events := rt.Subscribe(5000)
		replace(t, rt, specs{"k": {Limit: 2}})
		<-w.in
		const more = 2000
		for i := range more {
			replace(t, rt, specs{"k": {Limit: 3 + i}})
			if err := rt.Do("k", nothing); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(drain(t, events)); n != more+1 {
			t.Errorf("a subscriber got %d events", n)
		}
		w.in = nil
		close(w.leave)
		synctest.Wait()
		got := z.take()
		if len(got) != 1+1+1024 || !strings.Contains(got[1], `"event":"dropped","count":976`) {
			t.Errorf("%d lines, the second is %s", len(got), got[1])
		}
	})
}

// A logger may call whatever it likes but Close.
func TestLoggerThatCallsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rt *guard.Runtime
		called := 0
		logger := writer(func() {
			called++
			if called > 3 {
				return // its own changes are events too
			}
			_ = rt.Do("k", nothing)
			_ = rt.Do("made in the logger", nothing)
			_ = rt.Do("made_in_the_logger", nothing)
			rt.Snapshot()
			if err := rt.Registry().Replace(specs{"k": {Limit: 10 + called}}); err != nil {
				t.Error(err)
			}
			s := rt.Subscribe(1)
			s.Close()
		})
		rt = newRuntime(t, guard.WithLogger(zerolog.New(logger)))
		declared(t, rt, "k", registry.Spec{Limit: 1})
		replace(t, rt, specs{"k": {Limit: 2}})
		synctest.Wait()
		if called != 4 || rt.For("k").Snapshot().Spec.Limit != 13 {
			t.Errorf("called %d times, the limit is %d", called, rt.For("k").Snapshot().Spec.Limit)
		}
	})
}

type writer func()

func (w writer) Write(p []byte) (int, error) { w(); return len(p), nil }

func TestOptionsThatMakeNoSense(t *testing.T) {
	const made = ", must be one that was made, or plain nil"
	for _, c := range []struct {
		option guard.Option
		want   string
	}{
		{guard.WithSlog(nil), "guard: WithSlog got a nil logger"},
		{guard.WithMaxKeys(0), "guard: WithMaxKeys got 0, must be 1 or more"},
		{guard.WithMaxKeys(-1), "guard: WithMaxKeys got -1, must be 1 or more"},
		{guard.WithPressure((*pressure.Sampler)(nil)), "guard: WithPressure got a nil *pressure.Sampler" + made},
		{guard.WithInjector((*script)(nil)), "guard: WithInjector got a nil *guard_test.script" + made},
		{guard.WithMemoryGauge((*pressure.Sampler)(nil)), "guard: WithMemoryGauge got a nil *pressure.Sampler" + made},
		{guard.WithMemoryGauge(gauge(nil)), "guard: WithMemoryGauge got a nil guard_test.gauge" + made},
		{nil, "guard: NewRuntime got a nil option, number 2 of 2"},
	} {
		rt, err := guard.NewRuntime(nil, guard.WithLogger(zerolog.Nop()), c.option)
		if err == nil || rt != nil || err.Error() != c.want {
			t.Errorf("got %v, %v; want %s", rt, err, c.want)
		}
	}
	// What failed to start leaves no trace in the registry.
	reg := registry.New()
	if _, err := guard.NewRuntime(reg, guard.WithMaxKeys(0)); err == nil {
		t.Error("no error")
	}
	if err := reg.Declare("k", registry.Spec{}); err != nil {
		t.Error(err)
	}
	// Two runtimes may share one registry.
	one, err := guard.NewRuntime(reg, guard.WithLogger(zerolog.Nop()))
	if err != nil {
		t.Fatal(err)
	}
	two, err := guard.NewRuntime(reg, guard.WithLogger(zerolog.Nop()))
	if err != nil {
		t.Fatal(err)
	}
	replaceIn(t, reg, specs{"k": {Limit: 3}})
	for _, rt := range []*guard.Runtime{one, two} {
		if rt.Registry() != reg || rt.For("k").Snapshot().Bulkhead.Bound != 3 {
			t.Error("a runtime does not follow the shared registry")
		}
	}
	_ = one.Close()
	replaceIn(t, reg, specs{"k": {Limit: 4}})
	if two.For("k").Snapshot().Bulkhead.Bound != 4 || one.For("k").Snapshot().Bulkhead.Bound != 3 {
		t.Error("a closed runtime follows, or an open one does not")
	}
	_ = two.Close()
	if err := one.DoContext(context.Background(), "k", func(context.Context) error { return nil }); err == nil {
		t.Error("a closed runtime admits a call")
	}
}

// Plain nil stands for none.
func TestOptionsOfNil(t *testing.T) {
	for name, options := range map[string][]guard.Option{
		"expander":       {guard.WithExpander(nil)},
		"injector":       {guard.WithInjector(nil)},
		"memory gauge":   {guard.WithMemoryGauge(nil)},
		"pressure":       {guard.WithPressure(nil)},
		"all":            {guard.WithExpander(nil), guard.WithInjector(nil), guard.WithMemoryGauge(nil), guard.WithPressure(nil)},
		"the last holds": {guard.WithInjector(&script{refuse: guard.ReasonFull}), guard.WithInjector(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if name == "expander" {
					options = append(options, guard.WithPressure(newWeather())) // lets bounds grow
				}
				rt := newRuntime(t, options...)
				g := declared(t, rt, "k", registry.Spec{Limit: 1, Stale: time.Second})
				elapse(time.Minute)
				h := block(g.Do)
				wantReason(t, g.Do(nothing), guard.ReasonFull)
				elapse(2 * time.Second)
				if err := g.Do(nothing); err != nil { // memory is not tight: the stuck call goes
					t.Error(err)
				}
				if bound := g.Snapshot().Bulkhead.Bound; bound != 1 {
					t.Errorf("the bound is %d, want 1", bound)
				}
				_ = h.end()
				wantIdle(t, g)
			})
		})
	}
}

func replaceIn(t *testing.T, reg *registry.Registry, s specs) {
	t.Helper()
	if err := reg.Replace(s); err != nil {
		t.Fatal(err)
	}
}
