package main

import (
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// mood is how the dependency behaves.
type mood int32

const (
	works mood = iota
	fails      // answers 503 at once
	hangs      // answers when the caller has hung up
)

func (m mood) String() string { return [...]string{"works", "fails", "hangs"}[m] }

// script is the play, in seconds.
var script = []struct {
	mood    mood
	seconds int
}{{works, 4}, {fails, 5}, {hangs, 5}, {works, 6}}

// dependency is a real HTTP server on loopback.
type dependency struct {
	server http.Server
	url    string
	mood   atomic.Int32
}

func startDependency() (*dependency, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &dependency{url: "http://" + l.Addr().String()}
	d.server.Handler, d.server.ReadHeaderTimeout = d, 5*time.Second
	go func() { _ = d.server.Serve(l) }() // until stop
	return d, nil
}

func (d *dependency) stop() { _ = d.server.Close() } // whatever it says, the play is over

func (d *dependency) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch mood(d.mood.Load()) {
	case fails:
		w.WriteHeader(http.StatusServiceUnavailable)
	case hangs:
		<-r.Context().Done()
	case works:
	}
}
