package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/bench/internal/paired"
)

// Every contender answers as its row says: a loop fails on any other answer.
func TestContendersAnswer(t *testing.T) {
	for _, p := range pairings {
		for _, c := range []contender{p.a, p.b} {
			loop, err := c.loop()
			if err != nil {
				t.Fatal(err)
			}
			if err := loop(1000); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestReport(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-rounds", "4"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, p := range pairings {
		if !strings.Contains(out.String(), "| "+p.a.name+" | "+p.b.name+" |") {
			t.Errorf("%s beside %s is not in the text", p.a.name, p.b.name)
		}
	}
}

func TestMissed(t *testing.T) {
	rows := []row{{pairing: pairing{a: oursDo, b: nothing, most: 1}, ratio: paired.Summary{Median: 2}}, {ratio: paired.Summary{Median: 9}}}
	if err := missed(rows); err == nil || strings.Count(err.Error(), "missed") != 1 {
		t.Errorf("missed: %v", err)
	}
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"x"}, {"-rounds", "1"}, {"-none"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
}
