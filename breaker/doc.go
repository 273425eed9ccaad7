// Package breaker stops calls to something that fails: a circuit breaker per key, and a client-side throttle that lets only as much through as
// the other side accepts.
//
//	b, err := breaker.New(breaker.Config{})
//	if err != nil {
//		return err
//	}
//	err = b.Do(func() error { return store.get(id) })
//	if errors.Is(err, breaker.ErrOpen) {
//		// not run: the store failed too often lately
//	}
//
// The state machine is that of github.com/sony/gobreaker: closed, open for a while after too many failures, half-open for a few probes. But
// gobreaker never runs the call. It is told of trips and of probes' outcomes, so that a panic keeps its own stack, a call that ends its
// goroutine is a failure, a probe that never comes back cannot hold half-open for ever, what began before a change of state does not
// count after it, and functions of yours run without its lock.
//
// Package guard has both in the path of every key that asks for them; use this package for calls that are not guarded otherwise.
package breaker
