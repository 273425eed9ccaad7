package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/spillway-go/spillway/bench/internal/machine"
)

func main() {
	if os.Getenv(childRole) != "" {
		if err := child(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "pressure, under load:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "pressure:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	rounds int
	step   time.Duration
	steady time.Duration
	quick  bool
	random bool
	match  string
	img    string
	json   bool
	check  bool
}

func parse(args []string, errw io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("pressure", flag.ContinueOnError)
	fs.SetOutput(errw)
	fs.IntVar(&o.rounds, "rounds", 5, "runs of each kind")
	fs.DurationVar(&o.step, "step", 3*time.Second, "how long an overload lasts")
	fs.DurationVar(&o.steady, "steady", 10*time.Second, "how long the steady load lasts")
	fs.BoolVar(&o.quick, "quick", false, "one round, and no picture unless -img is given")
	fs.BoolVar(&o.random, "random", false, "the steady load comes at random (Poisson) instead of evenly")
	fs.StringVar(&o.match, "match", "", "only loads whose column has this in its head, and no picture unless -img is given")
	fs.StringVar(&o.img, "img", "../docs/img", "folder for the picture, pressure.svg; empty for none")
	fs.BoolVar(&o.json, "json", false, "print JSON instead of Markdown")
	fs.BoolVar(&o.check, "check", false, "exit with status 1 when a target is missed")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: there are only flags", fs.Arg(0))
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if o.quick && !given["rounds"] {
		o.rounds = 1
	}
	if (o.quick || o.random || o.match != "") && !given["img"] {
		o.img = "" // the picture in docs shows a full run only
	}
	if o.rounds < 1 || o.step < time.Second || o.steady < time.Second || o.step > time.Minute || o.steady > time.Minute {
		return o, errors.New("-rounds must be at least 1, -step and -steady 1s..1m")
	}
	return o, nil
}

func run(ctx context.Context, args []string, out, errw io.Writer) error {
	o, err := parse(args, errw)
	if err != nil {
		return err
	}
	r := &report{Machine: machine.Describe(nil), Rounds: o.rounds, Steady: o.steady, Random: o.random}
	if err := measure(ctx, o, r, errw); err != nil {
		return err
	}
	r.judge()
	if o.json {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	} else {
		err = r.markdown(out)
	}
	if err != nil {
		return err
	}
	if o.img != "" {
		if err := os.MkdirAll(o.img, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(o.img, "pressure.svg"), r.svg(), 0o644); err != nil {
			return err
		}
	}
	if o.check {
		return r.missed()
	}
	return nil
}

// measure runs every kind of load in turns, so that a machine whose speed varies does so for all.
func measure(ctx context.Context, o options, r *report, errw io.Writer) error {
	group, err := newQuotaGroup(halfACPU)
	if err != nil {
		r.NoQuota = err.Error()
	} else {
		defer group.remove()
	}
	r.Columns = columns(err == nil, o.match)
	if len(r.Columns) == 0 {
		return fmt.Errorf("-match %q: no column has this in its head", o.match)
	}
	for round := range o.rounds {
		for _, c := range r.Columns {
			fmt.Fprintf(errw, "round %d of %d: %s\n", round+1, o.rounds, c)
			j := job{Load: c.Load, Quota: c.Quota, Lasts: o.step, Random: o.random && c.Load == loadSteady}
			if c.Load == loadSteady {
				j.Lasts = o.steady
			}
			// Not all at the same point of the sampler's period.
			j.Idle = 2*time.Second + time.Duration(round*37)*time.Millisecond
			in := group
			if c.Quota == 0 {
				in = nil
			}
			t, err := spawn(ctx, j, in)
			if err != nil {
				return err
			}
			r.Traces = append(r.Traces, t)
		}
	}
	return nil
}
