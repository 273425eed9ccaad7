package main

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func Example() {
	main()
	// Output:
	// 6000 rows are being read, places in use: 6
	// 3000 more: guard: shop.Import.Load: overload protection limit exceeded (full, limit 8)
	// 2000 more: <nil>
	// a bad batch: line 7 has no price
	// admitted 3, failed 1, refused 1, in use 0
}
