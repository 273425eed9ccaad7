// Package paired compares the cost of two operations on a machine that will not hold still.
//
// A clock speed that changes, a neighbour on the same host, a collection left over from the batch before: each of them
// moves a time per call by more than the difference one is after. So two operations, A and B, are never timed in two
// runs. They take turns within one run, in batches of a fifth of a millisecond and in the order ABBA, so that both
// meet the same weather and a steady drift falls on both alike. Each such round gives one ratio B/A (and one difference
// B-A); what is reported is the median over many rounds, with an interval in which the true median lies, and A against a
// second A shows what the method itself is worth on that day.
//
//	a := paired.Timed(func(n int) error { ...n times A...; return nil })
//	b := paired.Timed(func(n int) error { ...n times B...; return nil })
//	p := &paired.Pair{A: paired.Size(batch, a), B: paired.Size(batch, b)}
//	err := paired.Interleave(ctx, 400, []*paired.Pair{p}, nil)
//	s := paired.Summarize(p.Ratios()) // s.Median, s.Low, s.High
//
// It is not for finding out how an operation scales, and a time per call from it is the time of that run only: compare
// ratios between runs, never times. Nothing here is safe for concurrent use: measuring two things at once measures
// neither.
package paired
