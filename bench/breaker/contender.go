package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"
	"github.com/zeromicro/go-zero/core/breaker"

	ours "github.com/spillway-go/spillway/breaker"
)

// contender is one way to make a call that does nothing.
type contender struct {
	name string
	make func() (call func(fn func() error) error, err error)
	fn   func() error
	want func(error) bool // what each call must say
}

var errCall = errors.New("bench: the call failed")

func fine() error   { return nil }
func broken() error { return errCall }

func isNil(err error) bool  { return err == nil }
func isOpen(err error) bool { return errors.Is(err, ours.ErrOpen) }
func isCall(err error) bool { return errors.Is(err, errCall) }

// deaf is a breaker that stays closed though all calls fail: its window is too short for so many. What is measured is counting them.
var deaf = ours.Config{Ratio: 1, Min: ours.MaxMin, Window: 100 * time.Millisecond}

// loop makes n calls.
func (c contender) loop() (func(n int) error, error) {
	call, err := c.make()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	return func(n int) error {
		for range n {
			if err := call(c.fn); !c.want(err) {
				return fmt.Errorf("%s: a call said %w", c.name, err)
			}
		}
		return nil
	}, nil
}

func newOurs(cfg ours.Config, trip bool) func() (func(func() error) error, error) {
	return func() (func(func() error) error, error) {
		b, err := ours.New(cfg)
		if err != nil {
			return nil, err
		}
		if trip {
			b.SetMode(ours.ForceOpen)
		}
		return b.Do, nil
	}
}

func newGobreaker(settings gobreaker.Settings) func() (func(func() error) error, error) {
	return func() (func(func() error) error, error) {
		settings.Interval, settings.BucketPeriod = 10*time.Second, time.Second
		cb := gobreaker.NewCircuitBreaker[struct{}](settings)
		return func(fn func() error) error {
			_, err := cb.Execute(func() (struct{}, error) { return struct{}{}, fn() })
			return err
		}, nil
	}
}

// newCounted is a breaker whose caller counts the calls anyway, as package guard does: what is measured is the rest. Tick would be called ten
// times in ten seconds.
func newCounted() (func(func() error) error, error) {
	b, err := ours.New(ours.Config{Total: func() uint64 { return 0 }})
	if err != nil {
		return nil, err
	}
	return func(fn func() error) error {
		ticket, err := b.Enter()
		if err != nil {
			return err
		}
		err = fn()
		if err != nil {
			b.Exit(&ticket, err)
		}
		return err
	}, nil
}

func newThrottle() (func(func() error) error, error) {
	t, err := ours.NewThrottle(ours.ThrottleConfig{})
	if err != nil {
		return nil, err
	}
	return func(fn func() error) error { return t.Do(1, fn) }, nil
}

func newFailsafe() (func(func() error) error, error) {
	cb := circuitbreaker.NewBuilder[any]().WithFailureRateThreshold(0.5, 20, 10*time.Second).Build()
	run := failsafe.With(cb)
	return func(fn func() error) error { return run.Run(fn) }, nil
}

func newGoZero() (func(func() error) error, error) { return breaker.NewBreaker().Do, nil }

func newNothing() (func(func() error) error, error) {
	return func(fn func() error) error { return fn() }, nil
}

var (
	oursDo       = contender{"Breaker.Do", newOurs(ours.Config{}, false), fine, isNil}
	oursCounted  = contender{"Breaker.Enter, counted by the caller", newCounted, fine, isNil}
	oursFailing  = contender{"Breaker.Do, failing", newOurs(deaf, false), broken, isCall}
	oursOpen     = contender{"Breaker.Do, open", newOurs(ours.Config{}, true), fine, isOpen}
	throttleDo   = contender{"Throttle.Do", newThrottle, fine, isNil}
	nothing      = contender{"the call alone", newNothing, fine, isNil}
	gobreakerDo  = contender{"gobreaker, Execute", newGobreaker(gobreaker.Settings{}), fine, isNil}
	gobreakerBad = contender{
		"gobreaker, Execute, failing",
		newGobreaker(gobreaker.Settings{ReadyToTrip: func(gobreaker.Counts) bool { return false }}), broken, isCall,
	}
	failsafeDo = contender{"failsafe-go, circuit breaker", newFailsafe, fine, isNil}
	goZeroDo   = contender{"go-zero, breaker (a throttle)", newGoZero, fine, isNil}
)
