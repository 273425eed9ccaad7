package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spillway-go/spillway/bench/internal/contender"
	"github.com/spillway-go/spillway/bench/internal/machine"
	"github.com/spillway-go/spillway/bench/internal/paired"
)

// How long a batch lasts: short enough that A and B meet the same weather, long enough that the two readings of the clock
// around it are nothing. With many goroutines it must also outlast their start.
//
// A row that leaves garbage needs rounds in which this is collected; the heap here grows by about 8 MB before it is. In
// shorter ones a collection is a rare event that a median does not see, and allocating looks free: a call with 384 bytes looks
// a quarter cheaper than it is.
const (
	serialBatch   = 200 * time.Microsecond
	parallelBatch = 3 * time.Millisecond
	garbageBatch  = 12 * time.Millisecond
	garbageEvery  = 10 // takes part in every tenth round, not to take all day
	parallelRatio = 10 // serial rounds for one of several goroutines
	allocCalls    = 2000
)

// instances is how often every contender is set up, as paired.Side advises.
const instances = 16

// goroutines of the three stages of a run. The first is the one that counts.
var goroutines = []int{1, 2, 64}

// nothing is the call that is guarded.
//
//go:noinline
func nothing() error { return nil }

// subject is a contender that has been set up.
type subject struct {
	contender.Contender
	loops         [instances]func(n int) error
	allocs, bytes float64 // per call
}

func newSubject(c contender.Contender, cleanup func(func())) *subject {
	s := &subject{Contender: c}
	for i := range s.loops {
		loop := c.Setup(cleanup)
		s.loops[i] = func(n int) error {
			if admitted := loop(n, nothing); admitted != c.Admits(n) {
				return fmt.Errorf("%s: %d of %d calls were admitted, want %d: a figure would be of something else",
					c.Name, admitted, n, c.Admits(n))
			}
			return nil
		}
	}
	return s
}

// batch is how long a batch of the subject must be on a number of goroutines.
func (s *subject) batch(goroutines int) time.Duration {
	switch {
	case s.allocs >= 0.01:
		return garbageBatch
	case goroutines > 1:
		return parallelBatch
	default:
		return serialBatch
	}
}

// side returns the subject's batch.
func (s *subject) side(goroutines int, batch time.Duration) paired.Side {
	var runs []paired.Run
	for _, loop := range s.loops {
		if goroutines == 1 {
			runs = append(runs, paired.Timed(loop))
		} else {
			runs = append(runs, paired.Parallel(goroutines, loop))
		}
	}
	return paired.Size(batch, runs...)
}

// pair compares b with a, in batches that are long enough for both.
func pair(name string, a, b *subject, goroutines int) *paired.Pair {
	batch := max(a.batch(goroutines), b.batch(goroutines))
	p := &paired.Pair{Name: name, A: a.side(goroutines, batch), B: b.side(goroutines, batch)}
	switch {
	case batch < garbageBatch:
	case goroutines == 1:
		p.Every = garbageEvery
	default:
		p.Every = 2
	}
	return p
}

// measure runs all stages over the given contenders, of which the channel must be one.
func measure(ctx context.Context, rows []contender.Contender, rounds int, progress func(stage string, done, of int)) (*report, error) {
	var undo []func()
	defer func() {
		for _, f := range slices.Backward(undo) {
			f()
		}
	}()
	var modules []string
	subjects := make([]*subject, len(rows))
	byName := map[string]*subject{}
	for i, c := range rows {
		subjects[i] = newSubject(c, func(f func()) { undo = append(undo, f) })
		byName[c.Name] = subjects[i]
		modules = append(modules, c.Module)
	}
	r := &report{Machine: machine.Describe(modules), Rounds: rounds}

	for _, s := range subjects {
		var err error
		if s.allocs, s.bytes, err = paired.Allocs(allocCalls, s.loops[0]); err != nil {
			return nil, err
		}
		r.Rows = append(r.Rows, row{
			Name: s.Name, Module: s.Module, Does: s.Does, Refuses: s.Refuses, Allocs: s.allocs, Bytes: s.bytes,
		})
	}
	for _, g := range goroutines {
		n := rounds
		if g > 1 {
			n = max(rounds/parallelRatio, 3)
		}
		if err := r.stage(ctx, subjects, byName, g, n, progress); err != nil {
			return nil, err
		}
	}
	r.judge()
	return r, nil
}

// stage measures every row against the channel, and the pairs that targets speak of against each other, with one number
// of goroutines.
func (r *report) stage(ctx context.Context, subjects []*subject, byName map[string]*subject, goroutines, rounds int,
	progress func(stage string, done, of int),
) error {
	var pairs []*paired.Pair
	for _, s := range subjects {
		pairs = append(pairs, pair(s.Name, byName[contender.Channel], s, goroutines))
	}
	if goroutines == 1 {
		for _, t := range targets {
			if byName[t.a] == nil || byName[t.b] == nil || t.b == contender.Channel {
				continue // against the channel it is measured already
			}
			pairs = append(pairs, pair(t.What, byName[t.b], byName[t.a], goroutines))
		}
	}
	name := fmt.Sprintf("%d goroutine", goroutines)
	if goroutines > 1 {
		name += "s"
	}
	if err := paired.Interleave(ctx, rounds, pairs, func(done int) { progress(name, done, rounds) }); err != nil {
		return err
	}
	for i := range subjects {
		r.Rows[i].Runs = append(r.Rows[i].Runs, result{
			Goroutines:  goroutines,
			Nanoseconds: paired.Summarize(pairs[i].TimesB()),
			Ratio:       paired.Summarize(pairs[i].Ratios()),
		})
	}
	if goroutines == 1 {
		r.direct = map[string]paired.Summary{}
		for _, p := range pairs[len(subjects):] {
			r.direct[p.Name] = paired.Summarize(p.Ratios())
		}
	}
	return nil
}
