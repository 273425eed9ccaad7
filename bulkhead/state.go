package bulkhead

import (
	"time"

	"github.com/spillway-go/spillway/internal/clock"
)

// Two words describe everything that happens on the fast path.
//
// The bulkhead's word: sequence 44 | live 20. One compare-and-swap checks the bound, takes a place, numbers the call and
// counts it as admitted.
//
// A slot's state: kind 2 | special 1 | scoped 1 | sequence 16 | start 44. All but the kind identify one entry, so that
// a permit that is given back late, twice or by a copy matches nothing. A free slot keeps the identity of its last
// entry: whoever claims it compares with that, and so notices when somebody else used it in between.
const (
	liveBits = 20
	liveMask = 1<<liveBits - 1
	seqOne   = 1 << liveBits

	startBits = 44
	startMask = 1<<startBits - 1
	seqMask   = 1<<16 - 1

	kindFree     = uint64(0)
	kindBusy     = uint64(1) << 62
	kindDetached = uint64(2) << 62 // evicted, its call still runs
	kindClaimed  = uint64(3) << 62 // changing hands: nobody else may touch it
	kindMask     = uint64(3) << 62
	identity     = ^kindMask

	special = uint64(1) << 61 // weight above 1 or an owner of its own: see extra
	scoped  = uint64(1) << 60 // given back on the goroutine that took it, before the taking function returns
)

// Start times are kept in units of 256 ns, modulo 2^44 units (52 days).
const unitShift = 8

func stamp(now int64) uint64 { return uint64(now) >> unitShift & startMask }

// entryState composes a slot's state without its kind from the word before admission and the time.
func entryState(word uint64, now int64) uint64 {
	return word>>liveBits&seqMask<<startBits | stamp(now)
}

// age is the time since the entry's start, exact to one unit. The modulus is split one to seven, so that a reading from
// just before the start (another core's clock) is slightly negative instead of 52 days.
func age(state uint64, now int64) time.Duration {
	d := (stamp(now) - state) & startMask
	if d > startMask/8*7 {
		return -time.Duration((startMask + 1 - d) << unitShift)
	}
	return time.Duration(d << unitShift)
}

// older orders entries by start, then by sequence (several can enter within one unit, or while a test's clock stands).
func older(a, b uint64) bool {
	if d := (a - b) & startMask; d != 0 {
		return d > startMask/2
	}
	d := (a>>startBits - b>>startBits) & seqMask
	return d > seqMask/2
}

func now() int64 { return clock.Now() }
