package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// In virtual time the run takes none, and its figures are exact.
func TestEachShowsItsFlaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, err := enter()
		if err != nil {
			t.Fatal(err)
		}
		arrivals := traffic()
		if err := play(t.Context(), arrivals, all); err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			if len(c.left)+c.refused != len(arrivals) {
				t.Errorf("%s: %d passed and %d were refused, of %d", c.name, len(c.left), c.refused, len(arrivals))
			}
		}
		fixed, sliding, token, leaky := all[0], all[1], all[2], all[3]
		if n := most(fixed.left, time.Second); n < 180 || n > 200 {
			t.Errorf("the fixed window let %d through in a second, want nearly twice its limit", n)
		}
		if n := most(sliding.left, time.Second); n > limit || n < limit-2 {
			t.Errorf("the sliding window let %d through in a second", n)
		}
		if n := most(sliding.left, 10*time.Millisecond); n < 45 {
			t.Errorf("the sliding window does not smooth, but let only %d through in 10 ms", n)
		}
		if n := most(token.left, 10*time.Millisecond); n < burst || n > burst+1 {
			t.Errorf("the token bucket let %d through at once, want %d", n, burst)
		}
		if n := most(token.left, time.Second); n > limit+burst {
			t.Errorf("the token bucket let %d through in a second", n)
		}
		for i := 1; i < len(leaky.left); i++ {
			if gap := leaky.left[i] - leaky.left[i-1]; gap < 10*time.Millisecond {
				t.Fatalf("two left the leaky bucket within %v", gap)
			}
		}
		if leaky.waited != burst*10*time.Millisecond {
			t.Errorf("the longest wait was %v", leaky.waited)
		}
	})
}

func TestOutput(t *testing.T) {
	name := filepath.Join(t.TempDir(), "rate.svg")
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		if err := run(t.Context(), []string{"-svg", name}, &out, io.Discard); err != nil {
			t.Fatal(err)
		}
	})
	for _, word := range []string{"fixed window", "leaky bucket", "longest wait", "900 requests", name} {
		if !strings.Contains(out.String(), word) {
			t.Errorf("no %q in\n%s", word, out.String())
		}
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for d := xml.NewDecoder(f); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"x"}, {"-none"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
}
