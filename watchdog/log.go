package watchdog

import (
	"context"
	"log/slog"

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
		r.fields(func(name string, value any) {
			switch v := value.(type) {
			case string:
				z = z.Str(name, v)
			case int:
				z = z.Int(name, v)
			case uint64:
				z = z.Uint64(name, v)
			case float64:
				z = z.Float64(name, v)
			case []uint64:
				z = z.Uints64(name, v)
			case []string:
				z = z.Strs(name, v)
			}
		})
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
		attrs := []slog.Attr{slog.String("event", r.Kind.String())}
		r.fields(func(name string, value any) { attrs = append(attrs, slog.Any(name, value)) })
		l.LogAttrs(context.Background(), level, r.String(), attrs...)
	}
}

// fields calls f with what the report's kind has, in the order of the documentation.
func (r *Report) fields(f func(name string, value any)) {
	if r.Kind == Trouble {
		f("problem", r.Problem)
		return
	}
	if r.Key != "" {
		f("key", string(r.Key))
	}
	f("count", r.Count)
	if r.Kind == More {
		f("groups", r.Groups)
		return
	}
	if len(r.Goroutines) > 0 {
		f("goroutine", r.Goroutines[0])
	}
	if len(r.Goroutines) > 1 {
		f("goroutines", r.Goroutines)
	}
	f("age_ms", milliseconds(r.Age))
	if r.Count > 1 {
		f("youngest_ms", milliseconds(r.Youngest))
	}
	if r.Slow > 0 {
		f("slow_ms", milliseconds(r.Slow))
	}
	if r.Bound > 0 {
		f("in_flight", r.InFlight)
		f("bound", r.Bound)
	}
	if r.Site != "" {
		f("site", r.Site)
	}
	if r.Suppressed > 0 {
		f("suppressed", r.Suppressed)
	}
	if len(r.Stack) > 0 {
		f("stack", r.Stack)
	}
	if r.NoStack != "" {
		f("no_stack", string(r.NoStack))
	}
}

func milliseconds[D ~int64](d D) float64 { return float64(int64(d)/1000) / 1000 }
