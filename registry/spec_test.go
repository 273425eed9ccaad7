package registry

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestWithDefaults(t *testing.T) {
	want := Spec{
		Limit:       16 * runtime.GOMAXPROCS(0),
		Expand:      4,
		Stale:       60 * time.Second,
		Slow:        5 * time.Second,
		Criticality: Critical,
	}
	if got := (Spec{}).WithDefaults(); got != want {
		t.Errorf("the zero spec becomes\n%v, want\n%v", got, want)
	}
	full := Spec{
		Limit: 20, Expand: 1, Stale: time.Second, Wait: time.Millisecond, Queue: 3, Group: "db",
		Slow: time.Minute, Timeout: time.Second, Floor: time.Millisecond, Criticality: Sheddable,
	}
	if got := full.WithDefaults(); got != full {
		t.Errorf("what was set is changed: %v, want %v", got, full)
	}
}

func TestQueueFollowsLimit(t *testing.T) {
	for _, tc := range []struct {
		spec Spec
		want int
	}{
		{Spec{Limit: 20}, 0},
		{Spec{Limit: 20, Wait: time.Second}, 20},
		{Spec{Limit: 20, Wait: time.Second, Queue: 5}, 5},
		{Spec{Limit: MaxLimit, Wait: time.Second}, MaxQueue},
	} {
		if got := tc.spec.WithDefaults().Queue; got != tc.want {
			t.Errorf("%v has a queue of %d, want %d", tc.spec, got, tc.want)
		}
	}
}

func TestDefaultLimitStaysInRange(t *testing.T) {
	if got := (Spec{}).withDefaults(1 << 20).Limit; got != MaxLimit {
		t.Errorf("on a very large machine the default limit is %d, want %d", got, MaxLimit)
	}
}

func TestValidateAccepts(t *testing.T) {
	for _, s := range []Spec{
		{},
		{Limit: 1, Expand: 1, Stale: 10 * time.Millisecond, Slow: time.Millisecond, Timeout: time.Millisecond, Floor: time.Millisecond, Criticality: CriticalPlus},
		{Limit: MaxLimit, Expand: MaxExpand, Stale: 24 * time.Hour, Wait: time.Minute, Queue: MaxQueue, Slow: time.Hour, Timeout: time.Hour, Floor: time.Hour, Criticality: Sheddable},
		{Group: strings.Repeat("g", MaxGroupLen)},
		{Floor: time.Minute},
		{Wait: time.Nanosecond},
	} {
		if err := s.Validate(); err != nil {
			t.Errorf("%v: %v", s, err)
		}
	}
}

func TestValidateSentences(t *testing.T) {
	for _, tc := range []struct {
		spec Spec
		want string
	}{
		{Spec{Limit: -1}, "registry: limit is -1, must be 1 to 250000"},
		{Spec{Limit: MaxLimit + 1}, "registry: limit is 250001, must be 1 to 250000"},
		{Spec{Expand: -1}, "registry: expand is -1, must be 1 to 4"},
		{Spec{Expand: 5}, "registry: expand is 5, must be 1 to 4"},
		{Spec{Stale: 9 * time.Millisecond}, "registry: stale is 9ms, must be 10ms to 24h"},
		{Spec{Stale: 25 * time.Hour}, "registry: stale is 25h, must be 10ms to 24h"},
		{Spec{Wait: -time.Second}, "registry: wait is -1s, must be 0 to 60s"},
		{Spec{Wait: 90 * time.Second}, "registry: wait is 90s, must be 0 to 60s"},
		{Spec{Wait: time.Second, Queue: -1}, "registry: queue is -1, must be 0 to 100000"},
		{Spec{Queue: MaxQueue + 1}, "registry: queue is 100001, must be 0 to 100000"},
		{Spec{Queue: 5}, "registry: queue is 5, must be 0 without a wait: nobody would wait there"},
		{Spec{Group: "a b"}, `registry: group is "a b", must be at most 64 bytes of printable characters without spaces`},
		{
			Spec{Group: strings.Repeat("g", MaxGroupLen+1)},
			`registry: group is "` + strings.Repeat("g", MaxGroupLen+1) + `", must be at most 64 bytes of printable characters without spaces`,
		},
		{Spec{Slow: time.Microsecond}, "registry: slow is 1us, must be 1ms to 1h"},
		{Spec{Slow: 2 * time.Hour}, "registry: slow is 2h, must be 1ms to 1h"},
		{Spec{Timeout: -time.Second}, "registry: timeout is -1s, must be 1ms to 1h"},
		{Spec{Timeout: 61 * time.Minute}, "registry: timeout is 61m, must be 1ms to 1h"},
		{Spec{Floor: -time.Millisecond}, "registry: floor is -1ms, must be 0 to 60s"},
		{Spec{Floor: 61 * time.Second}, "registry: floor is 61s, must be 0 to 60s"},
		{Spec{Timeout: 800 * time.Millisecond, Floor: time.Second}, "registry: floor is 1s, must be 0 to the timeout, 800ms"},
		{Spec{Timeout: 800 * time.Millisecond, Floor: -1}, "registry: floor is -1ns, must be 0 to the timeout, 800ms"},
		{Spec{Timeout: 2 * time.Hour, Floor: time.Second}, "registry: timeout is 2h, must be 1ms to 1h"},
		{Spec{Criticality: 9}, "registry: criticality is criticality(9), must be critical_plus, critical, sheddable_plus or sheddable"},
		{
			// Everything at once, in the order of the fields.
			Spec{Limit: -1, Stale: 1, Floor: -1},
			"registry: limit is -1, must be 1 to 250000\n" +
				"registry: stale is 1ns, must be 10ms to 24h\n" +
				"registry: floor is -1ns, must be 0 to 60s",
		},
	} {
		err := tc.spec.Validate()
		if err == nil {
			t.Errorf("%v is let through, want %s", tc.spec, tc.want)
			continue
		}
		if err.Error() != tc.want {
			t.Errorf("\n got %s\nwant %s", err, tc.want)
		}
		if _, ok := errors.AsType[*Problem](err); !ok {
			t.Errorf("%T holds no *Problem", err)
		}
	}
}

func TestSpecString(t *testing.T) {
	for _, tc := range []struct {
		spec Spec
		want string
	}{
		{Spec{}, "defaults"},
		{Spec{Limit: 20, Stale: time.Minute, Wait: 50 * time.Millisecond}, "limit=20 stale=60s wait=50ms"},
		{
			Spec{
				Limit: 20, Expand: 2, Stale: time.Minute, Wait: time.Second, Queue: 5, Group: "db",
				Slow: 2 * time.Second, Timeout: 800 * time.Millisecond, Floor: 5 * time.Millisecond, Criticality: SheddablePlus,
			},
			"limit=20 expand=2 stale=60s wait=1s queue=5 group=db slow=2s timeout=800ms floor=5ms criticality=sheddable_plus",
		},
	} {
		if got := tc.spec.String(); got != tc.want {
			t.Errorf("\n got %s\nwant %s", got, tc.want)
		}
	}
}

// FuzzSpec holds three promises for any spec at all: Validate never panics and
// every sentence is one line; defaults keep a valid spec valid; filling twice is
// filling once.
func FuzzSpec(f *testing.F) {
	f.Add(0, 0, int64(0), int64(0), 0, "", int64(0), int64(0), int64(0), uint8(0), 8)
	f.Add(20, 2, int64(time.Minute), int64(time.Second), 5, "db", int64(time.Second), int64(time.Second), int64(time.Millisecond), uint8(2), 2)
	f.Add(MaxLimit, 4, int64(time.Hour), int64(time.Minute), 0, "", int64(1), int64(0), int64(time.Minute), uint8(4), 1)
	f.Add(math.MinInt, math.MaxInt, int64(math.MinInt64), int64(math.MaxInt64), -1, "a\nb", int64(-1), int64(-1), int64(-1), uint8(255), 1<<20)
	f.Fuzz(func(t *testing.T, limit, expand int, stale, wait int64, queue int, group string, slow, timeout, floor int64, criticality uint8, procs int) {
		s := Spec{
			Limit: limit, Expand: expand, Stale: time.Duration(stale), Wait: time.Duration(wait), Queue: queue, Group: group,
			Slow: time.Duration(slow), Timeout: time.Duration(timeout), Floor: time.Duration(floor), Criticality: Criticality(criticality),
		}
		procs = 1 + int(uint(procs)%(1<<20))
		filled := s.withDefaults(procs)
		if again := filled.withDefaults(procs); again != filled {
			t.Fatalf("%v filled twice becomes %v", filled, again)
		}
		err := s.Validate()
		if err == nil {
			if err := filled.Validate(); err != nil {
				t.Fatalf("%v is valid, with defaults it is not: %v", s, err)
			}
			if filled.Limit == 0 || filled.Expand == 0 || filled.Stale == 0 || filled.Slow == 0 || filled.Criticality == CriticalityUnset {
				t.Fatalf("%v leaves %v unset", s, filled)
			}
			return
		}
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok {
			t.Fatalf("%T is no join", err)
		}
		for _, one := range joined.Unwrap() {
			if problem, ok := errors.AsType[*Problem](one); !ok || problem.Allowed == "" || strings.ContainsAny(problem.Error(), "\r\n") {
				t.Fatalf("%q is not one sentence of a problem", one)
			}
		}
	})
}
