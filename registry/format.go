package registry

import (
	"strconv"
	"time"
)

// formatDuration prints a duration as people write it in an annotation: one
// whole number and its unit, 60s and 1500ms rather than 1m0s and 1.5s. The unit
// is the largest that leaves a whole number, except that one minute stays 60s.
// time.ParseDuration reads every result back as the same duration.
func formatDuration(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	unit, name := time.Nanosecond, "ns"
	switch {
	case d%time.Hour == 0:
		unit, name = time.Hour, "h"
	case d%time.Minute == 0 && d != time.Minute && d != -time.Minute:
		unit, name = time.Minute, "m"
	case d%time.Second == 0:
		unit, name = time.Second, "s"
	case d%time.Millisecond == 0:
		unit, name = time.Millisecond, "ms"
	case d%time.Microsecond == 0:
		unit, name = time.Microsecond, "us"
	}
	return strconv.FormatInt(int64(d/unit), 10) + name
}
