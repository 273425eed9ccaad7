// Command breaker calls a dependency that works, fails, hangs and heals, in three ways at once: unguarded, through a circuit
// breaker and through a client-side throttle. A line a second tells what each caller saw.
//
//	go run ./examples/breaker                  twenty seconds
//	go run ./examples/breaker -second 250ms    the same play in five
//
// Each caller makes fifty calls a second and waits a quarter of a second for an answer. Watch three things: how many calls
// still reach a dependency that is down, how long those who call it wait while it hangs, and how soon all is well again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
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
	second := fs.Duration("second", time.Second, "how long a second of the play takes, 100ms to 1s")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: there are only flags", fs.Arg(0))
	}
	if *second < 100*time.Millisecond || *second > time.Second {
		return fmt.Errorf("-second is %v, must be 100ms to 1s", *second)
	}
	lines, err := play(ctx, *second, out)
	if err != nil {
		return err
	}
	return report(out, lines)
}
