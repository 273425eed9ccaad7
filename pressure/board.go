package pressure

import (
	"math"
	"sync/atomic"
	"time"
)

// Sample is what the sampler saw at one time.
type Sample struct {
	// Number counts the samples of a sampler from 1; 0 means that there is none yet.
	Number uint64
	// Readings are indexed by Signal. Readings[Lag] tells the age of all of them.
	Readings Readings

	alarms uint32 // one bit for each signal that is not below its limit
	limits *[numSignals]threshold
}

// board is where the sampling goroutine leaves a sample, and readers take it without a lock and without an allocation. There are two
// banks: sample n is written into bank n mod 2 while readers copy the other, and a reader only has to copy again if the
// writer began sample n+2 meanwhile. A writer that is stopped half-way holds nobody up.
type board struct {
	begun, written atomic.Uint64
	banks          [2]bank
	texts          [Lag]*texts // the writer's own
}

type bank struct {
	at     atomic.Int64
	alarms atomic.Uint32
	cells  [Lag]cell
}

type cell struct {
	state              atomic.Uint32
	value, used, limit atomic.Uint64
	age                atomic.Int64
	texts              atomic.Pointer[texts]
}

type texts struct{ of, from, why string }

func (b *board) write(at int64, r *Readings, alarms uint32) {
	n := b.written.Load() + 1
	b.begun.Store(n)
	k := &b.banks[n%2]
	k.at.Store(at)
	k.alarms.Store(alarms)
	for i := range k.cells {
		c, from := &k.cells[i], &r[i]
		c.state.Store(uint32(from.State))
		c.value.Store(math.Float64bits(from.Value))
		c.used.Store(math.Float64bits(from.Used))
		c.limit.Store(math.Float64bits(from.Limit))
		c.age.Store(int64(from.Age))
		t := b.texts[i]
		if t == nil || t.of != from.Of || t.from != from.From || t.why != from.Why {
			t = &texts{from.Of, from.From, from.Why}
			b.texts[i] = t
		}
		if c.texts.Load() != t {
			c.texts.Store(t)
		}
	}
	b.written.Store(n)
}

// read returns when the sample was taken.
func (b *board) read(r *Readings, number *uint64, alarms *uint32) (at int64) {
	for {
		n := b.written.Load()
		*number = n
		if n == 0 {
			return 0
		}
		k := &b.banks[n%2]
		at = k.at.Load()
		*alarms = k.alarms.Load()
		for i := range k.cells {
			c := &k.cells[i]
			r[i] = Reading{
				State: State(c.state.Load()),
				Value: math.Float64frombits(c.value.Load()),
				Used:  math.Float64frombits(c.used.Load()),
				Limit: math.Float64frombits(c.limit.Load()),
				Age:   time.Duration(c.age.Load()),
			}
			if t := c.texts.Load(); t != nil {
				r[i].Of, r[i].From, r[i].Why = t.of, t.from, t.why
			}
		}
		if b.begun.Load() < n+2 {
			return at
		}
	}
}
