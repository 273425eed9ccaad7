// Package bulkhead bounds how many calls run at once.
//
// A [Bulkhead] is a queue of the calls in flight: each has an entry with its start time and the number of its goroutine,
// and the length of the queue is the number in flight. At most N enter; one more is refused at once, or waits in a bounded
// waiting room. What no other bulkhead does:
//
//   - A place that was lost (its [Permit] became unreachable without Exit) is found by the garbage collector and
//     given back, and the loss is reported with the goroutine that took it.
//   - A place whose call is stuck (older than Stale) is given to a newcomer. The stuck call stays counted as
//     detached, and live plus detached never exceed Expand x Limit, so that a hanging dependency cannot be
//     evicted into an endless pile.
//   - The bound can grow up to Expand x Limit while the machine is fine; who decides is an [Expander].
//
// Use it alone when all that is needed is a bound:
//
//	b, err := bulkhead.New(bulkhead.Config{Limit: 20})
//	if err != nil { ... }
//	permit, err := b.Enter(ctx)
//	if err != nil {
//		return err // bulkhead.ErrFull
//	}
//	defer permit.Exit()
//
// Package guard puts deadlines, counters, events and a table of keys around it; prefer that in a service. Do not use a
// bulkhead as a rate limiter (it bounds calls at once, not calls per second) nor as a mutex (it does not order
// memory between the calls that it admits).
package bulkhead
