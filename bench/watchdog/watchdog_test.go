package main

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

func TestMeasures(t *testing.T) {
	var out strings.Builder
	if err := run([]string{"-json", "-quick"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Marks) != 7 || len(r.Dumps) != 2 || len(r.Verdicts) < 10 {
		t.Fatalf("%d marks, %d dumps, %d verdicts", len(r.Marks), len(r.Dumps), len(r.Verdicts))
	}
	for _, d := range r.Dumps {
		if d.Shown != d.Late || d.Bytes == 0 || d.Stop <= 0 || d.Worst < d.Stop || d.StackStop < d.Stop {
			t.Errorf("%+v", d)
		}
	}
	if r.Told.After < time.Second || r.Told.Wrong != 0 {
		t.Errorf("%+v", r.Told)
	}
	if r.Scan.Keys != 10_000 || r.Scan.Share == 0 {
		t.Errorf("%+v", r.Scan)
	}
}

func TestJudge(t *testing.T) {
	r := report{
		Marks: []mark{{"a", maxMark}, {"b", maxMark + 1}, {"c", maxMark + 1}},
		Scan:  scan{Share: -1},
		Dumps: []dumps{{Goroutines: 10_000, Late: 2, Shown: 2, Stop: 2 * maxStop, StackStop: 10 * maxStop}},
	}
	r.judge()
	var met []string
	for _, v := range r.Verdicts {
		if v.Met {
			met = append(met, v.What)
		}
	}
	if got := strings.Join(met, ", "); got != "a, ns, one slow call among 0: told after its start, s, the same: reports without its own stack, 2 late among 10000: calls without their stack, 2 late among 10000: bytes of stacks" {
		t.Errorf("met: %s", got)
	}
	if out := r.markdown(); !strings.Contains(out, "stop is so many times longer | 5 | >= 20 | **missed** |") {
		t.Errorf("table:\n%s", out)
	}
}

func TestMedian(t *testing.T) {
	if got := median([]time.Duration{3, 1, 2}); got != 2 {
		t.Error(got)
	}
}

func TestRefusesNonsense(t *testing.T) {
	for _, args := range [][]string{{"more"}, {"-unknown"}} {
		if err := run(args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
}
