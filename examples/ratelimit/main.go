// Command ratelimit sends the same six seconds of traffic through four rate limits of 100 a second, prints what each let through
// and when, and draws it.
//
//	go run ./examples/ratelimit                  the table, and the picture in rate.svg
//	go run ./examples/ratelimit -svg docs.svg    another file; "" for none
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "ratelimit:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, errw io.Writer) error {
	fs := flag.NewFlagSet("ratelimit", flag.ContinueOnError)
	fs.SetOutput(errw)
	svg := fs.String("svg", "rate.svg", "file for the picture; empty for none")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: there are only flags", fs.Arg(0))
	}
	contestants, err := enter()
	if err != nil {
		return err
	}
	arrivals := traffic()
	if err := play(ctx, arrivals, contestants); err != nil {
		return err
	}
	if err := table(out, arrivals, contestants); err != nil || *svg == "" {
		return err
	}
	f, err := os.Create(*svg)
	if err != nil {
		return err
	}
	if err := errors.Join(picture(f, arrivals, contestants), f.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "\nThe picture is in", *svg)
	return err
}
