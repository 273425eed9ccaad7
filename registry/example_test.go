package registry_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/spillway-go/spillway/registry"
)

func Example() {
	reg := registry.New()
	get := registry.KeyOf("example.com/shop", "Store", "Get")
	if err := reg.Declare(get, registry.Spec{Limit: 20, Wait: 50 * time.Millisecond}); err != nil {
		fmt.Println(err)
	}
	stop := reg.Watch(func(changed []registry.Key) { fmt.Println("changed:", changed) })
	defer stop()
	if err := reg.Replace(map[registry.Key]registry.Spec{get: {Limit: 40}}); err != nil {
		fmt.Println(err)
	}
	spec, declared := reg.Lookup(get)
	fmt.Println(declared, spec)
	// Output:
	// changed: [example.com/shop.Store.Get]
	// true limit=40 expand=4 stale=60s slow=5s criticality=critical
}

func ExampleSpec_Validate() {
	err := registry.Spec{Limit: -1, Stale: time.Millisecond}.Validate()
	fmt.Println(err)
	if first, ok := errors.AsType[*registry.Problem](err); ok {
		fmt.Println("field:", first.Field, "allowed:", first.Allowed)
	}
	// Output:
	// registry: limit is -1, must be 1 to 250000
	// registry: stale is 1ms, must be 10ms to 24h
	// field: limit allowed: 1 to 250000
}
