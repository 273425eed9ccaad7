package main

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
	"github.com/spillway-go/spillway/watchdog"
)

// told is how soon a runtime tells of one slow call among many goroutines.
type told struct {
	Goroutines int           `json:"goroutines"`
	After      time.Duration `json:"after_ns"` // the call began; the slowest of the tries
	Wrong      int           `json:"wrong"`    // reports without the call's own stack
}

// measureTold lets one call hang for as long as it takes, whose threshold is a second, again and again.
func measureTold(goroutines, tries int) (r told, err error) {
	r.Goroutines = goroutines
	reports := make(chan watchdog.Report, 10)
	rt, err := guard.NewRuntime(nil, guard.WithLogger(zerolog.Nop()), guard.WithWatchdog(watchdog.Config{
		OnSlow: func(r watchdog.Report) { reports <- r },
	}))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	if err := rt.Registry().Declare("slow", registry.Spec{Limit: 10, Slow: time.Second}); err != nil {
		return r, err
	}
	c := start(0, goroutines)
	defer c.end()
	for range tries {
		leave := make(chan struct{})
		var call sync.WaitGroup
		began := time.Now()
		call.Go(func() { _ = rt.Do("slow", func() error { hang(leave); return nil }) })
		report := <-reports
		r.After = max(r.After, time.Since(began))
		if report.Count != 1 || !strings.Contains(strings.Join(report.Stack, "\n"), ".hang ") {
			r.Wrong++
		}
		close(leave)
		call.Wait()
	}
	return r, nil
}

//go:noinline
func hang(leave chan struct{}) { <-leave }
