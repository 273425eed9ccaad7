package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// serve starts a server on a free loopback port; close ends it and whatever
// it still does.
func serve(h http.Handler) (base string, closeServer func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // ends with Close
	}()
	return "http://" + l.Addr().String(), func() { _ = server.Close(); <-done }, nil
}

// upstream answers after a moment, or never.
func upstream(hangs bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hangs {
			<-r.Context().Done() // until the proxy hangs up
			return
		}
		timer := time.NewTimer(answers)
		defer timer.Stop()
		select {
		case <-timer.C:
			fmt.Fprintln(w, "here you are")
		case <-r.Context().Done():
		}
	})
}

// forward is one upstream's reverse proxy.
func forward(base string, transport http.RoundTripper) (http.Handler, error) {
	target, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Transport:    transport,
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}, nil
}

// limited lets at most n requests in at one time; others wait for their turn
// for as long as their client does.
func limited(n int, next http.Handler) http.Handler {
	turns := make(chan struct{}, n)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}
