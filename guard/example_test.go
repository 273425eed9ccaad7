package guard_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

type shop struct{}

func (shop) get(int) error                                         { return nil }
func (shop) price(_ context.Context, id int) (int, error)          { return 100 * id, nil }
func (shop) slowPrice(ctx context.Context, _ int) (int, error)     { <-ctx.Done(); return 0, ctx.Err() }
func (shop) lastKnownPrice(_ context.Context, id int) (int, error) { return 99 * id, nil }

var store shop

const id = 7

func Example() {
	err := guard.Do("shop.Store.Get", func() error { return store.get(id) })
	if errors.Is(err, guard.ErrRejected) {
		fmt.Println("not run: answer something cheaper, or 503")
	}
	fmt.Println(err)
	// Output: <nil>
}

func Example_declare() {
	err := guard.Default().Registry().Declare("shop.Store.Put", registry.Spec{Limit: 20, Timeout: 800 * time.Millisecond})
	fmt.Println(err)
	fmt.Println(guard.For("shop.Store.Put").Snapshot().Bulkhead.Bound)
	// Output:
	// <nil>
	// 20
}

func ExampleCall() {
	price, err := guard.Call(context.Background(), "shop.Store.Price", func(ctx context.Context) (int, error) {
		return store.price(ctx, id)
	})
	fmt.Println(price, err)
	// Output: 700 <nil>
}

// A dependency that hangs runs into the key's timeout; a worse answer is better than none.
func ExampleCallOr() {
	err := guard.Default().Registry().Declare("shop.Store.SlowPrice", registry.Spec{Timeout: 10 * time.Millisecond})
	if err != nil {
		fmt.Println(err)
	}
	price, err := guard.CallOr(context.Background(), "shop.Store.SlowPrice",
		func(ctx context.Context) (int, error) { return store.slowPrice(ctx, id) },
		func(ctx context.Context, err error) (int, error) {
			fmt.Println("instead, after:", err)
			return store.lastKnownPrice(ctx, id)
		})
	fmt.Println(price, err)
	// Output:
	// instead, after: context deadline exceeded
	// 693 <nil>
}

func ExampleGuard_Enter() {
	g := guard.For("shop.Store.Stream")
	work := func(context.Context) error { return nil }
	call := func(ctx context.Context) error {
		pass, err := g.Enter(ctx)
		if err != nil {
			return err
		}
		defer pass.Exit()
		err = work(pass.Context())
		pass.Record(err)
		return err
	}
	fmt.Println(call(context.Background()))
	// Output: <nil>
}

// A call that holds several places counts as that many calls.
func ExampleGuard_EnterN() {
	rt := isolated(registry.Spec{Limit: 10})
	defer func() { _ = rt.Close() }()
	report, err := rt.For("shop.Store.Report").EnterN(context.Background(), 8)
	if err != nil {
		return
	}
	defer report.Exit()
	_, err = rt.For("shop.Store.Report").EnterN(context.Background(), 3)
	fmt.Println(err)
	pass, err := rt.For("shop.Store.Report").EnterN(context.Background(), 2)
	fmt.Println(err)
	defer pass.Exit()
	// Output:
	// guard: shop.Store.Report: overload protection limit exceeded (full, limit 10)
	// <nil>
}

func ExampleRejection() {
	rt := isolated(registry.Spec{Limit: 1})
	defer func() { _ = rt.Close() }()
	_ = rt.Do("shop.Store.Get", func() error {
		done := make(chan error)
		go func() { done <- rt.Do("shop.Store.Get", func() error { return nil }) }()
		err := <-done
		if r, ok := errors.AsType[*guard.Rejection](err); ok {
			fmt.Println(r.Key(), r.Reason(), r.Limit(), r.RetryAfter())
		}
		fmt.Println(errors.Is(err, guard.ErrRejected), errors.Is(err, bulkhead.ErrFull))
		return nil
	})
	// Output:
	// shop.Store.Get full 1 1s
	// true true
}

// Specs can be replaced at any time, all or nothing. Calls in flight and waiting calls stay.
func ExampleRuntime_Registry() {
	rt := isolated(registry.Spec{})
	defer func() { _ = rt.Close() }()
	err := rt.Registry().Replace(map[registry.Key]registry.Spec{
		"shop.Store.Get": {Limit: 20, Wait: 50 * time.Millisecond},
		"shop.Store.Put": {Limit: 5, Criticality: registry.CriticalPlus},
	})
	fmt.Println(err)
	fmt.Println(rt.For("shop.Store.Get").Snapshot().Spec)
	// Output:
	// <nil>
	// limit=20 expand=4 stale=60s wait=50ms queue=20 slow=5s criticality=critical
}

func ExampleRuntime_Subscribe() {
	rt := isolated(registry.Spec{Limit: 1})
	defer func() { _ = rt.Close() }()
	rt.For("shop.Store.Get") // its guard is made on first use
	events := rt.Subscribe(100)
	defer events.Close()
	err := rt.Registry().Replace(map[registry.Key]registry.Spec{"shop.Store.Get": {Limit: 2}})
	fmt.Println(err)
	e, err := events.Next(context.Background())
	fmt.Println(e, err)
	// Output:
	// <nil>
	// shop.Store.Get: spec is now limit=2 expand=4 stale=60s slow=5s criticality=critical <nil>
}

func ExampleWithLogger() {
	logger := zerolog.New(os.Stdout)
	rt, err := guard.NewRuntime(nil, guard.WithLogger(logger))
	if err != nil {
		fmt.Println(err)
	}
	defer func() { _ = rt.Close() }() // writes what is not written yet
	rt.For("shop.Store.Get")
	err = rt.Registry().Replace(map[registry.Key]registry.Spec{"shop.Store.Get": {Limit: 2}})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"level":"info","event":"spec","key":"shop.Store.Get","in_flight":0,"bound":2,"spec":"limit=2 expand=4 stale=60s slow=5s criticality=critical","message":"shop.Store.Get: spec is now limit=2 expand=4 stale=60s slow=5s criticality=critical"}
}

func ExampleHistogram_Sub() {
	rt := isolated(registry.Spec{})
	defer func() { _ = rt.Close() }()
	before := rt.For("shop.Store.Get").Snapshot().Latency
	for range 3 {
		_ = rt.Do("shop.Store.Get", func() error { return store.get(id) })
	}
	since := rt.For("shop.Store.Get").Snapshot().Latency.Sub(before)
	fmt.Println(since.Count() > 0, since.Quantile(0.99) < time.Second)
	// Output: true true
}

// isolated is a silent runtime of an example's own.
func isolated(undeclared registry.Spec) *guard.Runtime {
	rt, err := guard.NewRuntime(nil, guard.WithLogger(zerolog.Nop()), guard.WithPressure(nil))
	if err == nil {
		err = rt.Registry().SetDefault(undeclared)
	}
	if err != nil {
		fmt.Println(err)
	}
	return rt
}
