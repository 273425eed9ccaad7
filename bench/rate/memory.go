package main

import (
	"runtime"
	"strconv"
	"time"

	"github.com/spillway-go/spillway/rate"
)

// What a key may take, in bytes, and a counted segment of a sliding window: 8, and what the allocator rounds up.
const (
	maxKey     = 64.0
	maxSegment = 9.0
)

func name(i int) string { return "198.51.100." + strconv.Itoa(i) }

// live is the number of bytes of reachable heap objects.
func live() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// space is what keys take.
type space struct {
	Key     float64 `json:"key_bytes"`     // of a TokenBucket
	Sliding float64 `json:"sliding_bytes"` // with 10 segments
	Flood   struct {
		Keys     int           `json:"keys"`  // that came
		Bound    int           `json:"bound"` // Config.Keys
		Kept     int           `json:"kept"`
		Greatest float64       `json:"greatest_bytes"`
		Took     time.Duration `json:"took_ns"`
		Fresh    int           `json:"fresh_starts"` // of the first of them, which used up its limit
	} `json:"flood"`
}

func perKey(a rate.Algorithm) (float64, error) {
	before := live()
	l, err := ours(a, manyKeys)
	if err != nil {
		return 0, err
	}
	for i := range manyKeys {
		l.Allow(name(i))
	}
	per := (live() - before) / float64(l.Stats().Keys)
	runtime.KeepAlive(l)
	return per, nil
}

func measureSpace(flood int) (s space, err error) {
	hour := rate.TokenBucket{Rate: rate.PerHour(100), Burst: 100}
	if s.Key, err = perKey(hour); err != nil {
		return s, err
	}
	if s.Sliding, err = perKey(rate.SlidingWindow{Limit: 100, Window: time.Hour}); err != nil {
		return s, err
	}
	s.Flood.Keys, s.Flood.Bound = flood, manyKeys
	before := live()
	l, err := ours(rate.TokenBucket{Rate: rate.PerHour(1), Burst: 1}, manyKeys)
	if err != nil {
		return s, err
	}
	l.Allow("attacker")
	for part := range 10 {
		start := time.Now()
		for i := part * flood / 10; i < (part+1)*flood/10; i++ {
			l.Allow(name(i))
		}
		s.Flood.Took += time.Since(start)
		if l.Allow("attacker") {
			s.Flood.Fresh++
		}
		s.Flood.Greatest = max(s.Flood.Greatest, live()-before)
	}
	s.Flood.Kept = l.Stats().Keys
	return s, nil
}
