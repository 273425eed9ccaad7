// Package contender holds what is measured: ways to bound, shed or break calls, each brought into the same shape.
//
// One contender is one entry in the list of its family's file:
//
//	{
//		Name:   "x/sync semaphore",
//		Module: "golang.org/x/sync",
//		Does:   "TryAcquire(1), Release(1)",
//		Pair:   true,
//		Setup: func(func(func())) Loop {
//			sem := semaphore.NewWeighted(limit)
//			return func(n int, _ func() error) (admitted int) { ... }
//		},
//	}
//
// and its family's list is one entry of All. The tests of this package hold every entry to what it says: an admitting
// one admits every call and runs it, a refusing one refuses every call and runs nothing. The measurement checks the same
// after every batch, so that no figure can come from calls that quietly went another way.
//
// A contender brings its own loop, as a call through a function value per operation would be a good part of what the
// cheapest of them cost.
package contender
