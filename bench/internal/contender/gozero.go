package contender

import (
	"sync"

	"github.com/zeromicro/go-zero/core/breaker"
	"github.com/zeromicro/go-zero/core/load"
	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/core/stat"
)

const goZero = "github.com/zeromicro/go-zero"

// Like aegis, go-zero sheds by the machine's CPU in permille; see bbrNever and bbrAlways.
const (
	shedderNever  = 1 << 30
	shedderAlways = 0
)

// quietGoZero keeps its log and its alerts, one line per refusal, out of the output and of the figures.
var quietGoZero = sync.OnceFunc(func() {
	logx.Disable()
	logx.DisableStat()
	stat.SetReporter(nil)
})

var gozeros = []Contender{
	{
		Name: "go-zero shedder", Module: goZero, Does: "Allow, call, Pass; below its CPU threshold, so that the limit is not computed",
		Setup: func(func(func())) Loop {
			quietGoZero()
			return shedderLoop(load.NewAdaptiveShedder(load.WithCpuThreshold(shedderNever)))
		},
	},
	{
		Name: "go-zero breaker", Module: goZero, Does: "Do of its client-side throttle, every call succeeds; no bound. Its refusals are by chance and have no row",
		Setup: func(func(func())) Loop {
			quietGoZero()
			b := breaker.NewBreaker()
			return func(n int, body func() error) (admitted int) {
				for range n {
					if b.Do(body) == nil {
						admitted++
					}
				}
				return admitted
			}
		},
	},
	{
		Name: "go-zero shedder, shedding", Module: goZero, Refuses: true,
		Does: "Allow, above its CPU threshold with more in flight than the computed limit; logging and alerts off",
		Setup: func(cleanup func(func())) Loop {
			quietGoZero()
			s := load.NewAdaptiveShedder(load.WithCpuThreshold(shedderAlways))
			fillShedder(s, cleanup)
			return shedderLoop(s)
		},
	},
}

// fillShedder leaves the shedder with far more in flight than its limit, 10 for a window without traffic, both now and
// in its moving average, which follows only when calls end.
func fillShedder(s load.Shedder, cleanup func(func())) {
	var held []load.Promise
	for range 10 * full {
		if p, err := s.Allow(); err == nil {
			held = append(held, p)
		}
	}
	for _, p := range held[:5*full] {
		p.Fail()
	}
	for _, p := range held[5*full:] {
		cleanup(p.Fail)
	}
}

func shedderLoop(s load.Shedder) Loop {
	return func(n int, body func() error) (admitted int) {
		for range n {
			p, err := s.Allow()
			if err != nil {
				continue
			}
			if body() == nil {
				p.Pass()
			} else {
				p.Fail()
			}
			admitted++
		}
		return admitted
	}
}
