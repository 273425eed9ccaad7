package guard

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"

	"github.com/rs/zerolog"

	"github.com/spillway-go/spillway/watchdog"
)

// logger writes one event for people.
type logger func(Event)

// defaultLogger writes warnings to standard error, as JSON lines.
func defaultLogger() logger {
	return zerologLogger(zerolog.New(os.Stderr).Level(zerolog.WarnLevel).With().Timestamp().Logger())
}

// quiet reports whether an event is told to subscribers only: of an episode of refusals the log has its beginning and
// its end.
func quiet(e Event) bool { return e.Kind == EventRefused && e.Total != e.Count }

// routine events are logged as information, all others as warnings.
func routine(e Event) bool {
	return e.Kind == EventSpec || e.Kind == EventCalm || e.Kind == EventBound || e.Kind == EventBoundHeld
}

// zerologLogger writes reports of the watchdog as package watchdog does, and of other events the fields event, and those of the kind that are set: key, count, total, duration_ms, in_flight, bound,
// goroutine, site, spec.
func zerologLogger(l zerolog.Logger) logger {
	report := watchdog.Zerolog(l)
	return func(e Event) {
		if e.Report != nil {
			report(*e.Report)
			return
		}
		z := l.Warn()
		if routine(e) {
			z = l.Info()
		}
		z = z.Str("event", e.Kind.String())
		for _, f := range fields(e) {
			z = z.Any(f.Key, f.Value.Any())
		}
		z.Msg(e.String())
	}
}

// slogLogger writes the same fields as attributes.
func slogLogger(l *slog.Logger) logger {
	report := watchdog.Slog(l)
	return func(e Event) {
		if e.Report != nil {
			report(*e.Report)
			return
		}
		level := slog.LevelWarn
		if routine(e) {
			level = slog.LevelInfo
		}
		l.LogAttrs(context.Background(), level, e.String(), append([]slog.Attr{slog.String("event", e.Kind.String())}, fields(e)...)...)
	}
}

func fields(e Event) []slog.Attr {
	var f []slog.Attr
	if e.Key != "" {
		f = append(f, slog.String("key", string(e.Key)))
	}
	number := func(name string, n uint64) {
		if n > 0 {
			f = append(f, slog.Uint64(name, n))
		}
	}
	number("count", e.Count)
	number("total", e.Total)
	if e.Duration > 0 {
		f = append(f, slog.Float64("duration_ms", float64(e.Duration)/1e6))
	}
	switch {
	case e.Kind == EventBreaker:
		f = append(f, slog.String("state", e.Cause), slog.String("why", e.Why))
	case e.Cause != "":
		f = append(f, slog.Int("from", e.From), slog.Int("bound", e.Bound), slog.String("cause", e.Cause), slog.String("why", e.Why))
	case e.Bound > 0:
		f = append(f, slog.Int("in_flight", e.InFlight), slog.Int("bound", e.Bound))
	}
	number("goroutine", e.Goroutine)
	if e.Site != "" {
		f = append(f, slog.String("site", e.Site))
	}
	if e.Kind == EventSpec {
		f = append(f, slog.String("spec", e.Spec.String()))
	}
	return f
}

// sink is a logger whose panics end neither the log nor the process. Only the log's goroutine uses it.
type sink struct {
	name   string
	log    logger
	stderr io.Writer
	lost   uint64 // events at which it panicked
}

// maxStack is how many bytes of a panic's stack are told.
const maxStack = 8 << 10

func (s *sink) write(e Event) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		s.lost++
		if s.lost > 1 {
			return // it may panic at every event: one stack says it all
		}
		stack := make([]byte, maxStack)
		stack = stack[:runtime.Stack(stack, false)]
		fmt.Fprintf(s.stderr, "guard: %s panicked and lost an event; it goes on, and later panics are counted: %.300q\n%s\n", s.name, text(v), stack)
	}()
	s.log(e)
}

// end tells how often the logger panicked, if more than once, for that was told.
func (s *sink) end() {
	if s.lost > 1 {
		fmt.Fprintf(s.stderr, "guard: %s panicked and lost %d events\n", s.name, s.lost)
	}
}

// text prints the value of a panic, whose own methods may panic again.
func text(v any) (s string) {
	defer func() {
		if recover() != nil {
			s = fmt.Sprintf("%T", v)
		}
	}()
	return fmt.Sprint(v)
}
