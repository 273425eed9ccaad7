// Command overload shows what a guard is for, on real HTTP traffic.
//
//	go run ./examples/overload
//
// Three processes: a dependency, a service with a quick and a slow endpoint
// that share a pool of 16 connections to it, and this one, the client. The
// client plays the same script twice, first against the service as most people
// would write it, then against the same service behind httpguard:
//
//	calm       everything has room
//	burst      ten times the traffic on the slow endpoint
//	slow       the dependency takes 50 ms for what took 10 ms
//	hang       the dependency does not answer slow calls at all
//	recovery   the dependency is well again
//
// and prints, phase by phase, what came of it. Nothing has to be installed and
// nothing stays behind. To look closer: -side, -duration, -seed, the rates,
// -json, -picture.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	// A child of our own is started as "overload role=service".
	if len(os.Args) == 2 {
		if role, ok := strings.CutPrefix(os.Args[1], "role="); ok {
			if err := beChild(role, os.Stdin, os.Stdout); err != nil {
				fmt.Fprintf(os.Stderr, "overload %s: %v\n", role, err)
				os.Exit(1)
			}
			return
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first Ctrl-C the second one ends us the hard way; the children
	// notice that their standard input closes.
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "overload: interrupted, no report")
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}

// options is what the flags say.
type options struct {
	script Script
	sides  []Side
	json   bool
	// picture is the file that gets the picture, or "".
	picture string
}

func parse(args []string, stderr io.Writer) (options, error) {
	flags := flag.NewFlagSet("overload", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var (
		duration = flags.Duration("duration", 21*time.Second, "`length` of the five phases together, per side; 10s to 10m")
		quick    = flags.Float64("quick", 200, "`requests` a second on the quick endpoint; 10 to 5000")
		slow     = flags.Float64("slow", 120, "`requests` a second on the slow endpoint, outside the burst; 10 to 5000")
		burst    = flags.Float64("burst", 10, "how many `times` the slow traffic comes in the burst; 1 to 100")
		seed     = flags.Uint64("seed", 1, "`number` that fixes the arrival times")
		side     = flags.String("side", "both", "play only one `side`: both, unguarded, guarded")
		picture  = flags.String("picture", "", "draw the outcome into an SVG `file`")
		asJSON   = flags.Bool("json", false, "print the report as JSON; progress goes to standard error")
	)
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: go run ./examples/overload [flags]\n\nThe same script against a service without and with guards.")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("argument %q: there are only flags, see -help", flags.Arg(0))
	}
	if *duration < 10*time.Second || *duration > 10*time.Minute {
		return options{}, fmt.Errorf("-duration %v: must be 10s to 10m", *duration)
	}
	for _, rate := range []struct {
		name          string
		value, lo, hi float64
	}{{"quick", *quick, 10, 5000}, {"slow", *slow, 10, 5000}, {"burst", *burst, 1, 100}} {
		if !(rate.value >= rate.lo && rate.value <= rate.hi) { // also refuses NaN
			return options{}, fmt.Errorf("-%s %v: must be %v to %v", rate.name, rate.value, rate.lo, rate.hi)
		}
	}
	opts := options{
		script: newScript(*duration, *quick, *slow, *burst, *seed),
		json:   *asJSON, picture: *picture,
	}
	switch Side(*side) {
	case "both":
		opts.sides = []Side{Unguarded, Guarded}
	case Unguarded, Guarded:
		opts.sides = []Side{Side(*side)}
	default:
		return options{}, fmt.Errorf("-side %q: must be both, unguarded or guarded", *side)
	}
	if opts.picture != "" && len(opts.sides) < 2 {
		return options{}, fmt.Errorf("-picture: shows both sides, and -side plays only %s", *side)
	}
	return opts, nil
}

// run plays the script on every side and prints the report.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	opts, err := parse(args, stderr)
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the own program, to start it again as service and dependency: %w", err)
	}
	progress := stdout
	if opts.json {
		progress = stderr
	}
	scr := newScreen(progress, opts.script, opts.sides)
	defer scr.close()

	report := newReport(opts.script)
	for _, side := range opts.sides {
		result, err := play(ctx, exe, opts.script, side, scr)
		if err != nil {
			return err
		}
		report.add(opts.script, result)
	}
	report.judge()
	scr.close()
	if opts.picture != "" {
		if err := report.savePicture(opts.picture); err != nil {
			return err
		}
	}
	if opts.json {
		return report.writeJSON(stdout)
	}
	return report.writeText(stdout, scr.paint)
}
