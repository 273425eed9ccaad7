// Command proxy is a reverse proxy over five upstreams of which one hangs.
//
//	go run ./examples/proxy
//
// The proxy handles 32 requests at a time, as its memory would have it. The
// upstream that hangs soon holds all 32, and the four that are well starve.
// With a guard per upstream it holds no more than its own six, and is refused
// beyond; the four do not notice. Everything runs in this process, on loopback,
// for about six seconds.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

// What the world of the example is like.
const (
	workers  = 32                      // requests the proxy handles at one time
	places   = 6                       // of them for one upstream, when guarded: 5 x 6 < 32
	answers  = 5 * time.Millisecond    // the time an upstream takes
	rate     = 80                      // requests a second to each upstream
	length   = 2500 * time.Millisecond // of one round
	deadline = 400 * time.Millisecond  // an answer that comes later does not count
	patience = time.Second             // after that the client hangs up
)

// upstreams are the five; the last one hangs.
var upstreams = []string{"orders", "prices", "search", "images", "reviews"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "proxy:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	fmt.Fprintf(out, "A proxy that handles %d requests at a time, before five upstreams; %d requests a second to each.\n\n", workers, rate)
	without, err := round(ctx, false)
	if err != nil {
		return err
	}
	with, err := round(ctx, true)
	if err != nil {
		return err
	}
	return table(out, without, with)
}

// table prints both rounds side by side.
func table(out io.Writer, without, with []tally) error {
	fmt.Fprintf(out, "%-18s %22s %32s\n", "", "without guards", "a guard per upstream")
	fmt.Fprintf(out, "%-18s %12s %9s %12s %9s %9s\n", "", "in time", "p99", "in time", "refused", "p99")
	for i, name := range upstreams {
		if i == len(upstreams)-1 {
			name += " (hangs)"
		}
		u, g := &without[i], &with[i]
		fmt.Fprintf(out, "%-18s %10.0f %% %9s %10.0f %% %9d %9s\n", name,
			100*u.success(), u.p99(), 100*g.success(), g.refused, g.p99())
	}
	_, err := fmt.Fprintf(out, "\nIn time: within %v. What hangs takes its own places, and nobody else's.\n", deadline)
	return err
}
