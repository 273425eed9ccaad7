package rate

import (
	"sync"
	"sync/atomic"
)

const (
	chunkLen = 32
	// search is how many others a newcomer looks at when there is no room.
	search = 32
)

// id stands for a key: 96 bits of two hashes with secret seeds, and up to eight more that chose the shard. That two keys ever meet is less likely than a fault of the memory that they lie
// in; and neither the length of keys nor their number costs the collector anything.
type id struct {
	a uint64
	b uint32 // where the probing of the index begins
}

// entry is one key. Free ones have gen 0, and the next free one in at.
type entry struct {
	cell
	a      uint64 // of the id; written out, 8 bytes less
	b, gen uint32 // gen is which newcomer to the shard this is, from 1
}

// shard is a part of a limiter's keys. Its mutex guards all of it but closed and live; nothing is called under it that blocks, and
// no function of a user's.
type shard struct {
	mu     sync.Mutex
	rule   rule
	index  []uint64  // id.b << 32 | number of the entry + 1; linear probing in the order of hashes; 0 is empty
	chunks [][]entry // entries never move: handles point at them
	segs   [][]int64 // for each chunk, of sliding windows
	made   int       // entries that there are, free ones included
	used   int       // entries in use
	free   int       // number of the first free entry + 1
	hand   int       // where the next sweep begins
	gen    uint32    // newcomers so far, never 0; it wraps after four thousand million

	// closed is a moment before which nobody passes, so that refusals need no lock. Only the shard of a limiter with one
	// state has it. Whoever gives something back opens it again, under the lock.
	closed atomic.Int64

	live *atomic.Int64 // entries in use in all shards
	most int64         // how many there may be
	_    [32]byte
}

// slot is where the probing for a hash begins. It multiplies instead of dividing, so that the index may have any length.
func (s *shard) slot(hash uint32) int { return int(uint64(hash) * uint64(len(s.index)) >> 32) }

func (s *shard) entry(i int) (e *entry, segs []int64) {
	if n := int(s.rule.segments); n != 0 {
		k := i % chunkLen
		segs = s.segs[i/chunkLen][k*n : (k+1)*n : (k+1)*n]
	}
	return &s.chunks[i/chunkLen][i%chunkLen], segs
}

// find returns the number of a key's entry, or -1.
func (s *shard) find(k id) int {
	if len(s.index) == 0 {
		return -1
	}
	for p := s.slot(k.b); s.index[p] != 0; {
		if uint32(s.index[p]>>32) == k.b {
			i := int(uint32(s.index[p])) - 1
			if s.chunks[i/chunkLen][i%chunkLen].a == k.a {
				return i
			}
		}
		if p++; p == len(s.index) {
			p = 0
		}
	}
	return -1
}

// add makes an entry for a key that has none and returns its number, or -1 when there is no room.
func (s *shard) add(k id, now int64) int {
	if s.live.Add(1) > s.most && !s.sweep(now) {
		s.live.Add(-1)
		return -1
	}
	i := s.free - 1
	if i < 0 {
		i = s.make()
	}
	e, _ := s.entry(i)
	if s.free != 0 {
		s.free = int(e.at)
	}
	s.gen = max(1, s.gen+1)
	*e = entry{a: k.a, b: k.b, gen: s.gen}
	s.used++
	if s.used*5 > len(s.index)*4 {
		s.grow()
	}
	s.put(uint64(k.b)<<32 | uint64(i+1))
	return i
}

func (s *shard) put(v uint64) {
	p := s.slot(uint32(v >> 32))
	for s.index[p] != 0 {
		if p++; p == len(s.index) {
			p = 0
		}
	}
	s.index[p] = v
}

// make returns the number of an entry that never was in use.
func (s *shard) make() int {
	if s.made%chunkLen == 0 {
		n := int(min(chunkLen, s.most))
		s.chunks = append(s.chunks, make([]entry, n))
		if s.rule.segments != 0 {
			s.segs = append(s.segs, make([]int64, n*int(s.rule.segments)))
		}
	}
	s.made++
	return s.made - 1
}

// grow makes the index a quarter longer: between 64 and 80 in a hundred are then in use.
func (s *shard) grow() {
	old := s.index
	s.index = make([]uint64, max(8, len(old)+len(old)/4))
	for _, v := range old {
		if v != 0 {
			s.put(v)
		}
	}
}

// sweep drops one entry whose state is that of a key never seen, if there is one among the next few.
func (s *shard) sweep(now int64) bool {
	for range min(search, s.made) {
		if s.hand >= s.made {
			s.hand = 0
		}
		i := s.hand
		s.hand++
		if e, segs := s.entry(i); e.gen != 0 && s.rule.fresh(&e.cell, segs, now) == 0 {
			s.drop(i, e)
			return true
		}
	}
	return false
}

// close notes until when the only entry refuses even one.
func (s *shard) close(e *entry, segs []int64, now int64) {
	at := int64(forever)
	if wait := s.rule.until(&e.cell, segs, now, 1); wait != forever {
		at = now + wait
	}
	s.closed.Store(at)
}

// open is for whoever leaves more room than there was. The caller holds s.mu.
func (s *shard) open() {
	if s.closed.Load() != 0 {
		s.closed.Store(0)
	}
}

// drop frees an entry. What stood behind it in the index moves up, so that no probing ends too early.
func (s *shard) drop(i int, e *entry) {
	n := len(s.index)
	p := s.slot(e.b)
	for int(uint32(s.index[p])) != i+1 {
		if p++; p == n {
			p = 0
		}
	}
	hole := p
	for {
		if p++; p == n {
			p = 0
		}
		v := s.index[p]
		if v == 0 {
			break
		}
		// v may fill the hole unless its own probing begins behind it.
		if home := s.slot(uint32(v >> 32)); (p-home+n)%n >= (p-hole+n)%n {
			s.index[hole] = v
			hole = p
		}
	}
	s.index[hole] = 0
	*e = entry{cell: cell{at: int64(s.free)}}
	s.free = i + 1
	s.used--
	s.live.Add(-1)
}
