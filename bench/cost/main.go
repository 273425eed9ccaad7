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
	"strings"
	"time"

	"github.com/spillway-go/spillway/bench/internal/contender"
)

func main() {
	if os.Getenv(serverRole) != "" {
		serve(os.Stdin, os.Stdout)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	rounds int
	quick  bool
	match  string
	img    string
	json   bool
	check  bool
	http   bool
}

func parse(args []string, errw io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("cost", flag.ContinueOnError)
	fs.SetOutput(errw)
	fs.IntVar(&o.rounds, "rounds", 400, "rounds of every pair, ABBA each; a tenth of them for rows that allocate, and for 2 and 64 goroutines")
	fs.BoolVar(&o.quick, "quick", false, "30 rounds, and no picture unless -img is given")
	fs.StringVar(&o.match, "match", "", "only rows whose name contains one of these, separated by commas; no picture unless -img is given")
	fs.StringVar(&o.img, "img", "../docs/img", "folder for the picture, cost-light.svg and cost-dark.svg; empty for none")
	fs.BoolVar(&o.json, "json", false, "print JSON instead of Markdown")
	fs.BoolVar(&o.check, "check", false, "exit with status 1 when a target is missed")
	fs.BoolVar(&o.http, "http", false, "measure an HTTP handler and a server instead")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: there are only flags", fs.Arg(0))
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if o.quick && !given["rounds"] {
		o.rounds = 30
	}
	if (o.quick || o.match != "") && !given["img"] {
		o.img = "" // the picture in docs shows a full run only
	}
	if o.rounds < 1 {
		return o, fmt.Errorf("-rounds %d: must be at least 1", o.rounds)
	}
	return o, nil
}

func run(ctx context.Context, args []string, out, errw io.Writer) error {
	o, err := parse(args, errw)
	if err != nil {
		return err
	}
	if o.http {
		return runHTTP(ctx, o, out, errw)
	}
	rows, err := choose(contender.All(), o.match)
	if err != nil {
		return err
	}
	report, err := measure(ctx, rows, o.rounds, progress(errw))
	if err != nil {
		return err
	}
	if o.json {
		err = printJSON(out, report)
	} else {
		err = report.markdown(out)
	}
	if err != nil {
		return err
	}
	if o.img != "" {
		if err := report.pictures(o.img); err != nil {
			return err
		}
	}
	if o.check {
		return missed(report.Targets)
	}
	return nil
}

// choose keeps the contenders whose name contains one of the comma-separated words, and the channel, by which all others
// are measured.
func choose(all []contender.Contender, match string) ([]contender.Contender, error) {
	if match == "" {
		return all, nil
	}
	var kept []contender.Contender
	found := false
	for _, c := range all {
		hit := false
		for word := range strings.SplitSeq(match, ",") {
			hit = hit || word != "" && strings.Contains(c.Name, word)
		}
		found = found || hit
		if hit || c.Name == contender.Channel || c.Name == contender.ChannelAgain {
			kept = append(kept, c)
		}
	}
	if !found {
		return nil, fmt.Errorf("-match %q: no row's name contains any of these", match)
	}
	return kept, nil
}

// progress names a stage when it begins and says how long it took when it is done. While it runs it stays silent: a
// terminal that redraws is work for the machine.
func progress(w io.Writer) func(stage string, done, of int) {
	start := time.Now()
	return func(stage string, done, of int) {
		switch done {
		case of:
			fmt.Fprintf(w, " %s\n", time.Since(start).Round(100*time.Millisecond))
		case 0:
			start = time.Now()
			fmt.Fprintf(w, "%s, %d rounds ...", stage, of)
		}
	}
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
