// Command breaker prints what a circuit breaker and a client-side throttle cost beside gobreaker, failsafe-go and go-zero.
//
//	go run ./breaker          the table as Markdown
//	go run ./breaker -quick   a short run
//	go run ./breaker -check   exit status 1 when a target is missed
//
// Each pair takes turns in one run (see internal/paired): believe the ratios, not the nanoseconds.
package main

import (
	"context"
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
		fmt.Fprintln(os.Stderr, "breaker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, errw io.Writer) error {
	fs := flag.NewFlagSet("breaker", flag.ContinueOnError)
	fs.SetOutput(errw)
	rounds := fs.Int("rounds", 300, "rounds of every pair, ABBA each")
	quick := fs.Bool("quick", false, "30 rounds")
	check := fs.Bool("check", false, "exit with status 1 when a target is missed")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *quick {
		*rounds = min(*rounds, 30)
	}
	if fs.NArg() > 0 || *rounds < 4 {
		return errors.New("there are only flags; -rounds must be at least 4")
	}
	rows, err := measure(ctx, *rounds)
	if err != nil {
		return err
	}
	about := machine.Describe([]string{"github.com/sony/gobreaker/v2", "github.com/failsafe-go/failsafe-go", "github.com/zeromicro/go-zero"})
	if err := markdown(out, about, rows); err != nil || !*check {
		return err
	}
	return missed(rows)
}
