package main

import (
	"bytes"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/spillway-go/spillway/examples/internal/quiet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestProxy(t *testing.T) {
	if testing.Short() {
		t.Skip("sends requests for some seconds")
	}
	quiet.Wait(t)
	without, err := round(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	with, err := round(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := table(&out, without, with); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", out.String())
	for line := range strings.SplitSeq(out.String(), "\n") {
		if len(line) > 79 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}

	hanging := len(upstreams) - 1
	for i, name := range upstreams[:hanging] {
		if got := with[i].success(); got < 0.98 {
			t.Errorf("%s: guarded, %.3f answered in time beside one that hangs, want at least 0.98", name, got)
		}
		if got := without[i].success(); got > 0.7 {
			t.Errorf("%s: without guards, %.3f answered in time, want starvation: the example shows nothing", name, got)
		}
	}
	if with[hanging].refused == 0 {
		t.Errorf("%s hangs, and nothing was refused", upstreams[hanging])
	}
	if without[hanging].refused != 0 {
		t.Errorf("without guards %d requests were refused", without[hanging].refused)
	}
	for i, name := range upstreams {
		if want := int(length.Seconds() * rate); without[i].sent != want || with[i].sent != want {
			t.Errorf("%s: %d and %d requests, want %d each", name, without[i].sent, with[i].sent, want)
		}
	}
}
