package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spillway-go/spillway/bench/internal/machine"
	"github.com/spillway-go/spillway/bench/internal/paired"
)

const (
	batch = 200 * time.Microsecond
	// setups is how often each contender is set up, so that no lucky place in memory decides.
	setups = 8
	// allocBatch is the batch where a side allocates: its garbage must fall to it, not to the other.
	allocBatch = 12 * time.Millisecond
)

// pairing is a row: the cost of a in that of b.
type pairing struct {
	a, b       contender
	goroutines int
	most       float64 // the target; 0: none, only reported
	extra      float64 // the target for the difference, ns
	allocates  bool
}

var pairings = []pairing{
	{a: oursDo, b: nothing},
	{a: oursCounted, b: nothing, extra: 5},
	{a: oursDo, b: gobreakerDo, most: 0.5},
	{a: oursDo, b: gobreakerDo, goroutines: 2},
	{a: oursDo, b: failsafeDo, allocates: true},
	{a: oursFailing, b: oursDo, most: 2},
	{a: oursFailing, b: gobreakerBad},
	{a: oursOpen, b: oursDo, most: 1, allocates: true},
	{a: throttleDo, b: nothing},
	{a: throttleDo, b: goZeroDo, allocates: true},
	{a: nothing, b: nothing},
}

// row is a pairing with what was measured.
type row struct {
	pairing
	ns, besideNs float64
	ratio, more  paired.Summary // more: the difference, ns
	objects      float64        // that a call of a allocates
}

func (p pairing) side(c contender) (paired.Side, error) {
	size := batch
	if p.allocates {
		size = allocBatch
	}
	var runs []paired.Run
	for range setups {
		loop, err := c.loop()
		if err != nil {
			return paired.Side{}, err
		}
		if p.goroutines > 1 {
			runs, size = append(runs, paired.Parallel(p.goroutines, loop)), 5*time.Millisecond
		} else {
			runs = append(runs, paired.Timed(loop))
		}
	}
	return paired.Size(size, runs...), nil
}

func measure(ctx context.Context, rounds int) ([]row, error) {
	pairs := make([]*paired.Pair, len(pairings))
	for i, p := range pairings {
		b, err := p.side(p.b)
		if err != nil {
			return nil, err
		}
		a, err := p.side(p.a)
		if err != nil {
			return nil, err
		}
		pairs[i] = &paired.Pair{Name: p.a.name, A: b, B: a} // the ratio is B/A
		if p.allocates || p.goroutines > 1 {
			pairs[i].Every = 4
		}
	}
	if err := paired.Interleave(ctx, rounds, pairs, nil); err != nil {
		return nil, err
	}
	rows := make([]row, len(pairs))
	for i, p := range pairings {
		loop, err := p.a.loop()
		if err != nil {
			return nil, err
		}
		objects, _, err := paired.Allocs(20_000, loop)
		if err != nil {
			return nil, err
		}
		rows[i] = row{
			pairing: p, objects: float64(int(objects*1000)) / 1000, // the runtime's own are less than one in a thousand
			ns: paired.Summarize(pairs[i].TimesB()).Median, besideNs: paired.Summarize(pairs[i].TimesA()).Median,
			ratio: paired.Summarize(pairs[i].Ratios()), more: paired.Summarize(pairs[i].Differences()),
		}
	}
	return rows, nil
}

func markdown(w io.Writer, about machine.Machine, rows []row) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%v\n\n| | beside | goroutines | ns | beside, ns | ratio | 95 %% interval | promised | objects |\n|---|---|--:|--:|--:|--:|--:|--:|--:|\n", about)
	for _, r := range rows {
		promised := ""
		if r.most > 0 {
			promised = fmt.Sprintf("<= %.2g", r.most)
		} else if r.extra > 0 {
			promised = fmt.Sprintf("<= %.2g ns more; %.1f", r.extra, r.more.Median)
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %.0f | %.0f | %.3f | %.3f to %.3f | %s | %.3g |\n", r.a.name, r.b.name, max(1, r.goroutines),
			r.ns, r.besideNs, r.ratio.Median, r.ratio.Low, r.ratio.High, promised, r.objects)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func missed(rows []row) (err error) {
	for _, r := range rows {
		if r.most > 0 && r.ratio.Median > r.most {
			err = errors.Join(err, fmt.Errorf("missed: %s / %s is %.3f, at most %.2g is promised", r.a.name, r.b.name, r.ratio.Median, r.most))
		}
		if r.extra > 0 && r.more.Median > r.extra {
			err = errors.Join(err, fmt.Errorf("missed: %s takes %.1f ns more than %s, at most %.2g is promised", r.a.name, r.more.Median, r.b.name, r.extra))
		}
	}
	return err
}
