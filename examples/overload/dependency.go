package main

import (
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// dependency is the process everything depends on: a database, another team's
// service. It has no limit of its own and burns no CPU; its answers take the
// time they take.
type dependency struct {
	behaviour         atomic.Pointer[Behaviour]
	quickNap, slowNap nap
}

func newDependency() *dependency {
	d := new(dependency)
	d.behaviour.Store(&Behaviour{Delay: slowCall})
	return d
}

func (d *dependency) obey(order Order) Answer {
	if order.Behaviour != nil {
		d.behaviour.Store(order.Behaviour)
	}
	if order.Serve == nil {
		return Answer{}
	}
	return listen(d.handler())
}

func (d *dependency) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /quick", d.quick)
	mux.HandleFunc("GET /slow", d.slow)
	return mux
}

func (d *dependency) quick(w http.ResponseWriter, _ *http.Request) {
	d.quickNap.take(quickCall)
	fmt.Fprintln(w, "quick")
}

func (d *dependency) slow(w http.ResponseWriter, r *http.Request) {
	b := d.behaviour.Load()
	if b.Hang {
		<-r.Context().Done() // until the caller hangs up
		return
	}
	d.slowNap.take(b.Delay)
	fmt.Fprintln(w, "slow")
}

// nap sleeps for as long as it is told, on average. A plain time.Sleep is up to
// a millisecond late, which is a tenth of a slow call; so it keeps a moving
// mean of how late it was and asks for that much less.
type nap struct {
	late atomic.Int64 // nanoseconds
}

func (n *nap) take(d time.Duration) {
	const weight, most = 32, int64(2 * time.Millisecond)
	start, late := time.Now(), n.late.Load()
	time.Sleep(d - time.Duration(late))
	off := int64(time.Since(start) - d)
	// Two naps that end together may lose one update: it is a mean.
	n.late.Store(max(0, min(most, late+off/weight)))
}

// listen serves a handler on a free loopback port and says which.
func listen(h http.Handler) Answer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return Answer{Error: err.Error()}
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(l) }() // until the process ends
	return Answer{Address: l.Addr().String()}
}
