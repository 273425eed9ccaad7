package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spillway-go/spillway/bench/internal/machine"
)

// What is promised.
const (
	maxMark      = 45.0             // ns a call
	maxStop      = time.Millisecond // median of the dumps at 10,000 goroutines
	minRatio     = 20.0             // runtime.Stack(all)'s stop to a dump's
	maxShare     = 0.01             // of one core, for 10,000 keys
	maxTold      = 1.5              // s, for a call that is slow after one
	maxText      = 1 << 20          // bytes of stacks
	maxAllocated = 100 << 20        // bytes that the runtime allocates for the profile of 100,000 goroutines
)

type report struct {
	Machine  machine.Machine `json:"machine"`
	Marks    []mark          `json:"marks"`
	Scan     scan            `json:"scan"`
	Told     told            `json:"told"`
	Dumps    []dumps         `json:"dumps"`
	Verdicts []verdict       `json:"targets"`
}

type verdict struct {
	What     string  `json:"what"`
	Measured float64 `json:"measured"`
	Limit    float64 `json:"limit"`
	Least    bool    `json:"least"` // the limit is the least, not the most
	Met      bool    `json:"met"`
}

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "watchdog:", err)
		os.Exit(1)
	}
}

func run(args []string, out, errw io.Writer) error {
	fs := flag.NewFlagSet("watchdog", flag.ContinueOnError)
	fs.SetOutput(errw)
	quick := fs.Bool("quick", false, "fewer dumps, none among 100,000 goroutines")
	asJSON := fs.Bool("json", false, "print JSON instead of Markdown")
	check := fs.Bool("check", false, "exit with status 1 when a target is missed")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return errors.New("there are only flags")
	}
	r := report{Machine: machine.Describe(nil)}
	if err := r.measure(*quick); err != nil {
		return err
	}
	r.judge()
	var err error
	if *asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		err = enc.Encode(r)
	} else {
		_, err = io.WriteString(out, r.markdown())
	}
	if err != nil || !*check {
		return err
	}
	for _, v := range r.Verdicts {
		if !v.Met {
			err = errors.Join(err, fmt.Errorf("missed: %s is %.4g, the limit %.4g", v.What, v.Measured, v.Limit))
		}
	}
	return err
}

func (r *report) measure(quick bool) (err error) {
	if r.Marks, err = measureMarks(); err != nil {
		return err
	}
	during := 5 * time.Second
	sizes := []struct{ late, goroutines, dumps int }{{1, 10_000, 20}, {500, 10_000, 20}, {10_000, 10_000, 5}, {500, 100_000, 5}}
	if quick {
		during = 500 * time.Millisecond
		sizes = sizes[:2]
		for i := range sizes {
			sizes[i].dumps, sizes[i].goroutines = 3, 2_000
		}
	}
	if r.Scan, err = measureScan(10_000, 100, during); err != nil {
		return err
	}
	tries := 5
	if quick {
		tries = 1
	}
	if r.Told, err = measureTold(10_000, tries); err != nil {
		return err
	}
	for _, s := range sizes {
		d, err := measureDumps(s.late, s.goroutines, s.dumps)
		if err != nil {
			return fmt.Errorf("%d late calls among %d goroutines: %w", s.late, s.goroutines, err)
		}
		r.Dumps = append(r.Dumps, d)
	}
	return nil
}

func (r *report) judge() {
	most := func(what string, measured, limit float64) {
		r.Verdicts = append(r.Verdicts, verdict{what, measured, limit, false, measured <= limit})
	}
	for _, m := range r.Marks[:3] {
		most(m.Name+", ns", m.Ns, maxMark)
	}
	if r.Scan.Share >= 0 {
		most(fmt.Sprintf("%d keys, %d active, share of a core", r.Scan.Keys, r.Scan.Active), r.Scan.Share, maxShare)
	}
	most(fmt.Sprintf("one slow call among %d: told after its start, s", r.Told.Goroutines), r.Told.After.Seconds(), maxTold)
	most("the same: reports without its own stack", float64(r.Told.Wrong), 0)
	for _, d := range r.Dumps {
		name := fmt.Sprintf("%d late among %d: ", d.Late, d.Goroutines)
		if d.Goroutines <= 10_000 {
			most(name+"median stop, ms", ms(d.Stop), ms(maxStop))
			ratio := float64(d.StackStop) / float64(max(1, d.Stop))
			r.Verdicts = append(r.Verdicts, verdict{name + "runtime.Stack's stop is so many times longer", ratio, minRatio, true, ratio >= minRatio})
		} else {
			most(name+"MiB allocated for the profile", float64(d.Allocated)/(1<<20), maxAllocated/(1<<20))
		}
		most(name+"calls without their stack", float64(d.Late-d.Shown), 0)
		most(name+"bytes of stacks", float64(d.Bytes), maxText)
	}
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

func (r *report) markdown() string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("%s\n\n| being watched adds to | ns |\n|---|--:|\n", r.Machine)
	for _, m := range r.Marks {
		p("| %s | %.1f |\n", m.Name, m.Ns)
	}
	p("\n| a dump | goroutines | takes | longest stop, median | worst | allocates | `runtime.Stack(all)` takes | its stop |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, d := range r.Dumps {
		p("| %d late calls | %d | %.0f ms | %.3f ms | %.3f ms | %.1f MiB | %.0f ms | %.0f ms |\n",
			d.Late, d.Goroutines, ms(d.Total), ms(d.Stop), ms(d.Worst), float64(d.Allocated)/(1<<20), ms(d.StackTotal), ms(d.StackStop))
	}
	p("\n| target | measured | limit | |\n|---|--:|--:|---|\n")
	for _, v := range r.Verdicts {
		sign, met := "<=", "met"
		if v.Least {
			sign = ">="
		}
		if !v.Met {
			met = "**missed**"
		}
		p("| %s | %.4g | %s %.4g | %s |\n", v.What, v.Measured, sign, v.Limit, met)
	}
	return b.String()
}
