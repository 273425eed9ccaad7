package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spillway-go/spillway/bench/internal/machine"
	"github.com/spillway-go/spillway/bench/internal/paired"
	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/httpguard"
)

const (
	hello       = "hello, world\n"
	helloRoute  = "GET /hello"
	httpMaxCost = 150.0                 // nanoseconds a handler may pay more
	serverBatch = 30 * time.Millisecond // of the server's CPU time
)

var greeting = []byte(hello)

// helloMux serves one route; with a runtime, guarded by a key of the given prefix.
func helloMux(rt *guard.Runtime, prefix string) (*http.ServeMux, error) {
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(greeting)
	})
	if rt != nil {
		mw, err := httpguard.New(httpguard.Config{Runtime: rt, Prefix: prefix})
		if err != nil {
			return nil, err
		}
		h = mw.Handler(h)
	}
	mux := http.NewServeMux()
	mux.Handle(helloRoute, h)
	return mux, nil
}

// webReport is what -http found.
type webReport struct {
	Machine machine.Machine `json:"machine"`
	Rounds  int             `json:"rounds"`
	Handler struct {
		Nanoseconds   paired.Summary `json:"nanoseconds"` // unguarded, through the mux
		Guarded       paired.Summary `json:"guarded_more"`
		Again         paired.Summary `json:"unguarded_again_more"`
		Allocs        float64        `json:"allocs"`
		GuardedAllocs float64        `json:"guarded_allocs"`
	} `json:"handler"`
	Server struct {
		Microseconds paired.Summary `json:"cpu_microseconds_per_request"` // unguarded
		Guarded      paired.Summary `json:"guarded_ratio"`
		Again        paired.Summary `json:"unguarded_again_ratio"`
	} `json:"server"`
	Targets []verdict `json:"targets"`
}

func runHTTP(ctx context.Context, o options, out, errw io.Writer) error {
	r := &webReport{Machine: machine.Describe(nil), Rounds: o.rounds}
	if err := r.handlers(ctx, o.rounds, progress(errw)); err != nil {
		return err
	}
	if err := r.servers(ctx, max(o.rounds/5, 3), progress(errw)); err != nil {
		return err
	}
	h, s := r.Handler.Guarded, r.Server.Guarded
	r.Targets = []verdict{
		{"guarded handler, ns more", h.Median, h.Low, h.High, httpMaxCost, h.Median <= httpMaxCost},
		// Noise is what nine of ten rounds of A against A stay below.
		{"guarded server, CPU per request / unguarded", s.Median, s.Low, s.High, r.Server.Again.P90, s.Median <= r.Server.Again.P90},
	}
	if o.json {
		if err := printJSON(out, r); err != nil {
			return err
		}
	} else if err := r.markdown(out); err != nil {
		return err
	}
	if o.check {
		return missed(r.Targets)
	}
	return nil
}

// blank is a ResponseWriter that only counts, as a recorder would cost more than what is measured. It has the abilities
// of the writer that a server hands out for HTTP/1, since a wrapper has to offer the same.
type blank struct {
	header http.Header
	wrote  int
	http.Hijacker
	io.ReaderFrom
}

func (b *blank) Header() http.Header         { return b.header }
func (b *blank) WriteHeader(int)             {}
func (b *blank) Flush()                      {}
func (b *blank) Write(p []byte) (int, error) { b.wrote += len(p); return len(p), nil }

// handlerLoop serves n requests with h and makes sure that each was answered in full. Their context can end, as that of a
// server's request can.
func handlerLoop(ctx context.Context, h http.Handler) (func(n int) error, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://example.org/hello", nil)
	if err != nil {
		return nil, err
	}
	w := &blank{header: http.Header{}}
	return func(n int) error {
		w.wrote = 0
		for range n {
			h.ServeHTTP(w, req)
		}
		if want := n * len(hello); w.wrote != want {
			return fmt.Errorf("%d requests were answered with %d bytes, want %d: some were refused", n, w.wrote, want)
		}
		return nil
	}, nil
}

// handlers measures the handler alone: no connection, no server.
func (r *webReport) handlers(ctx context.Context, rounds int, progress func(string, int, int)) (err error) {
	rt, err := guard.NewRuntime(nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	requests, cancel := context.WithCancel(context.Background())
	defer cancel()
	var runs [3][]paired.Run // unguarded, guarded, unguarded again
	var allocs [3]float64
	for i, rt := range []*guard.Runtime{nil, rt, nil} {
		for j := range instances {
			mux, err := helloMux(rt, fmt.Sprintf("http%d:", j))
			if err != nil {
				return err
			}
			loop, err := handlerLoop(requests, mux)
			if err != nil {
				return err
			}
			if allocs[i], _, err = paired.Allocs(allocCalls, loop); err != nil {
				return err
			}
			runs[i] = append(runs[i], paired.Timed(loop))
		}
	}
	r.Handler.Allocs, r.Handler.GuardedAllocs = allocs[0], allocs[1]
	batch, every := serialBatch, 1
	if max(r.Handler.Allocs, r.Handler.GuardedAllocs) >= 0.01 {
		batch, every = garbageBatch, garbageEvery // as in pair
	}
	var sides [3]paired.Side
	for i := range sides {
		sides[i] = paired.Size(batch, runs[i]...)
	}
	guarded := &paired.Pair{Name: "handler, guarded", A: sides[0], B: sides[1], Every: every}
	again := &paired.Pair{Name: "handler, unguarded again", A: sides[0], B: sides[2], Every: every}
	err = paired.Interleave(ctx, rounds, []*paired.Pair{guarded, again}, func(done int) { progress("handler", done, rounds) })
	r.Handler.Nanoseconds = paired.Summarize(guarded.TimesA())
	r.Handler.Guarded = paired.Summarize(guarded.Differences())
	r.Handler.Again = paired.Summarize(again.Differences())
	return err
}

// servers measures the CPU time that a server in a process of its own spends on a request over loopback.
func (r *webReport) servers(ctx context.Context, rounds int, progress func(string, int, int)) (err error) {
	p, err := startServer()
	if err != nil {
		return err
	}
	var clients []*client
	defer func() {
		for _, c := range clients {
			c.close()
		}
		err = errors.Join(err, p.stop())
	}()
	var runs [3][]paired.Run
	for i, addr := range p.addrs {
		c, err := dial(addr, 8)
		if err != nil {
			return err
		}
		clients = append(clients, c)
		runs[i%3] = append(runs[i%3], p.cpuOf(c.requests))
	}
	var sides [3]paired.Side
	for i := range sides {
		sides[i] = paired.Size(serverBatch, runs[i]...)
	}
	guarded := &paired.Pair{Name: "server, guarded", A: sides[0], B: sides[1]}
	again := &paired.Pair{Name: "server, unguarded again", A: sides[0], B: sides[2]}
	err = paired.Interleave(ctx, rounds, []*paired.Pair{guarded, again}, func(done int) { progress("server", done, rounds) })
	us := guarded.TimesA()
	for i := range us {
		us[i] /= 1e3
	}
	r.Server.Microseconds = paired.Summarize(us)
	r.Server.Guarded = paired.Summarize(guarded.Ratios())
	r.Server.Again = paired.Summarize(again.Ratios())
	return err
}

func (r *webReport) markdown(w io.Writer) error {
	b := bufio.NewWriter(w)
	h, s := r.Handler, r.Server
	fmt.Fprintf(b, "%s\n\n", r.Machine)
	fmt.Fprintln(b, "| HTTP | median | 95 % | p10 .. p90 of the rounds |")
	fmt.Fprintln(b, "|---|--:|:-:|:-:|")
	line := func(what, unit string, s paired.Summary) {
		fmt.Fprintf(b, "| %s | %s%s | %s | %s |\n", what, number(s.Median), unit, interval(s.Low, s.High), interval(s.P10, s.P90))
	}
	line(fmt.Sprintf("handler through the mux, unguarded (%s allocs)", count(h.Allocs)), " ns", h.Nanoseconds)
	line(fmt.Sprintf("guarded, more (%s allocs)", count(h.GuardedAllocs)), " ns", h.Guarded)
	line("unguarded again, more", " ns", h.Again)
	line("server over loopback, unguarded, CPU per request", " us", s.Microseconds)
	line("guarded / unguarded", "", s.Guarded)
	line("unguarded again / unguarded", "", s.Again)
	fmt.Fprintln(b)
	targetTable(b, r.Targets)
	return b.Flush()
}
