package rate

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math/bits"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/spillway-go/spillway/internal/clock"
)

// Ranges and defaults of Config.
const (
	MaxKeys     = 1 << 30
	DefaultKeys = 100_000
)

// Config describes a Limiter. Algorithm is required.
type Config struct {
	Algorithm Algorithm
	// Keys is how many keys have a state of their own, 1 to MaxKeys; 0 means 100,000. A key takes 64 bytes at most, whatever its
	// length (hashes of 96 bits and more stand for it), and in a sliding window 9 more for each segment and one. With 1 all keys
	// share one state.
	//
	// A key whose state is that of one never seen makes room for another. A newcomer that finds no room shares one state with all
	// others of its kind, until there is some.
	Keys int
	// Name is what a Store knows the limit by. It means nothing in memory.
	Name string
	// Store keeps the states elsewhere; nil: in this process.
	Store Store
}

// Limiter is one limit for many keys. All methods are safe for concurrent use.
type Limiter struct {
	// slow counts what a call has to look at besides the state: a store, a source, a queue, calls that wait in line.
	slow atomic.Int64

	config  Config
	limit   int64
	leaky   bool
	order   uint64 // of locks, see batch
	seed    maphash.Seed
	second  maphash.Seed
	shift   uint
	shards  []shard      // none with Keys = 1
	shared  shard        // of keys that there is no room for; has one entry and no index
	alone   Bucket       // a handle of it
	live    atomic.Int64 // keys in the shards
	crowd   atomic.Uint64
	lines   lines
	feed    *feed      // nil without a TokenSource
	setting sync.Mutex // one SetRate at a time; taken before the locks of the shards
}

var limiters atomic.Uint64

// New makes a Limiter. The error lists everything that is wrong with the Config.
func New(config Config) (*Limiter, error) {
	if config.Keys == 0 {
		config.Keys = DefaultKeys
	}
	var wrong []error
	if config.Keys < 1 || config.Keys > MaxKeys {
		wrong = append(wrong, fmt.Errorf("rate: Keys is %d, must be 1 to %d", config.Keys, MaxKeys))
	}
	r, err := compile(config.Algorithm)
	if err != nil {
		wrong = append(wrong, err)
	}
	bucket, _ := config.Algorithm.(TokenBucket)
	if bucket.Source != nil && (config.Keys != 1 || config.Store != nil) {
		wrong = append(wrong, errors.New("rate: Source is set, so Keys must be 1 and Store nil"))
	}
	if config.Store != nil && !reflect.TypeOf(config.Store).Comparable() {
		wrong = append(wrong, fmt.Errorf("rate: Store is a %T, which cannot be compared; use a pointer", config.Store))
	}
	if len(wrong) != 0 {
		return nil, errors.Join(wrong...)
	}
	l := &Limiter{config: config, limit: r.limit, leaky: r.kind == leaky, order: limiters.Add(1), seed: maphash.MakeSeed(), second: maphash.MakeSeed()}
	l.build(r)
	if bucket.Source != nil {
		l.feed = &feed{source: bucket.Source, limiter: l}
		l.slow.Add(1)
	}
	if config.Store != nil || r.kind == leaky {
		l.slow.Add(1)
	}
	return l, nil
}

// build makes up to 256 shards, so that goroutines rarely meet in one.
func (l *Limiter) build(r rule) {
	l.shared.rule, l.shared.most = r, 1
	e, segs := l.shared.entry(l.shared.make())
	e.gen = 1
	l.alone = Bucket{l: l, s: &l.shared, e: e, segs: segs, gen: e.gen}
	if l.config.Keys == 1 || l.config.Store != nil {
		return
	}
	width := min(8, bits.Len(uint(l.config.Keys/1024)))
	l.shift = uint(64 - width)
	l.shards = make([]shard, 1<<width)
	for i := range l.shards {
		s := &l.shards[i]
		s.rule, s.live, s.most = r, &l.live, int64(l.config.Keys)
	}
}

// Config returns what the limiter was made with, Keys filled in. A Store reads Name and Algorithm from it.
func (l *Limiter) Config() Config { return l.config }

// Stats are counts of a Limiter.
type Stats struct {
	Keys    int    // that have a state of their own now
	Crowded uint64 // decisions, since the start, about keys that there was no room for
}

// Stats returns the counts as they are.
func (l *Limiter) Stats() Stats {
	return Stats{Keys: int(l.live.Load()), Crowded: l.crowd.Load()}
}

// SetRate changes the rate of a TokenBucket or a LeakyBucket. What each key has left stays as it is. Key after key changes
// while it runs, some 10 ns each; those that a leaky bucket has given a time keep it. N may be 0 for a token bucket: nothing
// accrues from then on. An error leaves everything as it was.
func (l *Limiter) SetRate(rate Rate) error {
	if l.config.Store != nil {
		return errors.New("rate: SetRate is for limits in memory; a Store has its own means")
	}
	l.setting.Lock()
	defer l.setting.Unlock()
	l.shared.mu.Lock()
	next := l.shared.rule
	l.shared.mu.Unlock()
	field, given, least := "Burst", next.limit, int64(0)
	switch next.kind {
	case tokens:
	case leaky:
		field, given, least = "Queue", next.limit-1, 1
	default:
		return errors.New("rate: SetRate is for TokenBucket and LeakyBucket; a window has none")
	}
	if wrong := rate.problems(least); wrong != nil {
		return errors.Join(wrong...)
	}
	if wrong := next.setRate(rate, field, given, true); wrong != nil {
		return errors.Join(wrong...)
	}
	l.shared.change(next)
	for i := range l.shards {
		l.shards[i].change(next)
	}
	l.lines.kickAll()
	return nil
}

func (s *shard) change(next rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock.Now()
	next.version = s.rule.version + 1
	for i := range s.made {
		if e, _ := s.entry(i); e.gen != 0 {
			s.rule.rescale(&e.cell, now, &next)
		}
	}
	s.rule = next
	s.open()
}
