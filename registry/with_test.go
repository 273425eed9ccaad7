package registry

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// lines sets one spec by several lines.
func lines(t *testing.T, all ...string) (s Spec) {
	t.Helper()
	for _, line := range all {
		name, text, _ := strings.Cut(line, " ")
		var err error
		if s, err = s.With(name, text); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	return s
}

func TestWith(t *testing.T) {
	for _, tc := range []struct {
		lines []string
		want  Spec
	}{
		{[]string{"limit 20"}, Spec{Limit: 20}},
		{
			[]string{"limit \t20 expand=2  stale=1m30s wait=50ms queue=0 group=db hold=close "},
			Spec{Limit: 20, Expand: 2, Stale: 90 * time.Second, Wait: 50 * time.Millisecond, Group: "db", Hold: HoldClose},
		},
		{[]string{"limit wait=0"}, Spec{}},
		{[]string{"limit wait=1s queue=7"}, Spec{Wait: time.Second, Queue: 7}},
		{[]string{"slow 1.5s"}, Spec{Slow: 1500 * time.Millisecond}},
		{[]string{"timeout 800ms floor=5ms"}, Spec{Timeout: 800 * time.Millisecond, Floor: 5 * time.Millisecond}},
		{[]string{"timeout floor=1m"}, Spec{Floor: time.Minute}},
		{[]string{"limit hold=range", "timeout hold=range"}, Spec{Hold: HoldRange}},
		{[]string{"timeout off", "breaker off", "throttle off", "load off", "rate off", "pool off"}, Spec{}},
		{[]string{"breaker", "throttle", "load"}, Spec{Breaker: Breaker{On: true}, Throttle: Throttle{On: true}, Load: Load{On: true}}},
		{
			[]string{"breaker ratio=0.25 min=3 window=1s open=2s probes=4 slow=3s", "throttle k=1.5 window=5s"},
			Spec{
				Breaker:  Breaker{On: true, Ratio: 0.25, Min: 3, Window: time.Second, Open: 2 * time.Second, Probes: 4, Slow: 3 * time.Second},
				Throttle: Throttle{On: true, K: 1.5, Window: 5 * time.Second},
			},
		},
		{
			[]string{"load cpu=70..90 latency=140ms..200ms load=3..5.5 memory=80..95"},
			Spec{Load: Load{
				On: true, CPU: Band{70, 90}, Latency: DurationBand{140 * time.Millisecond, 200 * time.Millisecond},
				Load: Band{3, 5.5}, Memory: Band{80, 95},
			}},
		},
		{[]string{"load algorithm=bbr"}, Spec{Load: Load{On: true, Algorithm: BBRLoad}}},
		{[]string{"rate 100/s burst=20 algorithm=token by=caller"}, Spec{Rate: Rate{100, time.Second, 20, TokenBucket, ByCaller}}},
		{[]string{"rate 5/10m algorithm=sliding"}, Spec{Rate: Rate{Calls: 5, Per: 10 * time.Minute, Algorithm: SlidingWindow}}},
		{[]string{"criticality critical_plus", "pool 64 queue=10"}, Spec{Criticality: CriticalPlus, Pool: Pool{64, 10}}},
	} {
		got := lines(t, tc.lines...)
		if got != tc.want {
			t.Errorf("%q gives\n%+v, want\n%+v", tc.lines, got, tc.want)
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%q is accepted and not valid: %v", tc.lines, err)
		}
	}
}

func TestWithSentences(t *testing.T) {
	const limitOptions = "one of expand=, stale=, wait=, queue=, group=, hold="
	for _, tc := range []struct{ line, wrong, want string }{
		{"limti 20", "", `directive is "limti", must be one of limit, slow, timeout, breaker, throttle, load, rate, criticality, pool`},
		{"limit", "", "limit is empty, must be 1 to 250000, or " + limitOptions},
		{"limit 0", "0", `limit is "0", must be 1 to 250000`},
		{"limit -1", "-1", `limit is "-1", must be 1 to 250000`},
		{"limit +20", "+20", `limit is "+20", must be a whole number, 1 to 250000`},
		{"limit 0x10", "0x10", `limit is "0x10", must be a whole number, 1 to 250000`},
		{"limit 99999999999999999999", "99999999999999999999", `limit is "99999999999999999999", must be 1 to 250000`},
		{"limit 20\u00a0", "20\u00a0", `limit is "20\u00a0", must be a whole number, 1 to 250000`},
		{"limit 2 0", "0", `limit option is "0", must be ` + limitOptions},
		{"limit wait=1s 20", "20", `limit option is "20", must be ` + limitOptions},
		{"limit 20 // why not", "// why not", `limit comment is "// why not", must be on a line of its own`},
		{"limit 20 burst=3", "burst=3", `limit option is "burst=3", must be ` + limitOptions},
		{"limit off", "off", `limit is "off", must be a whole number, 1 to 250000`},
		{"limit 20 wait=1s wait=2s", "wait=2s", `wait is "wait=2s", must be given once`},
		{"limit 20 wait=5", "5", `wait is "5", must be a time with its unit, such as 800ms or 60s, 0 to 60s`},
		{"limit 20 wait=", "", "wait is empty, must be a time with its unit, such as 800ms or 60s, 0 to 60s"},
		{"limit 20 wait=9999999h", "9999999h", `wait is "9999999h", must be a time with its unit, such as 800ms or 60s, 0 to 60s`},
		{"limit 20 wait=61s", "61s", `wait is "61s", must be 0 to 60s`},
		{"limit 20 queue=5", "queue=5", "queue is 5, must be 0 without a wait: nobody would wait there"},
		{`limit 20 group="a"`, `"a"`, `group is "\"a\"", must be 1 to 64 bytes of printable characters without spaces and quotes`},
		{"limit 20 hold=on", "on", `hold is "on", must be close or range`},
		{"slow 0", "0", `slow is "0", must be 1ms to 1h`},
		{"slow +5s", "+5s", `slow is "+5s", must be a time with its unit, such as 800ms or 60s, 1ms to 1h`},
		{"slow 2s x", "x", `slow option is "x", must be left out: slow takes one word`},
		{"timeout 1s floor=2s", "floor=2s", "floor is 2s, must be 0 to the timeout, 1s"},
		{"timeout floor=2m", "floor=2m", "floor is 2m, must be 0 to 60s"},
		{"timeout 1s off", "1s", `timeout is "1s", must be left out beside off`},
		{"breaker off ratio=0.5", "ratio=0.5", `breaker is "ratio=0.5", must be left out beside off`},
		{"breaker ratio=NaN", "NaN", `breaker ratio is "NaN", must be a number such as 0.5, above 0 and at most 1`},
		{"breaker ratio=0", "0", `breaker ratio is "0", must be a number such as 0.5, above 0 and at most 1`},
		{"breaker ratio=1.5", "ratio=1.5", "breaker ratio is 1.5, must be above 0 and at most 1"},
		{"throttle k=1", "k=1", "throttle k is 1, must be above 1 and at most 100"},
		{"load cpu=90..70", "cpu=90..70", "load cpu is 90..70, must be two numbers such as 70..90, the first one less, above 0 and at most 100"},
		{"load cpu=70", "70", `load cpu is "70", must be two numbers such as 70..90, the first one less, above 0 and at most 100`},
		{"load latency=5..9", "5..9", `load latency is "5..9", must be two times such as 140ms..200ms, the first one less, 100us to 1h`},
		{"load latency=9ms..5ms", "latency=9ms..5ms", "load latency is 9ms..5ms, must be two times such as 140ms..200ms, the first one less, 100us to 1h"},
		{"load cpu=70..90 algorithm=bbr", "algorithm=bbr", `load algorithm is "bbr", must be dynamic where there are bands`},
		{"load algorithm=dynamic", "algorithm=dynamic", `load algorithm is "dynamic", must be adaptive or bbr without a band`},
		{"load algorithm=fast", "fast", `load algorithm is "fast", must be adaptive, dynamic or bbr`},
		{"rate", "", "rate is empty, must be calls and a time such as 100/s or 5/10m, 1 to 10000000 calls in 1ms to 8784h"},
		{"rate 100", "100", `rate is "100", must be calls and a time such as 100/s or 5/10m, 1 to 10000000 calls in 1ms to 8784h`},
		{"rate 0/s", "0/s", `rate is "0/s", must be calls and a time such as 100/s or 5/10m, 1 to 10000000 calls in 1ms to 8784h`},
		{"rate 5/s algorithm=fixed burst=2", "burst=2", "rate burst is 2, must be 0 for a fixed window"},
		{"rate burst=5", "", "rate is 0, must be 1 to 10000000 calls"},
		{"criticality Critical", "Critical", `criticality is "Critical", must be critical_plus, critical, sheddable_plus or sheddable`},
		{"pool queue=5", "", "pool is 0, must be 1 to 1000000"},
		{"pool 5 size=5", "size=5", `pool option is "size=5", must be queue=`},
	} {
		name, text, _ := strings.Cut(tc.line, " ")
		s, err := Spec{Limit: 3}.With(name, text)
		if err == nil {
			t.Errorf("%q is accepted as %v", tc.line, s)
			continue
		}
		if s != (Spec{Limit: 3}) {
			t.Errorf("%q is wrong and sets %v", tc.line, s)
		}
		p, _ := errors.AsType[*Problem](err)
		if p.Sentence() != tc.want || err.Error() != "registry: "+tc.want {
			t.Errorf("%q\n got %s\nwant %s", tc.line, p.Sentence(), tc.want)
		}
		if got := text[p.Start:p.End]; tc.wrong != "" && got != tc.wrong || tc.wrong == "" && got != text && got != "" {
			t.Errorf("%q: underlined is %q, want %q", tc.line, got, tc.wrong)
		}
	}
}

func TestWithTellsAllAtOnce(t *testing.T) {
	_, err := Spec{}.With("limit", "0 expand=9 stale=x")
	if n := strings.Count(err.Error(), "\n") + 1; n != 3 {
		t.Errorf("%d sentences, want 3:\n%v", n, err)
	}
}

func TestWithRefusesTwoHolds(t *testing.T) {
	s, err := lines(t, "limit 5 hold=close").With("timeout", "1s hold=range")
	if err == nil || err.Error() != `registry: hold is "range", must be close as it was said before` || s.Timeout != 0 {
		t.Errorf("got %v, %v", err, s)
	}
}

func TestLoadPoolAndHold(t *testing.T) {
	for _, tc := range []struct {
		spec Spec
		text string
		full Load
	}{
		{Spec{Load: Load{On: true}}, "load=on", Load{On: true, Algorithm: AdaptiveLoad}},
		{Spec{Load: Load{CPU: Band{70, 90}}}, "load=cpu:70..90", Load{On: true, Algorithm: DynamicLoad, CPU: Band{70, 90}}},
		{Spec{Load: Load{Algorithm: BBRLoad}}, "load=algorithm:bbr", Load{On: true, Algorithm: BBRLoad}},
		{Spec{Load: Load{Latency: DurationBand{time.Millisecond, time.Second}}}, "load=latency:1ms..1s", Load{On: true, Algorithm: DynamicLoad, Latency: DurationBand{time.Millisecond, time.Second}}},
		{Spec{Pool: Pool{64, 0}, Hold: HoldClose}, "pool=64 hold=close", Load{}},
		{Spec{Pool: Pool{64, 9}}, "pool=64,queue:9", Load{}},
	} {
		if got := tc.spec.String(); got != tc.text {
			t.Errorf("got %s, want %s", got, tc.text)
		}
		full := tc.spec.WithDefaults()
		if full.Load != tc.full || full.WithDefaults() != full || full.Validate() != nil {
			t.Errorf("%v with defaults has %+v, want %+v; %v", tc.spec, full.Load, tc.full, full.Validate())
		}
	}
	for want, spec := range map[string]Spec{
		"load cpu is 0..5":             {Load: Load{CPU: Band{0, 5}}},
		"load memory is 80..101":       {Load: Load{Memory: Band{80, 101}}},
		fieldLoadLoad + " is NaN..5":   {Load: Load{Load: Band{nan(), 5}}},
		"load latency is 0..1s":        {Load: Load{Latency: DurationBand{0, time.Second}}},
		`load algorithm is "x"`:        {Load: Load{Algorithm: "x"}},
		"pool is -1":                   {Pool: Pool{Size: -1}},
		"pool queue is -1":             {Pool: Pool{Size: 1, Queue: -1}},
		`hold is "open", must be clos`: {Hold: "open"},
	} {
		if err := spec.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", spec, err, want)
		}
	}
}

func nan() float64 { zero := 0.0; return zero / zero }

// FuzzWith: any text is read or refused, with sentences of one line whose positions lie in the text; what is read is valid alone.
func FuzzWith(f *testing.F) {
	for i, text := range []string{
		"20 wait=50ms", "2s", "800ms floor=5ms hold=close", "ratio=0.5", "k=2", "cpu=70..90 latency=1ms..2ms", "100/s burst=20", "critical", "64", "off",
		"\x00", "= ==", "20\t\t expand=", "NaN..Inf", "1/99999999999999h", `"a b"`, "20 //",
	} {
		f.Add(uint8(i), text)
	}
	f.Fuzz(func(t *testing.T, i uint8, text string) {
		name := Directives()[int(i)%len(directives)]
		s, err := Spec{}.With(name, text)
		if err == nil {
			if err := s.Validate(); err != nil {
				t.Fatalf("%s %q is accepted: %v", name, text, err)
			}
			return
		}
		if s != (Spec{}) {
			t.Fatalf("%s %q is wrong and sets %v", name, text, s)
		}
		joined, _ := err.(interface{ Unwrap() []error })
		for _, one := range joined.Unwrap() {
			p, ok := errors.AsType[*Problem](one)
			if !ok || p.Start < 0 || p.End < p.Start || p.End > len(text) || strings.ContainsAny(p.Sentence(), "\r\n") {
				t.Fatalf("%s %q: %+v", name, text, p)
			}
		}
	})
}

func TestDirectivesAreNamedOnce(t *testing.T) {
	names := Directives()
	slices.Sort(names)
	if len(slices.Compact(names)) != len(directives) {
		t.Error(names)
	}
}
