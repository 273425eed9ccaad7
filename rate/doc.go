// Package rate limits how often something may happen, with four algorithms that never let more through than they promise.
//
//	algorithm       promises                                                     its flaw
//	TokenBucket     in any time t at most Burst + Rate x t                       a burst passes whole
//	LeakyBucket     a steady pace, at most Queue waiting                         who waits is late
//	SlidingWindow   at most Limit in any Window, wherever it begins              no smoothing inside the window
//	FixedWindow     at most Limit in each Window                                 twice the limit across an edge
//
// A Limiter is one limit for many keys (users, addresses, tenants); each key counts by itself. A Bucket is one key of it,
// looked up once.
//
//	limiter, err := rate.New(rate.Config{
//		Algorithm: rate.TokenBucket{Rate: rate.PerSecond(100), Burst: 20},
//	})
//	...
//	if !limiter.Allow(user) {
//		return errTooMany
//	}
//
//	global := limiter.Bucket("")           // one key, no look-up
//	d, err := global.Take(ctx, 5)          // five at once, or none
//	w.Header().Set("Retry-After", seconds(d.RetryAfter))
//	err = global.Wait(ctx, 1)              // in order of arrival
//
// All arithmetic is on integers, and exact: nothing is created or lost by rounding, not at one an hour and not at ten million a
// second. Time is the monotonic clock: a step of the wall clock changes nothing. A RetryAfter is never too early, and
// less than a nanosecond too late.
//
// Memory is bounded by Config.Keys. A key is forgotten only when its state is that of a key never seen, so that a flood of
// new keys gives nobody a fresh start; when there is no room, newcomers share one bucket.
//
// Do not use it to protect a machine that is overloaded: a number of requests a second says nothing about what they
// cost. That is what package guard is for. It starts no goroutine, except one for each request to a TokenSource.
package rate
