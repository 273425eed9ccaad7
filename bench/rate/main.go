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

	"github.com/spillway-go/spillway/bench/internal/machine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "rate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, errw io.Writer) error {
	fs := flag.NewFlagSet("rate", flag.ContinueOnError)
	fs.SetOutput(errw)
	rounds := fs.Int("rounds", 300, "rounds of every pair, ABBA each; a quarter of them for 2 goroutines")
	flood := fs.Int("flood", 10_000_000, "how many distinct keys come to a limiter that keeps 100,000")
	quick := fs.Bool("quick", false, "30 rounds, 200,000 keys")
	asJSON := fs.Bool("json", false, "print JSON instead of Markdown")
	check := fs.Bool("check", false, "exit with status 1 when a target is missed")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *quick {
		*rounds, *flood = min(*rounds, 30), min(*flood, 200_000)
	}
	if fs.NArg() > 0 || *rounds < 4 || *flood < 10 {
		return errors.New("there are only flags; -rounds must be at least 4 and -flood at least 10")
	}
	r, err := measure(ctx, *rounds, *flood)
	if err != nil {
		return err
	}
	if *asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		err = enc.Encode(r)
	} else {
		err = r.markdown(out)
	}
	if err != nil || !*check {
		return err
	}
	return r.missed()
}

func measure(ctx context.Context, rounds, flood int) (*report, error) {
	r := &report{Machine: machine.Describe([]string{
		"golang.org/x/time", "github.com/sethvargo/go-limiter", "github.com/throttled/throttled/v2", "github.com/ulule/limiter/v3",
	})}
	var err error
	if r.Rows, err = measureCost(ctx, rounds); err != nil {
		return nil, err
	}
	if r.Allocs, err = allocated(); err != nil {
		return nil, err
	}
	if r.Space, err = measureSpace(flood); err != nil {
		return nil, err
	}
	if r.Faults, err = faults(); err != nil {
		return nil, err
	}
	r.judge()
	return r, nil
}
