// Package clock is the monotonic clock that a guarded call reads.
package clock

import "time"

// base is read once: time.Since of a time with a monotonic reading costs half of time.Now.
var base = time.Now()

// origin keeps every reading positive. Inside a synctest bubble time starts in the year 2000, so that
// time.Since(base) is a quarter of a century below zero there.
const origin = int64(1) << 61

// Now returns nanoseconds on a monotonic clock. Only differences mean anything, and only between readings
// of one synctest bubble, or of none.
func Now() int64 { return int64(time.Since(base)) + origin }
