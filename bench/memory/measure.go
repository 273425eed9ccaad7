package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// live is the number of bytes of reachable heap objects. Two collections: the first may only queue what finalizers and
// cleanups let go.
func live() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// perKey returns the mean memory of a key after one call, with inFlight calls in flight, and after these have left. The
// goroutines of the calls are started before the first figure and end after the last, so that they are in none of them.
func perKey(keys int) (idle, active, after float64, err error) {
	rt, err := guard.NewRuntime(nil)
	if err != nil {
		return 0, 0, 0, err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	if err := rt.Registry().SetDefault(registry.Spec{Limit: inFlight}); err != nil {
		return 0, 0, 0, err
	}

	if err := rt.Registry().Declare("server", registry.Spec{Limit: keys * inFlight}); err != nil {
		return 0, 0, 0, err
	}
	server := rt.For("server")
	names := make([]registry.Key, keys)
	for i := range names {
		names[i] = key(i)
	}
	guards := make([]*guard.Guard, keys)
	failed := make([]error, keys*inFlight)
	var (
		enter, leave, end             = make(chan struct{}), make(chan struct{}), make(chan struct{})
		ready, inside, outside, ended sync.WaitGroup
	)
	ready.Add(keys * inFlight)
	inside.Add(keys * inFlight)
	outside.Add(keys * inFlight)
	for i := range failed {
		ended.Go(func() {
			// It wears its label from here on, as in a server whose handlers are guarded.
			outer, err := server.Enter(context.Background())
			failed[i] = err
			defer outer.Exit()
			ready.Done()
			<-enter
			pass, err := guards[i/inFlight].Enter(context.Background())
			failed[i] = errors.Join(failed[i], err)
			inside.Done()
			<-leave
			pass.Record(nil)
			pass.Exit()
			outside.Done()
			<-end
		})
	}

	ready.Wait()
	empty := live()
	for i := range guards {
		guards[i] = rt.For(names[i])
		err = errors.Join(err, guards[i].Do(func() error { return nil }))
	}
	idle = (live() - empty) / float64(keys)
	close(enter)
	inside.Wait()
	active = (live() - empty) / float64(keys)
	close(leave)
	outside.Wait()
	after = (live() - empty) / float64(keys)
	close(end)
	ended.Wait()
	runtime.KeepAlive(guards)
	return idle, active, after, errors.Join(err, errors.Join(failed...))
}

// flood is what a million distinct keys that nobody declared did to a Runtime.
type flood struct {
	Keys     int           `json:"keys"`
	Kept     int           `json:"kept"`           // keys that the Runtime knows at the end
	After    float64       `json:"after_bytes"`    // memory at the end, above that of an empty Runtime
	Greatest float64       `json:"greatest_bytes"` // the most of ten looks while they came
	Took     time.Duration `json:"took_ns"`
}

func undeclared(keys int) (f flood, err error) {
	rt, err := guard.NewRuntime(nil)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()

	f.Keys = keys
	empty := live()
	for part := range 10 {
		start := time.Now()
		for i := part * keys / 10; i < (part+1)*keys/10; i++ {
			if err := rt.Do(key(i), func() error { return nil }); err != nil {
				return f, fmt.Errorf("call of key %d: %w", i, err)
			}
		}
		f.Took += time.Since(start)
		f.Greatest = max(f.Greatest, live()-empty)
	}
	f.After = live() - empty
	f.Kept = len(rt.Snapshot().Keys)
	return f, nil
}

// key returns the i-th of any number of distinct keys, as long as keys are in earnest.
func key(i int) registry.Key {
	return registry.Key("github.com/acme/orders.Store.Get" + strconv.Itoa(i))
}
