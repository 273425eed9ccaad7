package contender

import (
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/afex/hystrix-go/hystrix"
)

const hystrixGo = "github.com/afex/hystrix-go"

var hystrixes = []Contender{
	{
		Name: "hystrix-go: Do", Module: hystrixGo, Does: "command with a bound, no fallback; it runs the call and its timer on two goroutines of their own",
		Setup: func(func(func())) Loop { return hystrixLoop(hystrixCommand(hystrixLimit)) },
	},
	{
		Name: "hystrix-go: Do, full", Module: hystrixGo, Does: "the same, every place taken, the circuit kept closed", Refuses: true,
		Setup: func(cleanup func(func())) Loop {
			name := hystrixCommand(full)
			var entered, left sync.WaitGroup
			release := make(chan struct{})
			for range full {
				entered.Add(1)
				left.Add(1)
				hystrix.Go(name, func() error {
					defer left.Done()
					entered.Done()
					<-release
					return nil
				}, nil)
			}
			entered.Wait()
			cleanup(func() { close(release); left.Wait() })
			return hystrixLoop(name)
		},
	},
}

// Do answers before its place is given back: on a busy machine a thousand of them are soon on their way.
const hystrixLimit = 10 * limit

var hystrixNames atomic.Int64

// hystrixCommand configures a command of its own for every setup: the library keeps them in a table for ever.
func hystrixCommand(places int) string {
	name := "bench" + strconv.FormatInt(hystrixNames.Add(1), 10)
	hystrix.ConfigureCommand(name, hystrix.CommandConfig{
		Timeout:               int(time.Hour / time.Millisecond),
		MaxConcurrentRequests: places,
		ErrorPercentThreshold: math.MaxInt32, // refusals count as errors there, and would open the circuit
	})
	return name
}

func hystrixLoop(name string) Loop {
	return func(n int, body func() error) (admitted int) {
		for range n {
			if hystrix.Do(name, body, nil) == nil {
				admitted++
			}
		}
		return admitted
	}
}
