// Package guardtest helps to test programs that use package guard: it makes a runtime of the test's own, forces
// refusals, injects latency and errors, fills keys, records events, and asserts that no call is left in flight.
//
//	func TestShopDegrades(t *testing.T) {
//		rt := guardtest.New(t)
//		shop := NewShop(rt.Runtime)
//		rt.Refuse("shop.Store.Get", guard.ReasonOpen)
//		if got := shop.Price("tea"); got != cachedPrice {
//			t.Errorf("with the store refused the price is %v, want the cached %v", got, cachedPrice)
//		}
//		rt.Allow("shop.Store.Get")
//		rt.AssertIdle()
//	}
//
// Inside a testing/synctest bubble, where waits, timeouts and stuck calls take no time, call New in the bubble with the
// bubble's t: everything of the runtime then belongs to the bubble and ends with it.
//
//	synctest.Test(t, func(t *testing.T) {
//		rt := guardtest.New(t)
//		rt.Inject("shop.Store.Get", guardtest.Latency(time.Minute))
//		...
//	})
//
// Do not use it outside of tests: it imports package testing, and its injector makes every call take the long way.
// It cannot reach code that calls guard.Do and other functions of the default runtime; give such code a *guard.Runtime,
// or a *guard.Guard, to be tested with. To test your own limits under load use a runtime from guard.NewRuntime.
package guardtest
