package watchdog

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestConfig(t *testing.T) {
	if _, err := New(Config{Source: NewLedger(1)}); err != nil {
		t.Error(err)
	}
	_, err := New(Config{Period: 1, Burst: -1, Every: 1, Lines: 1001, MaxCalls: -1, MaxGoroutines: -1, MaxBytes: 1, MaxFrames: -1})
	if !errors.Is(err, ErrConfig) {
		t.Fatal(err)
	}
	for _, want := range []string{
		"watchdog: invalid configuration: Source is nil",
		"Period is 1ns, must be 10ms to 10s",
		"Burst is -1, must be 1 to 1000",
		"Every is 1ns, must be 1s to 1h0m0s",
		"Lines is 1001, must be 1 to 1000",
		"MaxCalls is -1, must be 1 to 1000000",
		"MaxGoroutines is -1, must be 1 to 2147483647",
		"MaxBytes is 1, must be 1024 to 67108864",
		"MaxFrames is -1, must be 1 to 1000",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
}

func TestMilestone(t *testing.T) {
	for _, c := range []struct{ slow, age, want time.Duration }{
		{1, 0, 1}, {1, 1, 2}, {1, 2, 4}, {1, 3, 4}, {5, 9, 10}, {5, 10, 20}, {5, 19, 20},
		{time.Second, math.MaxInt64, math.MaxInt64}, {math.MaxInt64, math.MaxInt64, math.MaxInt64},
	} {
		if got := milestone(c.slow, c.age); got != c.want {
			t.Errorf("milestone(%d, %d) = %d, want %d", c.slow, c.age, got, c.want)
		}
	}
}

func TestPages(t *testing.T) {
	const second = int64(time.Second)
	p := newPages(2, 10*time.Second)
	for _, c := range []struct {
		at   int64
		want bool
	}{
		{100, true}, {100, true}, {100, false}, {109, false}, {110, true}, {111, false}, {120, true}, {200, true}, {200, true}, {200, false},
	} {
		if got := p.take(c.at * second); got != c.want {
			t.Errorf("at %d s: %v", c.at, got)
		}
	}
	p = newPages(2, 10*time.Second)
	p.take(second)
	p.rest(second, 3*time.Second)
	if p.take(3*second) || !p.take(4*second) {
		t.Error("it does not rest for 3 s")
	}
}

func TestTrim(t *testing.T) {
	frames := func(names ...string) (list []frame) {
		for _, n := range names {
			list = append(list, frame{[]byte(n), []byte("/f.go:1"), 1})
		}
		return list
	}
	long := strings.Repeat("x", 600)
	for _, c := range []struct {
		frames []frame
		want   []string
	}{
		{frames("main.a", house+"internal/goroutine.Run", house+"bulkhead/pool.work", house+"guard.(*Guard).Do", "main.b", "runtime.main"), []string{"main.a /f.go:1", "main.b /f.go:1"}},
		{frames(house+"httpguard.Handler.func1", house+"guard_test.x", house+"examples/a.b"), []string{house + "guard_test.x /f.go:1", house + "examples/a.b /f.go:1"}},
		{frames("a", "runtime.gopanic", "b", "c", "d", "runtime.x", "runtime.main"), []string{"a /f.go:1", "runtime.gopanic /f.go:1", "b /f.go:1", "c /f.go:1", "... 1 more frames"}},
		{frames(long), []string{long[:maxFrameText] + "..."}},
	} {
		s := stacks{maxFrames: 4, maxBytes: 1 << 20}
		i := s.keep(c.frames)
		if !reflect.DeepEqual(s.at(i), c.want) {
			t.Errorf("got %q, want %q", s.at(i), c.want)
		}
		if s.keep(c.frames) != i || len(s.list) != 1 {
			t.Error("the same stack is kept twice")
		}
	}
}
