// Package registry holds what is guarded and how: keys, their specs, the
// defaults and the validation of both. It is data only. Nothing runs here and no
// goroutine is started; package guard reads a Registry and follows its changes.
//
// A spec can be declared by code or by generated code at start, and replaced at
// any time while calls run. A change takes effect as a whole or not at all:
//
//	reg := registry.New()
//	get := registry.KeyOf("example.com/shop", "Store", "Get")
//	if err := reg.Declare(get, registry.Spec{Limit: 20, Wait: 50 * time.Millisecond}); err != nil {
//		return err // one sentence for each thing that is wrong
//	}
//	stop := reg.Watch(func(changed []registry.Key) { log.Println("changed:", changed) })
//	defer stop()
//	err := reg.Replace(map[registry.Key]registry.Spec{get: {Limit: 40}})
//	spec, declared := reg.Lookup(get) // every field filled: Expand 4, Stale 60s, ...
//
// Do not keep state of calls here (in flight counts, latencies: see the snapshots
// of package guard), and do not use a key per user or per request: a key names an
// operation of the program, and there is a small, fixed number of those.
package registry
