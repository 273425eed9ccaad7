package main

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/bench/internal/contender"
	"github.com/spillway-go/spillway/bench/internal/paired"
)

// The server of -http is this program once more, and so the test's program.
func TestMain(m *testing.M) {
	if os.Getenv(serverRole) != "" {
		serve(os.Stdin, os.Stdout)
		return
	}
	os.Exit(m.Run())
}

func TestParse(t *testing.T) {
	tests := []struct {
		args   string
		rounds int
		img    string
	}{
		{"", 400, "../docs/img"},
		{"-quick", 30, ""},
		{"-quick -rounds 7 -img x", 7, "x"},
		{"-match channel", 400, ""},
		{"-img=", 400, ""},
	}
	for _, tt := range tests {
		o, err := parse(strings.Fields(tt.args), io.Discard)
		if err != nil || o.rounds != tt.rounds || o.img != tt.img {
			t.Errorf("%q: rounds %d, img %q, error %v; want %d, %q", tt.args, o.rounds, o.img, err, tt.rounds, tt.img)
		}
	}
	for _, args := range []string{"-rounds 0", "more", "-unknown"} {
		if _, err := parse(strings.Fields(args), io.Discard); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
}

func TestChoose(t *testing.T) {
	all := contender.All()
	if got, err := choose(all, ""); err != nil || len(got) != len(all) {
		t.Errorf("without -match: %d rows, error %v; want all %d", len(got), err, len(all))
	}
	got, err := choose(all, "x/sync,gobreaker")
	if err != nil || len(got) != 6 || got[0].Name != contender.Channel {
		t.Errorf("got %d rows, error %v; want the channel twice, x/sync twice and gobreaker twice", len(got), err)
	}
	if _, err := choose(all, "nobody"); err == nil {
		t.Error("a name that nobody has was accepted")
	}
}

// A small run of everything: the figures are worth nothing, the shape must be right.
func TestMeasure(t *testing.T) {
	r, err := measure(context.Background(), contender.All(), 2, func(string, int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	if want := len(contender.All()); len(r.Rows) != want {
		t.Fatalf("%d rows, want %d", len(r.Rows), want)
	}
	for _, row := range r.Rows {
		if len(row.Runs) != len(goroutines) {
			t.Errorf("%s: %d runs, want %d", row.Name, len(row.Runs), len(goroutines))
		}
		for _, run := range row.Runs {
			if !(run.Nanoseconds.Median > 0) || !(run.Ratio.Median > 0) {
				t.Errorf("%s, %d goroutines: %v ns, ratio %v", row.Name, run.Goroutines, run.Nanoseconds.Median, run.Ratio.Median)
			}
		}
		if row.Module != "" && r.Machine.Versions[row.Module] == "" {
			t.Errorf("%s: no version of %s", row.Name, row.Module)
		}
	}
	if want := len(targets) + 1; len(r.Targets) != want {
		t.Errorf("%d verdicts, want %d", len(r.Targets), want)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

func TestMeasureFailsWhenCallsGoAnotherWay(t *testing.T) {
	rows, err := choose(contender.All(), contender.Channel)
	if err != nil {
		t.Fatal(err)
	}
	rows = append(rows, contender.Contender{
		Name: "liar", Does: "refuses every third call",
		Setup: func(func(func())) contender.Loop {
			return func(n int, _ func() error) int { return n - n/3 }
		},
	})
	_, err = measure(context.Background(), rows, 1, func(string, int, int) {})
	if err == nil || !strings.HasPrefix(err.Error(), "liar: ") {
		t.Errorf("got error %v, want one that names the liar", err)
	}
}

func TestMeasureEndsWithItsContext(t *testing.T) {
	rows, err := choose(contender.All(), contender.Channel)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := measure(ctx, rows, 1, func(string, int, int) {}); err == nil {
		t.Error("it went on")
	}
}

// sample is a report with made-up figures.
func sample() *report {
	one := func(ratio, ns float64) []result {
		s := func(x float64) paired.Summary {
			return paired.Summary{N: 9, Median: x, Low: x * 0.99, High: x * 1.01, P10: x, P90: x}
		}
		return []result{{1, s(ns), s(ratio)}, {2, s(ns * 1.1), s(ratio)}, {64, s(ns * 1.2), s(ratio)}}
	}
	r := &report{Rounds: 9, direct: map[string]paired.Summary{}}
	r.Machine.Versions = map[string]string{"b.org/b": "v2.0.0", "a.org/a": "v1.0.0"}
	r.Rows = []row{
		{Name: contender.Channel, Does: "a pair", Runs: one(1, 50)},
		{Name: contender.ChannelAgain, Does: "a pair", Runs: one(1.003, 50)},
		{Name: contender.HandleDo, Does: "ours", Runs: one(1.5, 75)},
		{Name: "peer <of> & \"others\"", Does: "theirs", Allocs: 13.0004, Bytes: 384, Runs: one(320, 16000)},
		{Name: contender.HandleRefused, Does: "ours", Refuses: true, Runs: one(0.25, 12.5)},
	}
	for _, t := range targets {
		r.direct[t.What] = paired.Summary{Median: t.max, Low: t.max, High: t.max}
	}
	return r
}

func TestJudge(t *testing.T) {
	r := sample()
	r.judge()
	if err := missed(r.Targets); err != nil {
		t.Errorf("every figure is at its limit, but: %v", err)
	}

	r = sample()
	r.find(contender.HandleDo).Runs[0].Ratio.Median = 2.01
	r.direct[targets[9].What] = paired.Summary{Median: 0.41}
	r.find(contender.HandleRefused).Allocs = 1
	r.judge()
	err := missed(r.Targets)
	if err == nil {
		t.Fatal("three targets are missed, and nothing was said")
	}
	for _, want := range []string{"g.Do / channel pair is 2.01, must be at most 2", "by key is 0.41, must be at most 0.4", "allocations"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if n := strings.Count(err.Error(), "must be"); n != 3 {
		t.Errorf("%q names %d targets, want 3", err, n)
	}

	r = sample()
	r.find(contender.HandleDo).Runs[0].Ratio.Median = math.NaN()
	r.judge()
	if missed(r.Targets) == nil {
		t.Error("a figure that is none counts as met")
	}
	if missed(nil) == nil {
		t.Error("nothing measured counts as met")
	}
}

func TestHTTP(t *testing.T) {
	if _, err := cpuTime(); err != nil {
		t.Skip(err)
	}
	var out strings.Builder
	if err := run(context.Background(), []string{"-http", "-rounds", "2", "-json"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var r webReport
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil {
		t.Fatal(err)
	}
	if !(r.Handler.Nanoseconds.Median > 0) || !(r.Server.Microseconds.Median > 1) || !(r.Server.Guarded.Median > 0.1) || !(r.Server.Guarded.Median < 10) {
		t.Errorf("handler %v ns, server %v us, guarded / unguarded %v", r.Handler.Nanoseconds.Median, r.Server.Microseconds.Median, r.Server.Guarded.Median)
	}
	if len(r.Targets) != 2 {
		t.Errorf("%d verdicts, want 2", len(r.Targets))
	}
	if err := r.markdown(&out); err != nil {
		t.Error(err)
	}
}
