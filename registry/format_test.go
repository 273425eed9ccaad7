package registry

import (
	"math"
	"testing"
	"time"
)

func TestFormatDuration(t *testing.T) {
	for _, tc := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0"},
		{time.Nanosecond, "1ns"},
		{1500 * time.Nanosecond, "1500ns"},
		{250 * time.Microsecond, "250us"},
		{800 * time.Millisecond, "800ms"},
		{time.Second, "1s"},
		{1500 * time.Millisecond, "1500ms"},
		{time.Minute, "60s"},
		{-time.Minute, "-60s"},
		{90 * time.Second, "90s"},
		{2 * time.Minute, "2m"},
		{time.Hour, "1h"},
		{90 * time.Minute, "90m"},
		{24 * time.Hour, "24h"},
		{-5 * time.Second, "-5s"},
	} {
		if got := formatDuration(tc.d); got != tc.want {
			t.Errorf("%v prints as %q, want %q", tc.d, got, tc.want)
		}
	}
}

func FuzzFormatDuration(f *testing.F) {
	for _, d := range []int64{0, 1, -1, 1e6, 6e10, 9e10, 36e11, math.MaxInt64, math.MinInt64} {
		f.Add(d)
	}
	f.Fuzz(func(t *testing.T, ns int64) {
		want := time.Duration(ns)
		text := formatDuration(want)
		if got, err := time.ParseDuration(text); err != nil || got != want {
			t.Fatalf("%d ns prints as %q, which reads as %d, %v", ns, text, got, err)
		}
	})
}
