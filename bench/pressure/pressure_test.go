package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/bench/internal/machine"
	"github.com/spillway-go/spillway/pressure"
)

const ms = time.Millisecond

// looks says what callers were told every 100 ms from a second before the load on: alarm from the given time on, until it ends.
func looks(s pressure.Signal, from, to, lasts time.Duration) []look {
	var list []look
	for at := -time.Second; at < lasts; at += 100 * ms {
		l := look{At: at, Values: make([]float64, len(pressure.Readings{}))}
		for i := range l.Values {
			l.Values[i] = 1
		}
		if at >= from && at < to {
			l.Alarms = 1 << s
			l.Values[s] = 1000
		}
		list = append(list, l)
	}
	return list
}

func sample() *report {
	r := &report{Machine: machine.Machine{CPU: "A <fast> one", CPUs: 2, MaxProcs: 2, System: "linux/amd64", Go: "go1.26.0"}, Rounds: 2, Steady: 10 * time.Second}
	r.Columns = columns(true, "")
	for i := range 2 {
		late := time.Duration(i) * 100 * ms
		for _, c := range r.Columns {
			j := job{Load: c.Load, Quota: c.Quota, Lasts: 3 * time.Second}
			var seen []look
			switch c.Load {
			case loadSpin:
				seen = looks(pressure.Runnable, 200*ms+late, time.Hour, j.Lasts)
			case loadOpen:
				seen = looks(pressure.Lag, 300*ms+late, time.Hour, j.Lasts)
			default:
				seen = looks(pressure.HostCPU, time.Second, 1300*ms, j.Lasts)
			}
			r.Traces = append(r.Traces, trace{Job: j, CPUs: 2, Used: 90, Looks: seen})
		}
	}
	return r
}

func TestTable(t *testing.T) {
	r := sample()
	r.judge()
	var b strings.Builder
	if err := r.markdown(&b); err != nil {
		t.Fatal(err)
	}
	out := b.String()
	for _, want := range []string{
		"| **the verdict: not normal** | 0.30 s (0.30) | 0.40 s (0.40) | 0 % | 0.30 s (0.30) | 0.40 s (0.40) | 0 % |\n",
		"| the sample older than three periods | never in 2 | 0.40 s (0.40) | 0 % |",
		"| host CPU by gopsutil >= 90 % | never in 2 | never in 2 | 10 % |",
		"| CPU used, of what may be used | 90 % | 90 % | 90 % |",
		"| 8 busy goroutines: the scheduler's signal within 0.5 s | 0.30 s (0.30) | met |",
		"| 8 busy goroutines, quota of 0.5 CPU: CPU against quota, or the sample's age, within 1 s | never in 2 | **missed** |",
		"| 130 % open load, quota of 0.5 CPU: CPU against quota, or the sample's age, within 1 s | 0.40 s (0.40) | met |",
		"| 85 % steady load: no alarm | 0 % | met |",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if err := r.missed(); err == nil || strings.Count(err.Error(), ";") != 0 || !strings.Contains(err.Error(), "8 busy goroutines, quota") {
		t.Errorf("missed: %v", err)
	}
	for line := range strings.Lines(out) {
		if n := strings.Count(line, "|"); n != 0 && n != 8 && n != 4 {
			t.Errorf("%d bars: %s", n, line)
		}
	}
}

func TestWithoutQuota(t *testing.T) {
	r := sample()
	r.NoQuota, r.Columns = "no permission", columns(false, "")
	r.judge()
	var b strings.Builder
	if err := r.markdown(&b); err != nil {
		t.Fatal(err)
	}
	if out := b.String(); strings.Contains(out, "quota of 0.5") || !strings.Contains(out, "Nothing ran under a quota: no permission.") {
		t.Errorf("%s", out)
	}
}

func TestAlarmBeforeTheLoad(t *testing.T) {
	var c cell
	seen := looks(pressure.HostCPU, -time.Second, 500*ms, time.Second)
	c.add(trace{Job: job{Lasts: time.Second}, Looks: seen}, bits(pressure.HostCPU)(seen), false)
	if c.Before != 1 || len(c.First) != 0 || c.Alarm[0] != 50 || c.text(false) != "before it came in 1" {
		t.Errorf("%+v", c)
	}
	c = cell{}
	for i := range seen {
		seen[i].Values[pressure.HostCPU] = -1
	}
	unknown := rule{alarms: bits(pressure.HostCPU), needs: pressure.HostCPU}
	c.add(trace{Looks: seen}, unknown.alarms(seen), unknown.absent(seen))
	if c.text(true) != "-" || c.text(false) != "-" {
		t.Errorf("without such a signal: %+v", c)
	}
}

// From 0 to 100 % at once, the average that keeps 0.95 is above 80 % after 32 steps: 16 s.
func TestAverage(t *testing.T) {
	var list []look
	for at := time.Duration(0); at < 30*time.Second; at += 100 * ms {
		l := look{At: at, Values: make([]float64, len(pressure.Readings{}))}
		if at > 0 {
			l.Values[pressure.CPU] = 100
		}
		list = append(list, l)
	}
	for i, v := range average(list) {
		if v >= 1 {
			if at := list[i].At; at != 16*time.Second {
				t.Errorf("above after %v", at)
			}
			return
		}
	}
	t.Error("never above")
}

func TestPicture(t *testing.T) {
	r := sample()
	r.Traces[0].Looks[3].Values[pressure.CPU] = -1 // not known yet
	r.judge()
	for _, without := range []string{"", "no permission"} {
		r.NoQuota = without
		paths := 0
		d := xml.NewDecoder(bytes.NewReader(r.svg()))
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if e, ok := token.(xml.StartElement); ok && e.Name.Local == "path" {
				paths++
				for _, a := range e.Attr {
					if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
						t.Errorf("a path through nowhere: %s", a.Value)
					}
				}
			}
		}
		if paths != 3*len(lines)+6 {
			t.Errorf("%d lines", paths)
		}
	}
}

func TestFlags(t *testing.T) {
	for _, c := range []struct {
		args   string
		rounds int
		img    string
		ok     bool
	}{
		{"", 5, "../docs/img", true},
		{"-quick", 1, "", true},
		{"-quick -rounds 3 -img x", 3, "x", true},
		{"-random", 5, "", true},
		{"-match quota", 5, "", true},
		{"-rounds 0", 0, "", false},
		{"-step 1ms", 0, "", false},
		{"word", 0, "", false},
	} {
		o, err := parse(strings.Fields(c.args), io.Discard)
		if (err == nil) != c.ok || c.ok && (o.rounds != c.rounds || o.img != c.img) {
			t.Errorf("%q: %+v, %v", c.args, o, err)
		}
	}
}

func TestOwnGroup(t *testing.T) {
	const file = "4:cpu,cpuacct:/a/b\n3:cpuset:/c\n0::/d\n"
	for controller, want := range map[string]string{"cpu": "/a/b", "cpuacct": "/a/b", "cpuset": "/c", "memory": "/"} {
		if got := ownGroup(file, controller); got != want {
			t.Errorf("%s: %q", controller, got)
		}
	}
}

// A short run in this process, for its form: nothing is timed.
func TestChild(t *testing.T) {
	for _, load := range []string{loadSpin, loadOpen, loadSteady} {
		j, err := json.Marshal(job{Load: load, Random: true, Idle: 150 * ms, Lasts: 150 * ms})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := child(bytes.NewReader(j), &out); err != nil {
			t.Fatal(err)
		}
		var got trace
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		before, after := 0, 0
		for _, l := range got.Looks {
			if l.At < 0 {
				before++
			} else {
				after++
			}
			if len(l.Values) != len(pressure.Readings{}) || math.IsNaN(l.Values[pressure.Runnable]) {
				t.Errorf("%+v", l)
			}
		}
		if before == 0 || after == 0 || got.CPUs < 1 {
			t.Errorf("%s: %d looks before and %d after, %v CPUs", load, before, after, got.CPUs)
		}
	}
	if err := child(strings.NewReader(`{"load":"?"}`), io.Discard); err == nil {
		t.Error("an unknown load is run")
	}
	if os.Getenv(childRole) != "" {
		t.Error("this is a child")
	}
}
