package main

import (
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestPlanIsFixedByItsSeed(t *testing.T) {
	script := newScript(20*time.Second, 200, 100, 10, 7)
	plan := script.plan()
	if !reflect.DeepEqual(plan, script.plan()) {
		t.Error("two plans of one script differ")
	}
	script.Seed = 8
	if reflect.DeepEqual(plan, script.plan()) {
		t.Error("another seed makes the same plan")
	}
	var n [5][2]int
	for i, a := range plan {
		if i > 0 && a.At < plan[i-1].At {
			t.Fatalf("arrival %d at %v comes after one at %v", i, a.At, plan[i-1].At)
		}
		if a.At < -warmUp || a.At >= script.length() {
			t.Fatalf("arrival at %v is outside the script", a.At)
		}
		if a.At >= 0 {
			n[script.at(a.At)][a.Endpoint]++
		}
	}
	for i, phase := range script.Phases {
		for e, rate := range phase.Rate {
			// A Poisson count of mean 300 and more strays by less than a quarter
			// (four standard deviations).
			want := rate * phase.Length.Seconds()
			if got := float64(n[i][e]); got < 0.75*want || got > 1.25*want {
				t.Errorf("%s: %v arrivals on %v, want about %v", phase.Name, got, Endpoint(e), want)
			}
		}
	}
}

func TestCapacity(t *testing.T) {
	for _, test := range []struct {
		b    Behaviour
		want float64
	}{
		{Behaviour{Delay: 10 * time.Millisecond}, 300},
		{Behaviour{Delay: 50 * time.Millisecond}, 60},
		{Behaviour{Delay: 50 * time.Millisecond, Hang: true}, 0},
	} {
		if got := test.b.capacity(12); got != test.want {
			t.Errorf("capacity of 12 places with %+v is %v, want %v", test.b, got, test.want)
		}
	}
}

func TestQuantile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, test := range []struct {
		sorted []time.Duration
		q      float64
		want   time.Duration
	}{
		{nil, 0.99, 0},
		{[]time.Duration{7}, 0.5, 7},
		{[]time.Duration{1, 9}, 0.5, 1},
		{[]time.Duration{1, 9}, 0.51, 9},
		{hundred, 0.99, 99},
		{hundred, 0, 1},
		{hundred, 1, 100},
	} {
		if got := quantile(test.sorted, test.q); got != test.want {
			t.Errorf("quantile %v of %d values is %d, want %d", test.q, len(test.sorted), got, test.want)
		}
	}
}

func TestRecovery(t *testing.T) {
	// Ten requests a second on each endpoint; the slow ones fail until sick.
	samples := func(sick time.Duration) []Sample {
		var out []Sample
		for at := time.Duration(0); at < 5*time.Second; at += 100 * time.Millisecond {
			slow := Sample{Arrival: Arrival{At: at, Endpoint: Slow}}
			if at < sick {
				slow.Outcome = Refused
			}
			out = append(out, Sample{Arrival: Arrival{At: at, Endpoint: Quick}}, slow)
		}
		return out
	}
	for _, test := range []struct {
		name             string
		sick, want, most time.Duration
	}{
		{"well before it healed", 0, 0, 0},
		{"a while", 2500 * time.Millisecond, 1400 * time.Millisecond, 1500 * time.Millisecond},
		{"never", 5 * time.Second, -1, -1},
	} {
		if got := recovery(samples(test.sick), time.Second, 5*time.Second); got < test.want || got > test.most {
			t.Errorf("%s: recovery %v, want %v to %v", test.name, got, test.want, test.most)
		}
	}
}

func TestFlags(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"-duration 1s", "-duration 1s: must be 10s to 10m"},
		{"-slow 0", "-slow 0: must be 10 to 5000"},
		{"-quick NaN", "-quick NaN: must be 10 to 5000"},
		{"-burst 1000", "-burst 1000: must be 1 to 100"},
		{"-side left", `-side "left": must be both, unguarded or guarded`},
		{"now", `argument "now": there are only flags, see -help`},
	} {
		if _, err := parse(strings.Fields(test.args), io.Discard); err == nil || err.Error() != test.want {
			t.Errorf("%s: %v, want %s", test.args, err, test.want)
		}
	}
	opts, err := parse([]string{"-side", "guarded", "-json"}, io.Discard)
	if err != nil || len(opts.sides) != 1 || opts.sides[0] != Guarded || !opts.json {
		t.Errorf("-side guarded -json: %+v, %v", opts, err)
	}
	if length := 2 * (opts.script.length() + warmUp + patience); length > 55*time.Second {
		t.Errorf("without flags both sides may take %v, want less than a minute with the time to compile", length)
	}
}

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "-", 2140 * time.Microsecond: "2.1 ms", 12 * time.Millisecond: "12 ms", 1049 * time.Millisecond: "1.0 s", 999600 * time.Microsecond: "1.0 s",
	} {
		if got := seconds(d); got != want {
			t.Errorf("seconds(%v) = %q, want %q", d, got, want)
		}
	}
	for share, want := range map[float64]string{0: "0 %", 0.004: "< 1 %", 0.5: "50 %", 0.9999: "99.9 %", 0.991: "99.1 %", 1: "100 %", 1.02: "102 %"} {
		if got := percent(share); got != want {
			t.Errorf("percent(%v) = %q, want %q", share, got, want)
		}
	}
}

// played is a made-up play of both sides: guarded all is served, unguarded
// nothing is after the calm phase.
func played(script Script) []Result {
	var results []Result
	for _, side := range []Side{Unguarded, Guarded} {
		result := Result{Side: side, Statuses: make([]Status, len(script.Phases))}
		for i := range result.Statuses {
			result.Statuses[i].Call[Slow] = 12345 * time.Microsecond
		}
		for _, a := range script.plan() {
			sample := Sample{Arrival: a, Latency: 3 * time.Millisecond}
			if side == Unguarded && script.at(a.At) != Calm {
				sample.Outcome, sample.Latency, sample.Lateness = GaveUp, patience, 150*time.Millisecond
			}
			result.Samples = append(result.Samples, sample)
		}
		results = append(results, result)
	}
	return results
}

// TestNarrow draws everything there is and measures it: nothing is wider than
// a terminal of 80 columns, and without colour there is no escape but the
// cursor's.
func TestNarrow(t *testing.T) {
	opts, err := parse(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	scr := newScreen(&out, opts.script, opts.sides)
	scr.terminal = true
	report := newReport(opts.script)
	for _, result := range played(opts.script) {
		rec := &recorder{samples: result.Samples}
		scr.begin(result.Side)
		for _, at := range []time.Duration{-time.Second, 0, 10 * time.Second} {
			scr.show(at, rec)
		}
		scr.end(opts.script.length()+deadline, rec)
		report.add(opts.script, result)
	}
	scr.close()
	report.judge()
	if err := report.writeText(&out, paint{}); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, escape := range []string{"\x1b[?7l", "\x1b[?7h", "\x1b[13A", "\x1b[8A", "\x1b[K", "\x1b[J"} {
		text = strings.ReplaceAll(text, escape, "")
	}
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimPrefix(line, "\r")
		if n := utf8.RuneCountInString(line); n > 79 {
			t.Errorf("%d columns: %s", n, line)
		}
		if strings.ContainsAny(line, "\x1b\r") {
			t.Errorf("escapes: %q", line)
		}
	}
	full := strings.Repeat("█", 9) + "│" + strings.Repeat("█", 12) + "│"
	if !strings.Contains(text, "  /quick  "+full) {
		t.Error("the guarded strip of /quick is not full")
	}
}

// TestPlain is what a pipe or a CI log gets: lines, and no escape at all.
func TestPlain(t *testing.T) {
	opts, err := parse([]string{"-side", "guarded"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	scr := newScreen(&out, opts.script, opts.sides)
	scr.begin(Guarded)
	scr.show(time.Second, &recorder{samples: played(opts.script)[1].Samples})
	scr.close()
	if text := out.String(); strings.ContainsAny(text, "\x1b\r") || !strings.Contains(text, "calm") {
		t.Errorf("plain output: %q", text)
	}
}
