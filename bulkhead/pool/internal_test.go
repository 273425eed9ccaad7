package pool

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/rs/zerolog"

	"github.com/spillway-go/spillway/guard"
)

// A task that Close finds on the way to its goroutine does not begin.
func TestTaskThatCloseOvertakes(t *testing.T) {
	p, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	task := &Task{done: make(chan struct{}), pool: p, fn: func(context.Context) error { t.Error("ran"); return nil }}
	if err = p.reserve(); err != nil {
		t.Fatal(err)
	}
	if start, err := p.accept(task); !start || err != nil {
		t.Fatal(start, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err = p.Close(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Close did not wait: %v", err)
	}
	late := &Task{pool: p}
	if _, err = p.accept(late); !errors.Is(err, ErrClosed) {
		t.Errorf("accepted after Close: %v", err)
	}
	if err = task.call(); !errors.Is(err, ErrClosed) {
		t.Errorf("called: %v", err)
	}
	p.start(task)
	if err = task.Wait(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("ended with %v", err)
	}
	if err = p.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// Whoever sees that a task is done finds its place free, of the key and of the pool.
func TestWaitersAreToldLast(t *testing.T) {
	rt, err := guard.NewRuntime(nil, guard.WithLogger(zerolog.Nop()), guard.WithPressure(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	p, err := New(Config{Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(context.Background())
	g, gate := rt.For("a"), make(chan struct{})
	task, err := p.Go(t.Context(), g, func(context.Context) error { gate <- struct{}{}; <-gate; return nil })
	if err != nil {
		t.Fatal(err)
	}
	<-gate // begun, so that it needs the lock only to leave
	for first := true; ; first = false {
		p.mu.Lock() // leave has to wait
		if first {
			gate <- struct{}{}
		}
		for range 1000 {
			runtime.Gosched()
		}
		free := g.Snapshot().Bulkhead.InFlight == 0
		select {
		case <-task.Done():
			if p.active != 0 || !free {
				t.Errorf("done with %d active, the place is free: %v", p.active, free)
			}
			p.mu.Unlock()
			return
		default:
		}
		p.mu.Unlock()
		runtime.Gosched()
	}
}
