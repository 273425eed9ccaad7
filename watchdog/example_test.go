package watchdog_test

import (
	"fmt"
	"os"
	"runtime/trace"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/spillway-go/spillway/watchdog"
)

// A late call is found, told with its stack, and told again when it has ended. (The queue of calls is the tests'; package guard has its own.)
func Example() {
	calls := watchdog.NewLedger(50 * time.Millisecond)
	told, done := make(chan watchdog.Report), make(chan struct{})
	w, err := watchdog.New(watchdog.Config{
		Source: calls,
		Period: 10 * time.Millisecond,
		Log:    func(r watchdog.Report) { told <- r },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	w.Start()

	leave := make(chan struct{})
	go func() {
		defer close(done)
		_ = calls.Do("shop.Store.Get", func() error { return stuck(leave) })
	}()
	r := <-told
	fmt.Println(r.Kind, r.Key, r.Count, len(r.Stack) > 0)
	close(leave)
	<-done
	for r = range told {
		if r.Kind == watchdog.Ended {
			break
		}
	}
	fmt.Println(r.Kind, r.Key, r.Count)
	w.Close()
	// Output:
	// slow shop.Store.Get 1 true
	// slow_ended shop.Store.Get 1
}

// The application's flight recorder writes the last seconds of its execution trace, once, when a call is slow.
func ExampleConfig_flightRecorder() {
	recorder := trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: 5 * time.Second})
	if err := recorder.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer recorder.Stop()

	var once sync.Once
	onSlow := func(r watchdog.Report) {
		if r.Kind != watchdog.Slow {
			return
		}
		once.Do(func() {
			file, err := os.CreateTemp("", "slow-*.trace")
			if err != nil {
				return
			}
			defer file.Close()
			_, _ = recorder.WriteTo(file)
		})
	}

	w, err := watchdog.New(watchdog.Config{
		Source: watchdog.NewLedger(time.Second),
		Log:    watchdog.Zerolog(zerolog.New(os.Stderr)),
		OnSlow: onSlow,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	w.Start()
	w.Close()
	// Output:
}
