package main

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

func TestMeasuresKeys(t *testing.T) {
	var out strings.Builder
	if err := run([]string{"-json", "-keys", "40", "-flood", "15000"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil {
		t.Fatal(err)
	}
	if r.Idle < 100 || r.Active < 0.95*r.Idle {
		t.Errorf("an idle key has %.0f bytes and an active one %.0f: want a hundred at least, and hardly less when active", r.Idle, r.Active)
	}
	if r.Flood.Keys != 15000 || r.Flood.Kept < 1 || r.Flood.Kept > keptKeys {
		t.Errorf("after %d distinct keys %d are kept, want 15000 and at most %d", r.Flood.Keys, r.Flood.Kept, keptKeys)
	}
	if len(r.Verdicts) != 5 {
		t.Errorf("%d verdicts, want 5", len(r.Verdicts))
	}
}

func TestJudge(t *testing.T) {
	r := report{Idle: maxIdle, Active: maxActive + 1, Flood: flood{Keys: 1, Kept: keptKeys, After: 1, Greatest: 1}}
	r.judge()
	for _, v := range r.Verdicts {
		if want := !strings.Contains(v.What, "active"); v.Met != want {
			t.Errorf("%s: met is %v, want %v", v.What, v.Met, want)
		}
	}
	var out strings.Builder
	if err := r.markdown(&out); err != nil || !strings.Contains(out.String(), "| active key of N = 20, bytes | 6145 | 6144 | **missed** |") {
		t.Errorf("error %v, table:\n%s", err, out.String())
	}
}

func TestRefusesNonsense(t *testing.T) {
	for _, args := range [][]string{{"-keys", "0"}, {"-flood", "0"}, {"more"}, {"-unknown"}} {
		if err := run(args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
}
