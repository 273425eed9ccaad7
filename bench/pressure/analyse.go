package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/bench/internal/machine"
	"github.com/spillway-go/spillway/pressure"
)

// report is what all runs gave.
type report struct {
	Machine machine.Machine `json:"machine"`
	Rounds  int             `json:"rounds"`
	Steady  time.Duration   `json:"steady"`
	Random  bool            `json:"random"`
	NoQuota string          `json:"no_quota,omitempty"` // why nothing ran under a quota
	Columns []column        `json:"columns"`
	Rows    []row           `json:"rows"`
	Targets []target        `json:"targets"`
	Traces  []trace         `json:"traces"`
}

// row is one signal, and what it did in each kind of run.
type row struct {
	Name  string `json:"name"`
	Cells []cell `json:"cells"` // by column
}

// cell is one signal in the runs of one column.
type cell struct { //nolint:recvcheck // only collecting writes to it
	Before int             `json:"before"` // runs in which it was in alarm before the load came
	First  []time.Duration `json:"first"`  // when a caller was first told, in the other runs that had an alarm
	Never  int             `json:"never"`
	Absent int             `json:"absent"` // runs in which there was no such signal
	Alarm  []float64       `json:"alarm"`  // per cent of the load's time, in each run
}

// column is one kind of run.
type column struct {
	Load  string  `json:"load"`
	Quota float64 `json:"quota"`
}

// halfACPU is the quota of those that have one.
const halfACPU = 0.5

func (c column) String() string {
	if c.Quota == 0 {
		return c.Load
	}
	return fmt.Sprintf("%s, quota of %v CPU", c.Load, c.Quota)
}

func (c column) holds(t trace) bool { return t.Job.Load == c.Load && t.Job.Quota == c.Quota }

func columns(quota bool, match string) []column {
	var list []column
	for _, q := range []float64{0, halfACPU} {
		for _, load := range []string{loadSpin, loadOpen, loadSteady} {
			if c := (column{load, q}); strings.Contains(c.String(), match) && (quota || q == 0) {
				list = append(list, c)
			}
		}
	}
	return list
}

// rule says when a caller would hold the machine for overloaded, look by look.
type rule struct {
	name   string
	alarms func(looks []look) []bool
	value  func(looks []look) []float64 // of its limit, for the picture
	needs  pressure.Signal              // "-" in the table where there is no such signal; CPU: there always is
}

func (r rule) absent(looks []look) bool {
	return !slices.ContainsFunc(looks, func(l look) bool { return l.Values[r.needs] >= 0 })
}

func bits(signals ...pressure.Signal) func([]look) []bool {
	return func(looks []look) []bool {
		out := make([]bool, len(looks))
		for i, l := range looks {
			for _, s := range signals {
				out[i] = out[i] || l.Alarms&(1<<s) != 0
			}
		}
		return out
	}
}

func share(s pressure.Signal, limit float64) func([]look) []float64 {
	return func(looks []look) []float64 {
		out := make([]float64, len(looks))
		for i, l := range looks {
			out[i] = l.Values[s] / limit
		}
		return out
	}
}

// The average that limiters in use today decide by: every 500 ms, 0.95 of the old and 0.05 of the new, from 80 % on.
const (
	averageEvery = 500 * time.Millisecond
	averageKeeps = 0.95
	averageLimit = 80
)

func average(looks []look) []float64 {
	out := make([]float64, len(looks))
	v, next := math.NaN(), time.Duration(math.MinInt64)
	for i, l := range looks {
		if l.At >= next && l.Values[pressure.CPU] >= 0 {
			if math.IsNaN(v) {
				v = l.Values[pressure.CPU]
			}
			v = averageKeeps*v + (1-averageKeeps)*l.Values[pressure.CPU]
			next = l.At + averageEvery
		}
		out[i] = v / averageLimit
	}
	return out
}

const verdict = "**the verdict: not normal**"

func rules(cpus int) []rule {
	return []rule{
		{verdict, bits(pressure.Lag, pressure.Memory, pressure.CPU, pressure.Throttled, pressure.Runnable), nil, 0},
		{"runnable goroutines per P >= 2, or the sample too old", bits(pressure.Runnable, pressure.Lag), share(pressure.Runnable, 2), 0},
		{"CPU of quota, else of the process's CPUs, >= 95 %", bits(pressure.CPU), share(pressure.CPU, 95), 0},
		{"throttled >= 25 % of the time", bits(pressure.Throttled), nil, pressure.Throttled},
		{"the sample older than three periods", bits(pressure.Lag), nil, 0},
		{"scheduling latency, p99 of 2 s >= 10 ms", bits(pressure.Latency), nil, pressure.Latency},
		{"CPU pressure of the own cgroup >= 20 %", bits(pressure.PressureCPU), nil, pressure.PressureCPU},
		{"host CPU by gopsutil >= 90 %", bits(pressure.HostCPU), share(pressure.HostCPU, 90), pressure.HostCPU},
		{fmt.Sprintf("host load1 >= %d, one per CPU", cpus), bits(pressure.Load1), share(pressure.Load1, float64(cpus)), pressure.Load1},
		{"CPU averaged with 0.95 every 500 ms >= 80 %", func(looks []look) []bool {
			var out []bool
			for _, v := range average(looks) {
				out = append(out, v >= 1)
			}
			return out
		}, average, 0},
	}
}

// judge fills in the rows and the targets.
func (r *report) judge() {
	for _, rule := range rules(r.Machine.CPUs) {
		line := row{Name: rule.name}
		for _, col := range r.Columns {
			var c cell
			for _, t := range r.Traces {
				if col.holds(t) {
					c.add(t, rule.alarms(t.Looks), rule.absent(t.Looks))
				}
			}
			line.Cells = append(line.Cells, c)
		}
		r.Rows = append(r.Rows, line)
	}
	r.Targets = r.targets()
}

func (c *cell) add(t trace, alarms []bool, absent bool) {
	if absent {
		c.Absent++
		return
	}
	first, before, total := time.Duration(-1), false, time.Duration(0)
	for i, l := range t.Looks {
		switch {
		case l.At < 0:
			before = alarms[i]
			continue
		case !alarms[i]:
			continue
		}
		if first < 0 {
			first = l.At
		}
		end := t.Job.Lasts
		if i+1 < len(t.Looks) {
			end = min(end, t.Looks[i+1].At)
		}
		total += max(0, end-l.At)
	}
	c.Alarm = append(c.Alarm, 100*float64(total)/float64(t.Job.Lasts))
	switch {
	case before:
		c.Before++
	case first < 0:
		c.Never++
	default:
		c.First = append(c.First, first)
	}
}

// text is what the table says of an overload: when, in seconds, and the slowest run behind it.
func (c cell) text(steady bool) string {
	if len(c.Alarm) == 0 {
		return "-"
	}
	if steady {
		return fmt.Sprintf("%.0f %%", mean(c.Alarm))
	}
	var parts []string
	if n := len(c.First); n > 0 {
		slices.Sort(c.First)
		parts = append(parts, fmt.Sprintf("%.2f s (%.2f)", c.First[n/2].Seconds(), c.First[n-1].Seconds()))
	}
	if c.Never > 0 {
		parts = append(parts, fmt.Sprintf("never in %d", c.Never))
	}
	if c.Before > 0 {
		parts = append(parts, fmt.Sprintf("before it came in %d", c.Before))
	}
	return strings.Join(parts, ", ")
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, v := range list {
		sum += v
	}
	return sum / float64(len(list))
}

// target is what must hold.
type target struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Met   bool   `json:"met"`
}

func (r *report) targets() []target {
	var list []target
	// The median counts: where the load comes in the sampler's period, and in the quota's, moves a run by 100 ms each.
	within := func(name string, c cell, limit time.Duration) {
		slices.Sort(c.First)
		met := c.Never == 0 && c.Before == 0 && len(c.First) > 0 && c.First[len(c.First)/2] <= limit
		list = append(list, target{name, c.text(false), met})
	}
	for i, col := range r.Columns {
		if col.Load == loadSteady {
			c := r.Rows[0].Cells[i]
			list = append(list, target{col.String() + ": no alarm", c.text(true), len(c.Alarm) > 0 && slices.Max(c.Alarm) == 0})
			continue
		}
		within(col.String()+": the scheduler's signal within 0.5 s", r.Rows[1].Cells[i], 500*time.Millisecond)
		if col.Quota > 0 {
			// Where the sampler gets no CPU its sample's age speaks for this signal too.
			within(col.String()+": CPU against quota, or the sample's age, within 1 s", r.either(2, 4, col), time.Second)
		}
	}
	return list
}

// either is a column of two rows taken together, run by run.
func (r *report) either(a, b int, col column) cell {
	all := rules(r.Machine.CPUs)
	var c cell
	for _, t := range r.Traces {
		if !col.holds(t) {
			continue
		}
		alarms := all[a].alarms(t.Looks)
		for k, v := range all[b].alarms(t.Looks) {
			alarms[k] = alarms[k] || v
		}
		c.add(t, alarms, false)
	}
	return c
}

func (r *report) missed() error {
	var names []string
	for _, t := range r.Targets {
		if !t.Met {
			names = append(names, fmt.Sprintf("%s (%s)", t.Name, t.Value))
		}
	}
	if names == nil {
		return nil
	}
	return errors.New("missed: " + strings.Join(names, "; "))
}

func (r *report) markdown(w io.Writer) error {
	var b strings.Builder
	arrivals := "evenly"
	if r.Random {
		arrivals = "at random"
	}
	fmt.Fprintf(&b, "%s.\n\nWhen a caller was first told, after the load came: the median of %d runs and the slowest of them. For the steady load, in which jobs "+
		"come %s: how much of %v the signal was in alarm.\n", r.Machine, r.Rounds, arrivals, r.Steady)
	if r.NoQuota != "" {
		fmt.Fprintf(&b, "Nothing ran under a quota: %s.\n", r.NoQuota)
	}
	b.WriteString("\n| signal |")
	for _, c := range r.Columns {
		fmt.Fprintf(&b, " %s |", c)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(r.Columns)) + "\n")
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "| %s |", row.Name)
		for i, c := range row.Cells {
			fmt.Fprintf(&b, " %s |", c.text(r.Columns[i].Load == loadSteady))
		}
		b.WriteString("\n")
	}
	b.WriteString("| CPU used, of what may be used |")
	for _, c := range r.Columns {
		var used []float64
		for _, t := range r.Traces {
			if c.holds(t) {
				used = append(used, t.Used)
			}
		}
		fmt.Fprintf(&b, " %.0f %% |", mean(used))
	}
	b.WriteString("\n\n| target | measured | |\n|---|---|---|\n")
	for _, t := range r.Targets {
		met := "met"
		if !t.Met {
			met = "**missed**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", t.Name, t.Value, met)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
