// Package autoscale decides whether a full bulkhead may grow, N -> 2N -> 4N, and takes it back.
//
// A small pile-up that passes (after a restart, a short burst) should lose no request. So a key that is full may hold more calls
// for a while, but only while every required indicator of the machine is known and normal, while the key's own calls
// are not late, and never above Expand x N. A mass of calls that time out is not a small pile-up: it must hit the wall. Once
// the pile-up is gone the bound steps back; when CPU or memory gets tight it goes back to N at once, and calls that run
// are left alone.
//
//	scaler, err := autoscale.New(autoscale.Config{Pressure: sampler})
//	...
//	scaler.Count(20)
//	key := scaler.Key("shop.Store.Get", 20, target)
//	...
//	pause := key.Expand(autoscale.Load{Max: 80, Bound: 20, InFlight: 20}) // a call found no place
//	...
//	scaler.Tick() // about once a sample
//
// Package guard does all of this for every key. Do not use it to find a limit: it moves between two numbers that somebody chose.
// It starts no goroutine.
package autoscale
