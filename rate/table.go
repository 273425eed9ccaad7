package rate

import (
	"hash/maphash"
	"strings"
	"sync"
)

const (
	chunkLen = 128
	// A newcomer looks at two others, so that the table shrinks to those that matter, and at more when there is no room.
	glance, search = 2, 32
)

// entry is one key. Free ones have gen 0, and the next free one in at.
type entry struct {
	key string
	cell
	gen uint64 // which newcomer to the shard this is, from 1
}

// chunk holds entries, which never move: handles point at them.
type chunk struct {
	entries []entry
	segs    []int64
}

// shard is a part of a limiter's keys. Its mutex guards all of it but order; nothing is called under it that blocks, and
// no function of a user's.
type shard struct {
	mu     sync.Mutex
	rule   rule
	index  []uint64 // hash << 32 | number of the entry + 1; linear probing in the order of hashes; 0 is empty
	chunks []*chunk
	most   int    // entries that there may be
	made   int    // entries that there are, free ones included
	live   int    // entries in use
	free   int    // number of the first free entry + 1
	hand   int    // where the next sweep begins
	gen    uint64 // newcomers so far
	_      [32]byte
}

// slot is where the probing for a hash begins. It multiplies instead of dividing, so that the index may have any length.
func (s *shard) slot(hash uint32) int { return int(uint64(hash) * uint64(len(s.index)) >> 32) }

func (s *shard) entry(i int) (e *entry, segs []int64) {
	c, k := s.chunks[i/chunkLen], i%chunkLen
	if n := int(s.rule.segments); n != 0 {
		segs = c.segs[k*n : (k+1)*n : (k+1)*n]
	}
	return &c.entries[k], segs
}

// find returns the number of a key's entry, or -1.
func (s *shard) find(hash uint32, key string) int {
	if len(s.index) == 0 {
		return -1
	}
	for p := s.slot(hash); s.index[p] != 0; {
		if uint32(s.index[p]>>32) == hash {
			i := int(uint32(s.index[p])) - 1
			if s.chunks[i/chunkLen].entries[i%chunkLen].key == key {
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
func (s *shard) add(seed maphash.Seed, hash uint32, key string, now int64) int {
	if s.live >= s.most {
		if s.sweep(seed, now, search); s.live >= s.most {
			return -1
		}
	} else {
		s.sweep(seed, now, glance)
	}
	i := s.free - 1
	if i < 0 {
		i = s.make()
	}
	e, _ := s.entry(i)
	if s.free != 0 {
		s.free = int(e.at)
	}
	s.gen++
	*e = entry{key: strings.Clone(key), gen: s.gen} // the key may be a small part of something large
	s.live++
	if s.live*5 > len(s.index)*4 {
		s.grow()
	}
	s.put(uint64(hash)<<32 | uint64(i+1))
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
		n := min(chunkLen, s.most-s.made)
		c := &chunk{entries: make([]entry, n)}
		if s.rule.segments != 0 {
			c.segs = make([]int64, n*int(s.rule.segments))
		}
		s.chunks = append(s.chunks, c)
	}
	s.made++
	return s.made - 1
}

// grow makes the index half as long again: it then holds 53 to 80 in a hundred.
func (s *shard) grow() {
	old := s.index
	s.index = make([]uint64, max(8, len(old)+len(old)/2))
	for _, v := range old {
		if v != 0 {
			s.put(v)
		}
	}
}

// sweep looks at up to n entries and drops those whose state is that of a key never seen. It stops early when there was no
// room and now there is.
func (s *shard) sweep(seed maphash.Seed, now int64, n int) {
	full := s.live >= s.most
	for range min(n, s.made) {
		if s.hand >= s.made {
			s.hand = 0
		}
		i := s.hand
		s.hand++
		e, segs := s.entry(i)
		if e.gen == 0 || s.rule.fresh(&e.cell, segs, now) != 0 {
			continue
		}
		s.drop(uint32(maphash.String(seed, e.key)), i, e)
		if full {
			return
		}
	}
}

// drop frees an entry. What stood behind it in the index moves up, so that no probing ends too early.
func (s *shard) drop(hash uint32, i int, e *entry) {
	p := s.slot(hash)
	for int(uint32(s.index[p])) != i+1 {
		if p++; p == len(s.index) {
			p = 0
		}
	}
	hole := p
	for {
		if p++; p == len(s.index) {
			p = 0
		}
		v := s.index[p]
		if v == 0 {
			break
		}
		// v may fill the hole unless its own probing begins behind the hole.
		if home := s.slot(uint32(v >> 32)); (p-home+len(s.index))%len(s.index) >= (p-hole+len(s.index))%len(s.index) {
			s.index[hole] = v
			hole = p
		}
	}
	s.index[hole] = 0
	*e = entry{cell: cell{at: int64(s.free)}}
	s.free = i + 1
	s.live--
}
