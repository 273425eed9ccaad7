package contender

import (
	"errors"
	"time"
)

// What the language offers by itself. The pair is what all others are measured by.
var baseline = []Contender{
	{Name: Channel, Does: "send in a select with default, receive; the least a bound can be written with", Pair: true, Setup: channelPair},
	{Name: ChannelAgain, Does: "a second channel, to show what a ratio of 1 looks like here", Pair: true, Setup: channelPair},
	{
		Name: "buffered channel, call",
		Does: "a function that takes the place, defers giving it back and calls; what a careful person writes by hand",
		Setup: func(func(func())) Loop {
			return callLoop(make(chan struct{}, limit))
		},
	},
	{
		Name: "clock", Does: "time.Since once: the floor of anything that knows the age of a call",
		Pair: true,
		Setup: func(func(func())) Loop {
			base := time.Now()
			return func(n int, _ func() error) (admitted int) {
				for range n {
					if time.Since(base) >= 0 {
						admitted++
					}
				}
				return admitted
			}
		},
	},
	{
		Name: "buffered channel, full", Does: "the same function, every place taken", Refuses: true,
		Setup: func(func(func())) Loop {
			places := make(chan struct{}, full)
			for range full {
				places <- struct{}{}
			}
			return callLoop(places)
		},
	},
}

func channelPair(func(func())) Loop {
	places := make(chan struct{}, limit)
	return func(n int, _ func() error) (admitted int) {
		for range n {
			select {
			case places <- struct{}{}:
				<-places
				admitted++
			default:
			}
		}
		return admitted
	}
}

var errFull = errors.New("bench: no place is free")

func callLoop(places chan struct{}) Loop {
	return func(n int, body func() error) (admitted int) {
		for range n {
			if callThrough(places, body) == nil {
				admitted++
			}
		}
		return admitted
	}
}

// callThrough stays a call of its own, like the functions of all libraries beside it.
//
//go:noinline
func callThrough(places chan struct{}, body func() error) error {
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
		return body()
	default:
		return errFull
	}
}
