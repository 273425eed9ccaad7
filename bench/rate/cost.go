package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	throttledmem "github.com/throttled/throttled/v2/store/memstore"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	xrate "golang.org/x/time/rate"

	"github.com/spillway-go/spillway/bench/internal/paired"
	"github.com/spillway-go/spillway/rate"
)

const (
	manyKeys = 100_000
	batch    = 500 * time.Microsecond
	// Several goroutines have to outlast their start.
	parallelBatch = 5 * time.Millisecond
	// maxSetups is how often each contender is set up, so that no lucky place in memory decides; half as often with a hundred
	// thousand keys of its own.
	maxSetups = 8
)

// ample is a rate that admits everything here, and still leaves no bucket full between two visits.
const ample = 1_000_000_000

// loop makes n decisions.
type loop func(n int) error

// contender is one way to decide.
type contender struct {
	name  string
	keyed bool // by one of many keys
	make  func() (loop, error)
}

// expect turns a decision into a loop that fails when the answer is another one.
func expect(want bool, decide func() bool) loop {
	return func(n int) error {
		for range n {
			if decide() != want {
				return fmt.Errorf("a decision was %v", !want)
			}
		}
		return nil
	}
}

// keys are visited in an order of which no cache knows anything. It is drawn once, so that both sides of a pair pay the same for it.
var keys, visits = func() ([]string, []int32) {
	ks := make([]string, manyKeys)
	for i := range ks {
		ks[i] = "user-" + strconv.Itoa(i)
	}
	vs := make([]int32, 1<<18)
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range vs {
		vs[i] = rng.Int32N(manyKeys)
	}
	return ks, vs
}()

// byKey makes a loop over the keys that go on where the last batch ended; each goroutine of a batch begins elsewhere.
func byKey(decide func(key string) bool) loop {
	for _, k := range keys {
		decide(strings.Clone(k)) // a request brings a string of its own
	}
	return func(n int) error {
		at := rand.IntN(len(visits))
		for range n {
			if !decide(keys[visits[at&(len(visits)-1)]]) {
				return errors.New("a decision by key was a no")
			}
			at++
		}
		return nil
	}
}

func ours(a rate.Algorithm, keys int) (*rate.Limiter, error) {
	return rate.New(rate.Config{Algorithm: a, Keys: keys})
}

// handle is ours on a resolved handle.
func handle(name string, a rate.Algorithm, want bool) contender {
	return contender{name, false, func() (loop, error) {
		l, err := ours(a, 1)
		if err != nil {
			return nil, err
		}
		b := l.Bucket("")
		if !want {
			b.Allow()
		}
		return expect(want, b.Allow), nil
	}}
}

var (
	tokens  = rate.TokenBucket{Rate: rate.PerSecond(ample), Burst: 1 << 24}
	allow   = handle("TokenBucket, Allow", tokens, true)
	refused = handle("TokenBucket, Allow, refused", rate.TokenBucket{Rate: rate.PerHour(1), Burst: 1}, false)
	sliding = handle("SlidingWindow, Allow", rate.SlidingWindow{Limit: 1 << 40, Window: time.Second}, true)
	fixed   = handle("FixedWindow, Allow", rate.FixedWindow{Limit: 1 << 40, Window: time.Second}, true)

	take = contender{"TokenBucket, Take", false, func() (loop, error) {
		l, err := ours(tokens, 1)
		if err != nil {
			return nil, err
		}
		b, ctx := l.Bucket(""), context.Background()
		return expect(true, func() bool { d, err := b.Take(ctx, 1); return err == nil && d.OK }), nil
	}}
	keyAllow = contender{"TokenBucket by key, Allow", true, func() (loop, error) {
		l, err := ours(tokens, 2*manyKeys)
		if err != nil {
			return nil, err
		}
		return byKey(l.Allow), nil
	}}
	keyTake = contender{"TokenBucket by key, Take", true, func() (loop, error) {
		l, err := ours(tokens, 2*manyKeys)
		if err != nil {
			return nil, err
		}
		ctx := context.Background()
		return byKey(func(k string) bool { d, err := l.Take(ctx, k, 1); return err == nil && d.OK }), nil
	}}

	xtime = contender{"x/time/rate, Allow", false, func() (loop, error) {
		l := xrate.NewLimiter(ample, 1<<24)
		return expect(true, l.Allow), nil
	}}
	xtimeRefused = contender{"x/time/rate, Allow, refused", false, func() (loop, error) {
		l := xrate.NewLimiter(1.0/3600, 1)
		l.Allow()
		return expect(false, l.Allow), nil
	}}
	sethvargo = contender{"sethvargo memory store by key, Take", true, func() (loop, error) {
		s, err := memorystore.New(&memorystore.Config{Tokens: 1 << 40, Interval: time.Hour, InitialAlloc: manyKeys})
		if err != nil {
			return nil, err
		}
		ctx := context.Background()
		return byKey(func(k string) bool { _, _, _, ok, err := s.Take(ctx, k); return err == nil && ok }), nil
	}}
	throttledKey = contender{"throttled GCRA by key, RateLimit", true, func() (loop, error) {
		s, err := throttledmem.NewCtx(0)
		if err != nil {
			return nil, err
		}
		l, err := throttled.NewGCRARateLimiterCtx(s, throttled.RateQuota{MaxRate: throttled.PerSec(ample), MaxBurst: 1 << 24})
		if err != nil {
			return nil, err
		}
		ctx := context.Background()
		return byKey(func(k string) bool { limited, _, err := l.RateLimitCtx(ctx, k, 1); return err == nil && !limited }), nil
	}}
	ululeKey = contender{"ulule memory store by key, Get", true, func() (loop, error) {
		l := limiter.New(memory.NewStore(), limiter.Rate{Period: time.Hour, Limit: 1 << 40})
		ctx := context.Background()
		return byKey(func(k string) bool { c, err := l.Get(ctx, k); return err == nil && !c.Reached }), nil
	}}
)

// pairing is a row: the cost of a in that of b.
type pairing struct {
	a, b       contender
	goroutines int
	most       float64 // the target; 0: none, only reported
}

var pairings = []pairing{
	{allow, xtime, 1, 0.5},
	{allow, xtime, 2, 0.5},
	{take, xtime, 1, 0},
	{refused, allow, 1, 1},
	{refused, xtimeRefused, 1, 0},
	{sliding, xtime, 1, 0},
	{fixed, xtime, 1, 0},
	{keyAllow, sethvargo, 1, 0.8},
	{keyTake, sethvargo, 1, 0},
	{keyAllow, sethvargo, 2, 0},
	{keyTake, throttledKey, 1, 0},
	{keyTake, ululeKey, 1, 0},
	{xtime, xtime, 1, 0},
}

// row is a pairing with what was measured.
type row struct {
	Name       string         `json:"name"`
	Beside     string         `json:"beside"`
	Goroutines int            `json:"goroutines"`
	Ns         float64        `json:"ns"`
	BesideNs   float64        `json:"beside_ns"`
	Ratio      paired.Summary `json:"ratio"`
	Most       float64        `json:"most,omitempty"`
}

func (p pairing) side(c contender, size time.Duration, setups int) (paired.Side, error) {
	var runs []paired.Run
	n := setups
	if c.keyed {
		n = (setups + 1) / 2
	}
	for range n {
		l, err := c.make()
		if err != nil {
			return paired.Side{}, fmt.Errorf("%s: %w", c.name, err)
		}
		if p.goroutines == 1 {
			runs = append(runs, paired.Timed(l))
		} else {
			runs = append(runs, paired.Parallel(p.goroutines, l))
		}
	}
	return paired.Size(size, runs...), nil
}

func measureCost(ctx context.Context, rounds int) ([]row, error) {
	setups := min(maxSetups, max(1, rounds/10))
	pairs := make([]*paired.Pair, len(pairings))
	for i, p := range pairings {
		size, every := batch, 1
		if p.goroutines > 1 {
			size, every = parallelBatch, 4
		}
		b, err := p.side(p.b, size, setups)
		if err != nil {
			return nil, err
		}
		a, err := p.side(p.a, size, setups)
		if err != nil {
			return nil, err
		}
		pairs[i] = &paired.Pair{Name: p.a.name, A: b, B: a, Every: every} // the ratio is B/A
	}
	if err := paired.Interleave(ctx, rounds, pairs, nil); err != nil {
		return nil, err
	}
	rows := make([]row, len(pairs))
	for i, p := range pairings {
		rows[i] = row{
			Name: p.a.name, Beside: p.b.name, Goroutines: p.goroutines, Most: p.most,
			Ns: paired.Summarize(pairs[i].TimesB()).Median, BesideNs: paired.Summarize(pairs[i].TimesA()).Median,
			Ratio: paired.Summarize(pairs[i].Ratios()),
		}
	}
	return rows, nil
}

// allocated is the most that one of our decisions allocates, in objects.
func allocated() (most float64, err error) {
	for _, c := range []contender{allow, refused, take, sliding, fixed, keyAllow, keyTake} {
		l, err := c.make()
		if err != nil {
			return 0, err
		}
		objects, _, err := paired.Allocs(20_000, l)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", c.name, err)
		}
		most = max(most, objects)
	}
	return float64(int(most*1000)) / 1000, nil // the runtime's own are less than one in a thousand
}
