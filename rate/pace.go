package rate

import (
	"fmt"
	"strconv"
	"time"
)

// Ranges of a Rate.
const (
	MaxPer  = 366 * 24 * time.Hour
	maxPace = 1 << 40
)

// Rate is N in every Per: 100 a second, 1 an hour. It is kept as it is written, never as a fraction.
type Rate struct {
	N   int64         // 1 to 2^40
	Per time.Duration // 1 ns to MaxPer
}

// PerSecond is n a second.
func PerSecond(n int64) Rate { return Rate{N: n, Per: time.Second} }

// PerMinute is n a minute.
func PerMinute(n int64) Rate { return Rate{N: n, Per: time.Minute} }

// PerHour is n an hour.
func PerHour(n int64) Rate { return Rate{N: n, Per: time.Hour} }

// Every is one in each d.
func Every(d time.Duration) Rate { return Rate{N: 1, Per: d} }

// String is such as "100/s", "1/h" or "3/1m30s".
func (r Rate) String() string {
	per := r.Per.String()
	switch r.Per {
	case time.Millisecond:
		per = "ms"
	case time.Second:
		per = "s"
	case time.Minute:
		per = "m"
	case time.Hour:
		per = "h"
	default:
	}
	return strconv.FormatInt(r.N, 10) + "/" + per
}

// problems lists what is wrong; least is the smallest N that is allowed.
func (r Rate) problems(least int64) (wrong []error) {
	if r.N < least || r.N > maxPace {
		wrong = append(wrong, fmt.Errorf("rate: Rate.N is %d, must be %d to %d", r.N, least, int64(maxPace)))
	}
	if r.Per < 1 || r.Per > MaxPer {
		wrong = append(wrong, fmt.Errorf("rate: Rate.Per is %v, must be 1ns to %v", r.Per, MaxPer))
	}
	return wrong
}

// units splits time and tokens so finely that both are whole: one token is worth token units, and a nanosecond brings
// perNano of them.
func (r Rate) units() (token, perNano int64) {
	if r.N == 0 {
		return 1, 0
	}
	a, b := r.N, int64(r.Per)
	for b != 0 {
		a, b = b, a%b
	}
	return int64(r.Per) / a, r.N / a
}
