package contender

import (
	"github.com/go-kratos/aegis/ratelimit"
	"github.com/go-kratos/aegis/ratelimit/bbr"
)

const aegisModule = "github.com/go-kratos/aegis"

// aegis refuses by the machine's CPU, which this very measurement drives to its end. The threshold is in permille, and
// moved out of reach for the row that admits, down to nothing for the row that refuses.
const (
	bbrNever  = 1 << 30
	bbrAlways = 0
)

var aegises = []Contender{
	{
		Name: "aegis BBR", Module: aegisModule, Does: "Allow, call, done; below its CPU threshold, so that the limit is not computed",
		Setup: func(func(func())) Loop { return bbrLoop(bbr.NewLimiter(bbr.WithCPUThreshold(bbrNever))) },
	},
	{
		Name: "aegis BBR, shedding", Module: aegisModule, Refuses: true,
		Does: "Allow, above its CPU threshold with more in flight than the computed limit",
		Setup: func(cleanup func(func())) Loop {
			l := bbr.NewLimiter(bbr.WithCPUThreshold(bbrAlways))
			for range full { // it admits two of them, which is more than a window without traffic lets it hold
				if done, err := l.Allow(); err == nil {
					cleanup(func() { done(ratelimit.DoneInfo{}) })
				}
			}
			return bbrLoop(l)
		},
	},
}

func bbrLoop(l *bbr.BBR) Loop {
	return func(n int, body func() error) (admitted int) {
		for range n {
			done, err := l.Allow()
			if err != nil {
				continue
			}
			done(ratelimit.DoneInfo{Err: body()})
			admitted++
		}
		return admitted
	}
}
