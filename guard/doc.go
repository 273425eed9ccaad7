// Package guard bounds the calls of every key, refuses the rest at almost no cost, and tells what happened.
//
// A key is one operation, by convention "<import path>.<Type>.<Method>". Each has its own bound N on the calls in flight;
// a key that piles up refuses its own newcomers and takes nothing from the others.
//
//	err := guard.Do("shop.Store.Get", func() error { return store.get(id) })
//	if errors.Is(err, guard.ErrRejected) {
//		// not run: answer something cheaper, or 503
//	}
//
// [Do], [DoContext] and [Call] run the function on the caller's goroutine; an error of the function comes back untouched, and
// a panic or runtime.Goexit goes on up with its own stack, after the place was given back. [For] returns the guard of a key
// to hold on to, [Guard.Enter] and [Pass.Exit] are the two halves of a call for code that cannot be a function.
//
// A key needs no declaration: it then has the defaults of package registry, N = 16 x GOMAXPROCS. Declare a spec in the
// runtime's registry to choose, at start or at any time:
//
//	guard.Default().Registry().Declare("shop.Store.Get", registry.Spec{Limit: 20, Timeout: 800 * time.Millisecond})
//
// The first use of a [Runtime] starts its background work, which samples the machine and reports lost, evicted and late calls and
// refusals; Close ends it. The
// default runtime lives as long as the process. Inside a synctest bubble use a runtime of the bubble's own (package
// guardtest makes one).
//
// Protection does not make a system faster: it refuses a part of the load so that the rest is served. Do not answer normal
// growth with it; scale out.
package guard
