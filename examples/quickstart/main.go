// Command quickstart guards one call in twelve lines.
//
//	go run ./examples/quickstart
//
// At most 16 x GOMAXPROCS of these calls run at once, the default of a key that
// nobody declared; one more is refused with guard.ErrRejected and does not run.
package main

import (
	"fmt"

	"github.com/spillway-go/spillway/guard"
)

func main() {
	err := guard.Do("shop.Store.Get", func() error { fmt.Println("reading the order"); return nil })
	fmt.Println("error:", err)
}
