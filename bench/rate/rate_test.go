package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// sethvargo's store stops its goroutine on Close, which contenders have no use for; ulule's ends with a finalizer.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/sethvargo/go-limiter/memorystore.(*store).purge"),
		goleak.IgnoreAnyFunction("github.com/ulule/limiter/v3/drivers/store/memory.(*cleaner).Run"))
}

// Every contender answers as its row says: a loop fails on any other answer.
func TestContendersAnswer(t *testing.T) {
	for _, p := range pairings {
		for _, c := range []contender{p.a, p.b} {
			l, err := c.make()
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if err := l(1000); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}

func TestReport(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-rounds", "4", "-flood", "1000", "-json"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != len(pairings) || len(r.Faults) != 7 {
		t.Errorf("%d rows, %d faults", len(r.Rows), len(r.Faults))
	}
	for _, f := range r.Faults {
		if !f.OK {
			t.Errorf("ours, too: %+v", f)
		}
	}
	out.Reset()
	if err := r.markdown(&out); err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Verdicts {
		if !strings.Contains(out.String(), v.What) {
			t.Errorf("the target %q is not in the text", v.What)
		}
	}
	r.Verdicts = []verdict{{"x", 2, 1, false}, {"y", 1, 1, true}}
	if err := r.missed(); err == nil || strings.Count(err.Error(), "missed") != 1 {
		t.Errorf("missed: %v", err)
	}
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"x"}, {"-rounds", "1"}, {"-flood", "1"}, {"-none"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
}
