package pool_test

import (
	"context"
	"testing"

	"github.com/spillway-go/spillway/bulkhead/pool"
	"github.com/spillway-go/spillway/registry"
)

func nothing(context.Context) error { return nil }

// BenchmarkGo is a task from beginning to end, seen by one who waits for it.
func BenchmarkGo(b *testing.B) {
	p, g := newPool(b, pool.Config{}), newRuntime(b).For("a")
	b.ReportAllocs()
	for b.Loop() {
		task, err := p.Go(b.Context(), g, nothing)
		if err != nil {
			b.Fatal(err)
		}
		<-task.Done()
	}
}

// BenchmarkGoRefused is a task of a key that is full.
func BenchmarkGoRefused(b *testing.B) {
	p, g := newPool(b, pool.Config{}), declared(b, newRuntime(b), "a", registry.Spec{Limit: 1, Expand: 1})
	pass, err := g.Enter(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer pass.Exit()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Go(b.Context(), g, nothing); err == nil {
			b.Fatal("accepted")
		}
	}
}

// BenchmarkGoroutine is what Go stands beside: a place, a goroutine, and the end of it seen.
func BenchmarkGoroutine(b *testing.B) {
	g := newRuntime(b).For("a")
	b.ReportAllocs()
	for b.Loop() {
		pass, err := g.Enter(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer pass.Exit()
			pass.Record(nothing(pass.Context()))
		}()
		<-done
	}
}

// BenchmarkDoContext is the same call on the caller's goroutine.
func BenchmarkDoContext(b *testing.B) {
	g := newRuntime(b).For("a")
	b.ReportAllocs()
	for b.Loop() {
		if err := g.DoContext(b.Context(), nothing); err != nil {
			b.Fatal(err)
		}
	}
}
