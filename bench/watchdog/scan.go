package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// scan is what a runtime costs that has nothing to do but watch: housekeeper, sampler and watchdog.
type scan struct {
	Keys   int     `json:"keys"`
	Active int     `json:"active"`
	Share  float64 `json:"share"` // of one core, by the process's CPU time; below 0: not known here
}

// measureScan lets a runtime stand for a while, with calls in flight in some of its keys.
func measureScan(n, active int, during time.Duration) (s scan, err error) {
	s.Keys, s.Active = n, active
	rt, err := guard.NewRuntime(nil, guard.WithLogger(zerolog.Nop()), guard.WithMaxKeys(2*n))
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	var passes []guard.Pass
	defer func() {
		for _, p := range passes {
			p.Exit()
		}
	}()
	for i := range n {
		g := rt.For(registry.Key(fmt.Sprintf("key%d", i)))
		if i%(n/active) == 0 {
			p, err := g.Enter(context.Background())
			if err != nil {
				return s, err
			}
			passes = append(passes, p)
		}
	}
	before, err := cpuTime()
	if err != nil {
		s.Share = -1
		return s, nil
	}
	<-time.After(during)
	after, err := cpuTime()
	s.Share = float64(after-before) / float64(during)
	return s, err
}
