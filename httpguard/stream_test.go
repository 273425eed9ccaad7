package httpguard

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"runtime"
	"testing"
	"time"
)

func TestResponseController(t *testing.T) {
	both(t, func(t *testing.T, http2 bool) {
		t.Helper()
		m, rt := newMiddleware(t, Config{})
		s, c := server(t, m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctl := http.NewResponseController(w)
			for i, f := range []func() error{
				ctl.EnableFullDuplex,
				func() error { return ctl.SetReadDeadline(time.Now().Add(time.Hour)) },
				func() error { return ctl.SetWriteDeadline(time.Now().Add(time.Hour)) },
				ctl.Flush,
			} {
				if err := f(); err != nil {
					t.Errorf("function %d: %v", i, err)
				}
			}
			// Full duplex: what was flushed arrives while the body is still being sent.
			b, err := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %v", b, err)
		})), http2)
		body, send := io.Pipe()
		req, err := http.NewRequestWithContext(t.Context(), "POST", s.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req) // returns with the flushed header
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if !only(t, rt).Pinned {
			t.Error("the flushed call is no stream")
		}
		io.WriteString(send, "late")
		send.Close()
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != "late <nil>" {
			t.Errorf("answer %q, %v", got, err)
		}
		rt.AssertIdleWithin(eventually)
	})
}

func TestReadDeadlineWorks(t *testing.T) {
	m, rt := newMiddleware(t, Config{})
	s, _ := server(t, m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
			t.Error(err)
		}
		_, err := io.ReadAll(r.Body)
		if ne, ok := err.(net.Error); !ok || !ne.Timeout() { //nolint:errorlint // as net/http returns it
			t.Errorf("reading ended with %v, want a timeout", err)
		}
		w.WriteHeader(http.StatusRequestTimeout)
	})), false)
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestTimeout {
		t.Errorf("status %d", resp.StatusCode)
	}
	rt.AssertIdleWithin(eventually)
}

func TestHijack(t *testing.T) {
	m, rt := newMiddleware(t, Config{})
	returned, end := make(chan struct{}), make(chan struct{})
	defer close(end)
	s, _ := server(t, m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		if !only(t, rt).Pinned {
			t.Error("the hijacked call is no stream")
		}
		go func() {
			defer conn.Close()
			<-returned
			line, _ := rw.ReadString('\n')
			fmt.Fprintf(conn, "echo %s", line)
			<-end
		}()
	})), false)
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	for rt.For("http:*").Snapshot().Admitted == 0 {
		runtime.Gosched()
	}
	rt.AssertIdleWithin(eventually) // the handler has returned, the connection lives
	close(returned)
	fmt.Fprint(conn, "hello\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); line != "echo hello\n" {
		t.Errorf("read %q, %v", line, err)
	}
	if k := rt.For("http:*").Snapshot(); k.Failed+k.Unrecorded != 0 {
		t.Errorf("failed %d, unrecorded %d", k.Failed, k.Unrecorded)
	}
}

// A protocol upgrade through httputil.ReverseProxy answers with 101 and copies until either side closes.
func TestUpgradeThroughAProxy(t *testing.T) {
	backend, _ := server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
		line, _ := rw.ReadString('\n')
		fmt.Fprintf(conn, "echo %s", line)
	}), false)
	target, err := url.Parse(backend.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, ErrorLog: quiet}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	proxy.Transport = transport
	m, rt := newMiddleware(t, Config{})
	s, _ := server(t, m.Handler(proxy), false)
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 101 {
		t.Errorf("status %d", resp.StatusCode)
	}
	if !only(t, rt).Pinned {
		t.Error("the upgraded call is no stream")
	}
	fmt.Fprint(conn, "hello\n")
	if line, err := r.ReadString('\n'); line != "echo hello\n" {
		t.Errorf("read %q, %v", line, err)
	}
	conn.Close()
	rt.AssertIdleWithin(eventually)
}

// The proxy flushes from a timer, on another goroutine.
func TestEventsThroughAProxy(t *testing.T) {
	both(t, func(t *testing.T, http2 bool) {
		t.Helper()
		next := make(chan string)
		backend, _ := server(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for s := range next {
				fmt.Fprintf(w, "data: %s\n\n", s)
				flush(w)
			}
		}), false)
		target, err := url.Parse(backend.URL)
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		m, rt := newMiddleware(t, Config{})
		s, c := server(t, m.Handler(&httputil.ReverseProxy{Transport: transport,
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}), http2)
		go func() { next <- "one" }() // the client gets the header with it
		resp, err := c.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		r := bufio.NewReader(resp.Body)
		for _, want := range []string{"one", "two", "three"} {
			if want != "one" {
				next <- want
			}
			line, err := r.ReadString('\n')
			r.ReadString('\n')
			if line != "data: "+want+"\n" {
				t.Errorf("read %q, %v", line, err)
			}
			if !only(t, rt).Pinned {
				t.Error("the events are no stream")
			}
		}
		close(next)
		rt.AssertIdleWithin(eventually)
	})
}
