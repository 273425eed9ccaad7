// Command manual enters and leaves a guard by hand, for calls of different
// weight: a batch counts for one place per thousand rows.
//
//	go run ./examples/manual
//
// Enter, defer Exit, Record is what generated code does too. Use guard.Do where
// the call is a function anyway; it cannot forget the Exit.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rs/zerolog"
	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

const key registry.Key = "shop.Import.Load"

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

// importer loads batches, of at most eight thousand rows at one time.
type importer struct{ guard *guard.Guard }

// load runs read for a batch of the given size.
func (i importer) load(ctx context.Context, rows int, read func(context.Context) error) error {
	pass, err := i.guard.EnterN(ctx, (rows+999)/1000)
	if err != nil {
		return err // refused: read did not run, nothing is to be given back
	}
	defer pass.Exit() // whatever happens, a panic too
	err = read(pass.Context())
	pass.Record(err) // without it Exit takes the call for one that failed
	return err
}

func run(ctx context.Context, out io.Writer) error {
	reg := registry.New()
	if err := reg.Declare(key, registry.Spec{Limit: 8, Expand: 1}); err != nil {
		return err
	}
	// Without a logger of ours a warning about the refusal goes to standard error.
	rt, err := guard.NewRuntime(reg, guard.WithLogger(zerolog.Nop()))
	if err != nil {
		return err
	}
	defer func() { _ = rt.Close() }()
	imports := importer{guard: rt.For(key)}

	// A batch of six thousand rows that takes its time.
	started, finish, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		done <- imports.load(ctx, 6000, func(context.Context) error {
			close(started)
			<-finish
			return nil
		})
	}()
	<-started
	fmt.Fprintln(out, "6000 rows are being read, places in use:", imports.guard.Snapshot().Bulkhead.InFlight)

	read := func(context.Context) error { return nil }
	broken := func(context.Context) error { return errors.New("line 7 has no price") }
	fmt.Fprintln(out, "3000 more:", imports.load(ctx, 3000, read))
	fmt.Fprintln(out, "2000 more:", imports.load(ctx, 2000, read))
	fmt.Fprintln(out, "a bad batch:", imports.load(ctx, 500, broken))

	close(finish)
	if err := <-done; err != nil {
		return err
	}
	s := imports.guard.Snapshot()
	_, err = fmt.Fprintf(out, "admitted %d, failed %d, refused %d, in use %d\n",
		s.Admitted, s.Failed, s.Refused[guard.ReasonFull], s.Bulkhead.InFlight)
	return err
}
