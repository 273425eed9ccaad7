package rate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/spillway-go/spillway/rate"
)

func Example() {
	limiter, err := rate.New(rate.Config{
		Algorithm: rate.TokenBucket{Rate: rate.PerHour(100), Burst: 2},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, user := range []string{"ann", "ann", "ann", "bob"} {
		fmt.Println(user, limiter.Allow(user))
	}
	// Output:
	// ann true
	// ann true
	// ann false
	// bob true
}

// A limit for the user and one for all, in one step: what does not pass is counted nowhere.
func ExampleTake() {
	perUser, _ := rate.New(rate.Config{Algorithm: rate.SlidingWindow{Limit: 10, Window: time.Hour}})
	global, _ := rate.New(rate.Config{Algorithm: rate.TokenBucket{Rate: rate.PerHour(1), Burst: 12}, Keys: 1})
	for _, user := range []string{"ann", "bob"} {
		decisions, err := rate.Take(context.Background(), []rate.Request{
			{Limiter: perUser, Key: user, N: 8},
			{Limiter: global, N: 8},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(user, decisions[0].OK, decisions[0].Remaining, decisions[1].Remaining)
	}
	// Output:
	// ann true 2 4
	// bob false 10 4
}

// What was taken and not needed goes back, however often it is said.
func ExampleBucket_Reserve() {
	limiter, _ := rate.New(rate.Config{Algorithm: rate.FixedWindow{Limit: 3, Window: time.Hour}, Keys: 1})
	bucket, ctx := limiter.Bucket(""), context.Background()
	r, err := bucket.Reserve(ctx, 2)
	fmt.Println(r.OK, r.Remaining, err)
	fmt.Println(r.GiveBack(ctx), r.GiveBack(ctx))
	d, err := bucket.Peek(ctx, 1)
	fmt.Println(d.Remaining, err)
	// Output:
	// true 1 <nil>
	// <nil> <nil>
	// 3 <nil>
}

// Calls to a service that wants an even pace: ten wait at most, none longer than 100 ms.
func ExampleLeakyBucket() {
	_, err := rate.New(rate.Config{Algorithm: rate.LeakyBucket{
		Rate: rate.PerSecond(100), Queue: 10, Service: 20 * time.Millisecond, Tolerate: 100 * time.Millisecond,
	}})
	fmt.Println(err)
	// Output:
	// rate: Queue / Rate + Service is 100ms + 20ms, must be at most Tolerate, 100ms
}
