package paired

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Run carries out n operations and says how long they took together.
type Run func(n int) (time.Duration, error)

// Side is one of the two operations of a pair, with the number of operations that makes a batch.
//
// Where an object happens to lie in memory can make an operation on it a tenth dearer for as long as it lives. So a side
// may hold the same operation set up several times, on objects of their own: each round takes one of them by chance, and the
// median is that of an object in no special place.
type Side struct {
	Runs []Run
	N    int
}

// Pair compares B with A. After Interleave it holds one value a round.
type Pair struct {
	Name  string // for the sentence of an error
	A, B  Side
	Every int // takes part in every so many rounds only; 0 is 1, all of them

	a, b []float64 // nanoseconds per operation, the mean of the round's two batches; same length
}

// round runs one round, in the order ABBA, or BAAB when flipped: the first place of a round, right behind the
// operations of another pair, must not always fall to the same side.
func (p *Pair) round(rng *rand.Rand, flipped bool) error {
	a, b := p.A.Runs[rng.IntN(len(p.A.Runs))], p.B.Runs[rng.IntN(len(p.B.Runs))]
	order := "ABBA"
	if flipped {
		order = "BAAB"
	}
	var sumA, sumB float64
	for _, side := range order {
		run, n, sum := a, p.A.N, &sumA
		if side == 'B' {
			run, n, sum = b, p.B.N, &sumB
		}
		took, err := run(n)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		*sum += float64(took) / float64(n)
	}
	p.a, p.b = append(p.a, sumA/2), append(p.b, sumB/2)
	return nil
}

// Ratios returns B/A of every round.
func (p *Pair) Ratios() []float64 {
	out := make([]float64, len(p.a))
	for i := range out {
		out[i] = p.b[i] / p.a[i]
	}
	return out
}

// Differences returns B-A of every round, in nanoseconds per operation.
func (p *Pair) Differences() []float64 {
	out := make([]float64, len(p.a))
	for i := range out {
		out[i] = p.b[i] - p.a[i]
	}
	return out
}

// TimesA returns nanoseconds per operation of A in every round. The slice is the caller's.
func (p *Pair) TimesA() []float64 { return slices.Clone(p.a) }

// TimesB returns nanoseconds per operation of B in every round. The slice is the caller's.
func (p *Pair) TimesB() []float64 { return slices.Clone(p.b) }

// Interleave runs rounds of all pairs, one round of each in turn and in a new order every time, so that no pair has a
// part of the run to itself. Progress, when not nil, is told how many rounds of all are done, from 0 on. The first error ends it,
// as does the end of ctx.
func Interleave(ctx context.Context, rounds int, pairs []*Pair, progress func(done int)) error {
	rng := rand.New(rand.NewPCG(1, 2)) // neither order nor choice need be secret, only without a pattern
	order := slices.Clone(pairs)
	if progress != nil {
		progress(0)
	}
	for r := range rounds {
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, p := range order {
			if r%max(p.Every, 1) != 0 {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := p.round(rng, len(p.a)%2 == 1); err != nil {
				return err
			}
		}
		if progress != nil {
			progress(r + 1)
		}
	}
	return nil
}
