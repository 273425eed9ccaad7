package watchdog

import (
	"context"
	"log/slog"
	"time"

	"github.com/rs/zerolog"
)

// Zerolog writes reports to l, one line each. docs/watchdog.md lists the fields; they do not change within a major version. Files and
// rotation are the application's.
func Zerolog(l zerolog.Logger) func(Report) {
	return func(r Report) {
		z := l.Warn()
		if r.Kind == Ended {
			z = l.Info()
		}
		z = z.Str("event", r.Kind.String())
		for _, f := range fields(r) {
			z = z.Any(f.Key, f.Value.Any())
		}
		z.Msg(r.String())
	}
}

// Slog writes the same fields as attributes.
func Slog(l *slog.Logger) func(Report) {
	return func(r Report) {
		level := slog.LevelWarn
		if r.Kind == Ended {
			level = slog.LevelInfo
		}
		l.LogAttrs(context.Background(), level, r.String(), append([]slog.Attr{slog.String("event", r.Kind.String())}, fields(r)...)...)
	}
}

// fields are what the report's kind has, in the order of the documentation.
func fields(r Report) []slog.Attr {
	if r.Kind == Trouble {
		return []slog.Attr{slog.String("problem", r.Problem)}
	}
	var list []slog.Attr
	add := func(has bool, a slog.Attr) {
		if has {
			list = append(list, a)
		}
	}
	add(r.Key != "", slog.String("key", string(r.Key)))
	add(true, slog.Int("count", r.Count))
	if r.Kind == More {
		return append(list, slog.Int("groups", r.Groups))
	}
	if len(r.Goroutines) > 0 {
		list = append(list, slog.Uint64("goroutine", r.Goroutines[0]))
	}
	add(len(r.Goroutines) > 1, slog.Any("goroutines", r.Goroutines))
	list = append(list, slog.Float64("age_ms", milliseconds(r.Age)))
	add(r.Count > 1, slog.Float64("youngest_ms", milliseconds(r.Youngest)))
	add(r.Slow > 0, slog.Float64("slow_ms", milliseconds(r.Slow)))
	add(r.Bound > 0, slog.Int("in_flight", r.InFlight))
	add(r.Bound > 0, slog.Int("bound", r.Bound))
	add(r.Site != "", slog.String("site", r.Site))
	add(r.Suppressed > 0, slog.Uint64("suppressed", r.Suppressed))
	add(len(r.Stack) > 0, slog.Any("stack", r.Stack))
	add(r.NoStack != "", slog.String("no_stack", string(r.NoStack)))
	return list
}

// milliseconds to the microsecond.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
