package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPlay(t *testing.T) {
	var out bytes.Buffer
	lines, err := play(t.Context(), 200*time.Millisecond, &out)
	if err != nil {
		t.Fatal(err)
	}
	if err := report(&out, lines); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", out.String())
	bare := sum(lines, 0, down)
	for name, i := range map[string]int{"breaker": 1, "throttle": 2} {
		got := sum(lines, i, down)
		if got.refused == 0 || got.sent()*2 > bare.sent() {
			t.Errorf("%s: %d calls reached a dependency that was down and %d were refused, beside %d without it", name, got.sent(), got.refused, bare.sent())
		}
		if got.waited*2 > bare.waited {
			t.Errorf("%s: callers waited %v, beside %v without it", name, got.waited, bare.waited)
		}
		if s := lines[len(lines)-1].seen[i]; s.ok == 0 || s.refused > 0 {
			t.Errorf("%s: in the last second, when all is well, %+v", name, s)
		}
	}
	for _, want := range []string{"closed -> open: ", "open -> half_open: ", "half_open -> open: ", "half_open -> closed: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the breaker did not tell %q", want)
		}
	}
	for text := range strings.SplitSeq(out.String(), "\n") {
		if len(text) > 79 {
			t.Errorf("%d columns: %s", len(text), text)
		}
	}
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"x"}, {"-second", "1ms"}, {"-second", "2s"}, {"-none"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
}
