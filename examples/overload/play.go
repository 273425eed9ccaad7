package main

import (
	"context"
	"fmt"
	"time"
)

// Result is what one side of the play came to.
type Result struct {
	Side     Side
	Samples  []Sample
	Statuses []Status // of the service, by phase
	Grow     *Story   // of the guarded side
	Hang     *Story
}

// play starts a fresh dependency and a fresh service, plays the script on them
// and ends them again.
func play(ctx context.Context, exe string, script Script, side Side, scr *screen) (Result, error) {
	result := Result{Side: side}
	dependency, err := startChild(exe, "dependency")
	if err != nil {
		return result, err
	}
	defer dependency.stop()
	service, err := startChild(exe, "service")
	if err != nil {
		return result, err
	}
	defer service.stop()
	answer, err := dependency.ask(Order{Serve: &Serve{}})
	if err != nil {
		return result, err
	}
	answer, err = service.ask(Order{Serve: &Serve{Side: side, Dependency: answer.Address}})
	if err != nil {
		return result, err
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rec := new(recorder)
	load := newLoad(answer.Address, rec)
	epoch := time.Now().Add(warmUp)
	loadDone := make(chan struct{})
	go func() {
		defer close(loadDone)
		load.run(ctx, epoch, script.plan())
	}()
	directed := make(chan error, 1)
	go func() {
		statuses, err := direct(ctx, epoch, script, dependency, service)
		result.Statuses = statuses
		if err != nil {
			cancel() // the play is over; loadDone follows
		}
		directed <- err
	}()

	scr.begin(side)
	tick := time.NewTicker(scr.period())
	defer tick.Stop()
	for playing := true; playing; {
		select {
		case <-tick.C:
			scr.show(time.Since(epoch), rec)
		case <-loadDone:
			playing = false
		}
	}
	if err := <-directed; err != nil {
		return result, err
	}
	result.Samples = rec.all()
	scr.end(script.length()+deadline, rec)
	if side == Guarded {
		err = tell(&result, dependency, service)
	}
	return result, err
}

// tell lets the service play the acts of the story.
func tell(result *Result, dependency, service *child) error {
	for _, act := range []struct {
		name  string
		hang  bool
		story **Story
	}{{actGrow, false, &result.Grow}, {actHang, true, &result.Hang}} {
		if _, err := dependency.ask(Order{Behaviour: &Behaviour{Delay: slowCall, Hang: act.hang}}); err != nil {
			return err
		}
		answer, err := service.ask(Order{Tell: act.name})
		if err != nil {
			return err
		}
		*act.story = answer.Story
	}
	return nil
}

// direct tells the dependency how to behave when a phase begins, and asks the
// service at its end how it was.
func direct(ctx context.Context, epoch time.Time, script Script, dependency, service *child) ([]Status, error) {
	var statuses []Status
	for i := range script.Phases {
		phase := &script.Phases[i]
		if err := waitUntil(ctx, epoch.Add(phase.Start)); err != nil {
			return nil, err
		}
		if _, err := dependency.ask(Order{Behaviour: &phase.Behaviour}); err != nil {
			return nil, err
		}
		answer, err := service.ask(Order{Mark: true})
		if err != nil {
			return nil, err
		}
		if i > 0 { // the first mark ends the warm-up
			statuses = append(statuses, answer.Status)
		}
	}
	if err := waitUntil(ctx, epoch.Add(script.length())); err != nil {
		return nil, err
	}
	answer, err := service.ask(Order{Mark: true})
	if err != nil {
		return nil, err
	}
	return append(statuses, answer.Status), nil
}

func waitUntil(ctx context.Context, t time.Time) error {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the play was broken off: %w", context.Cause(ctx))
	}
}
