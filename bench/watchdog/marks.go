package main

import (
	"context"
	"errors"
	"runtime/pprof"
	"time"

	"github.com/rs/zerolog"

	"github.com/spillway-go/spillway/guard"
)

// mark is what one way to make a call pays for being watched.
type mark struct {
	Name string  `json:"name"`
	Ns   float64 `json:"ns"`
}

const (
	batch  = 20_000
	rounds = 51
)

// measureMarks times calls through a runtime as it is by default, in batches in turn with the same calls through one that watches nothing and
// does not feel the machine, and takes the median of the differences.
func measureMarks() (list []mark, err error) {
	watched, err := guard.NewRuntime(nil, guard.WithLogger(zerolog.Nop()))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, watched.Close()) }()
	blind, err := guard.NewRuntime(nil, guard.WithLogger(zerolog.Nop()), guard.WithPressure(nil), guard.WithoutWatchdog())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, blind.Close()) }()
	a, b := watched.For("bench"), blind.For("bench")
	ctx, nothing := context.Background(), func() error { return nil }
	add := func(name string, f func(*guard.Guard)) {
		list = append(list, mark{name, difference(func() { f(a) }, func() { f(b) })})
	}
	do := func(g *guard.Guard) { _ = g.Do(nothing) }
	add("Do: number, label, frame", do)
	add("EnterScoped and Exit: the same, and the site", scoped)
	add("Enter and Exit", func(g *guard.Guard) {
		pass, err := g.Enter(ctx)
		if err != nil {
			return
		}
		defer pass.Exit()
		pass.Record(nil)
	})
	add("Do on a goroutine that was not seen before", func(g *guard.Guard) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			do(g)
		}()
		<-done
	})
	_ = watched.For("outer").Do(func() error {
		add("Do inside another call", do)
		return nil
	})
	labelled := pprof.WithLabels(ctx, pprof.Labels("route", "/buy"))
	pprof.SetGoroutineLabels(labelled)
	add("Do on a goroutine with profiler labels of its own", do)
	sets := [2]context.Context{labelled, pprof.WithLabels(ctx, pprof.Labels("route", "/sell"))}
	n := 0
	add("the same, other labels at every call", func(g *guard.Guard) {
		n++
		pprof.SetGoroutineLabels(sets[n/2&1])
		do(g)
	})
	pprof.SetGoroutineLabels(ctx)
	return list, nil
}

func scoped(g *guard.Guard) {
	pass, err := g.EnterScoped(context.Background())
	if err != nil {
		return
	}
	defer pass.Exit()
	pass.Record(nil)
}

// difference is how much longer one f takes than the other, ns.
func difference(with, without func()) float64 {
	each := func(f func()) float64 {
		began := time.Now()
		for range batch {
			f()
		}
		return float64(time.Since(began)) / batch
	}
	var all []float64
	for range rounds {
		base := each(without)
		all = append(all, each(with)-base)
	}
	return median(all)
}
