package bulkhead

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

const modulus = int64(1) << startBits << unitShift // 52 days in nanoseconds

func TestAge(t *testing.T) {
	for _, tt := range []struct {
		name       string
		start, now int64
		want       time.Duration
	}{
		{"no time", 1 << 40, 1 << 40, 0},
		{"within a unit", 1 << 40, 1<<40 + 255, 0},
		{"one unit", 1 << 40, 1<<40 + 256, 256},
		{"a second", 1 << 40, 1<<40 + int64(time.Second), time.Second &^ 255},
		{"across the modulus", modulus - 512, modulus + 512, 1024},
		{"many moduli up", 9*modulus - 512, 9*modulus + 512, 1024},
		{"45 days", 0, modulus/8*7 - 2048, time.Duration(modulus/8*7 - 2048)},
		{"another core's clock is behind", 1 << 40, 1<<40 - 300, -512},
		{"behind, across the modulus", modulus, modulus - 256, -256},
		{"behind by six days", modulus, modulus - modulus/8 + 1<<20, time.Duration(-modulus/8 + 1<<20)},
	} {
		if got := age(entryState(0, tt.start), tt.now); got != tt.want {
			t.Errorf("%s: age from %d to %d is %v, want %v", tt.name, tt.start, tt.now, got, tt.want)
		}
	}
}

func TestAgeLooksAtTheStartOnly(t *testing.T) {
	st := entryState(0, 1<<40)
	for _, more := range []uint64{kindBusy, kindDetached, kindClaimed, special, scoped, seqMask << startBits} {
		if got := age(st|more, 1<<40+512); got != 512 {
			t.Errorf("age with %#x is %v, want 512ns", more, got)
		}
	}
}

func TestOlder(t *testing.T) {
	word := func(seq uint64) uint64 { return seq << liveBits }
	for _, tt := range []struct {
		name string
		a, b uint64 // a is the older
	}{
		{"by start", entryState(word(9), 1<<40), entryState(word(3), 1<<40+256)},
		{"by number within a unit", entryState(word(3), 1<<40), entryState(word(4), 1<<40+255)},
		{"by number across its modulus", entryState(word(1<<16-1), 1<<40), entryState(word(1<<16), 1<<40)},
		{"across the modulus of time", entryState(word(9), modulus-256), entryState(word(3), modulus)},
		{"25 days apart", entryState(0, 0), entryState(0, 25*24*int64(time.Hour))},
		{"kinds do not matter", entryState(word(3), 1<<40) | kindDetached | special, entryState(word(4), 1<<40) | kindBusy},
	} {
		if !older(tt.a, tt.b) || older(tt.b, tt.a) {
			t.Errorf("%s: older(%#x, %#x) = %v, the other way round %v", tt.name, tt.a, tt.b, older(tt.a, tt.b), older(tt.b, tt.a))
		}
	}
}

// TestStatePacking: no part of a state runs over into another, whatever the word and the time.
func TestStatePacking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.Uint64().Draw(t, "word")
		now := rapid.Int64Range(0, 1<<62).Draw(t, "now")
		st := entryState(word, now)
		if st&(kindMask|special|scoped) != 0 {
			t.Fatalf("state %#x has bits of kind, special or scoped", st)
		}
		if got, want := st>>startBits, word>>liveBits&seqMask; got != want {
			t.Fatalf("number %#x, want %#x", got, want)
		}
		if got := age(st, now); got != 0 {
			t.Fatalf("age at the start is %v", got)
		}
		d := rapid.Int64Range(0, modulus/8*7-4096).Draw(t, "age")
		if got := age(st, now+d); got < time.Duration(d)-256 || got > time.Duration(d)+256 {
			t.Fatalf("age after %v is %v", time.Duration(d), got)
		}
	})
}

// TestHashSpread: whatever the rhythm in which a caller comes, a sample by the low bits of the hash draws its share. The bits
// of the number itself would draw all or none of a rhythm of two.
func TestHashSpread(t *testing.T) {
	const calls = 1 << 14
	for stride := uint64(1); stride <= 130; stride++ {
		for mask := uint32(1); mask < 64; mask = mask<<1 | 1 {
			drawn := 0
			for i := range uint64(calls) {
				if hash(entryState(i*stride<<liveBits, 0)|scoped)&mask == 0 {
					drawn++
				}
			}
			want := calls / int(mask+1)
			if drawn < want/2 || drawn > want*2 {
				t.Errorf("every %d. call sampled by 1 in %d: %d of %d drawn, want about %d", stride, mask+1, drawn, calls, want)
			}
		}
	}
}
