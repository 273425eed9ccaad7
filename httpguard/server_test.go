package httpguard

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// eventually is how long a handler may take to return after its answer has arrived.
const eventually = 10 * time.Second

// both runs a test over HTTP/1.1 and HTTP/2.
func both(t *testing.T, f func(t *testing.T, http2 bool)) {
	t.Helper()
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("http2=%v", http2), func(t *testing.T) { f(t, http2) })
	}
}

func TestServedAndRefused(t *testing.T) {
	both(t, func(t *testing.T, http2 bool) {
		t.Helper()
		m, rt := newMiddleware(t, Config{})
		mux := http.NewServeMux()
		mux.HandleFunc("POST /items/{id}", func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %s %s %v", r.Proto, r.PathValue("id"), b, err)
		})
		s, c := server(t, m.Handler(mux), http2)
		want := map[bool]string{false: "HTTP/1.1 7 body <nil>", true: "HTTP/2.0 7 body <nil>"}[http2]
		if got := fetch(t, c, "POST", s.URL+"/items/7", strings.NewReader("body")); got.status != 200 || got.body != want {
			t.Errorf("served: %d %q, want %q", got.status, got.body, want)
		}
		rt.AssertIdleWithin(eventually)
		defer rt.Fill("http:POST:/items/{id}")()
		got := fetch(t, c, "POST", s.URL+"/items/7", strings.NewReader("body"))
		if got.status != 503 || !strings.Contains(got.body, `"reason":"full"`) || got.header.Get("Retry-After") != "1" {
			t.Errorf("refused: %+v", got)
		}
		if got := fetch(t, c, "HEAD", s.URL+"/items/7", nil); got.status != 405 || got.body != "" {
			t.Errorf("no such route: %+v", got)
		}
	})
}

// Refusing does not cost the connection, nor does serving.
func TestConnectionIsKept(t *testing.T) {
	both(t, func(t *testing.T, http2 bool) {
		t.Helper()
		m, rt := newMiddleware(t, Config{})
		s, c := server(t, m.Handler(http.HandlerFunc(hello)), http2)
		fresh := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
			if !i.Reused {
				fresh++
			}
		}})
		for i := range 20 {
			want := 200
			if i%2 == 1 {
				want = 503
				rt.Refuse("http:*", guard.ReasonFull)
			} else {
				rt.Allow("http:*")
			}
			for _, method := range []string{"GET", "HEAD", "POST"} {
				req, err := http.NewRequestWithContext(ctx, method, s.URL, strings.NewReader("small"))
				if err != nil {
					t.Fatal(err)
				}
				resp, err := c.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != want {
					t.Errorf("%s: status %d, want %d", method, resp.StatusCode, want)
				}
			}
		}
		if fresh != 1 {
			t.Errorf("60 requests took %d connections, want 1", fresh)
		}
	})
}

// A client that asks before it sends need not send.
func TestExpectContinueIsNotAnswered(t *testing.T) {
	m, rt := newMiddleware(t, Config{})
	rt.Refuse("http:*", guard.ReasonFull)
	s, _ := server(t, m.Handler(unserved(t)), false)
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\nExpect: 100-continue\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 503 || !resp.Close {
		t.Errorf("status %d, connection closed %v; want the refusal and no 100", resp.StatusCode, resp.Close)
	}
}

func TestPanicsLeaveNothingInFlight(t *testing.T) {
	both(t, func(t *testing.T, http2 bool) {
		t.Helper()
		m, rt := newMiddleware(t, Config{})
		if err := rt.Registry().Declare("http:GET:/panic", registry.Spec{Limit: 4}); err != nil {
			t.Fatal(err)
		}
		mux := http.NewServeMux()
		mux.HandleFunc("GET /panic", func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.RawQuery {
			case "0":
				panic(http.ErrAbortHandler)
			case "1":
				w.Write(make([]byte, 1<<16))
				panic("with an answer begun")
			default:
				panickingHandler()
			}
		})
		mux.HandleFunc("GET /fine", hello)
		s, c := server(t, m.Handler(mux), http2)
		var logged lockedBuffer
		s.Config.ErrorLog = log.New(&logged, "", 0)
		const requests = 1000
		var refused atomic.Int64
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range requests / 4 {
					resp, err := c.Get(fmt.Sprintf("%s/panic?%d", s.URL, (g+i)%3))
					if err != nil {
						continue // the server closed the connection or reset the stream
					}
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					if resp.StatusCode == 503 {
						refused.Add(1) // an earlier handler had not returned yet
					}
				}
			})
		}
		wg.Wait()
		rt.AssertIdleWithin(eventually)
		k := rt.For("http:GET:/panic").Snapshot()
		// The client repeats requests whose connection was closed before an answer, so there may be more.
		if k.Unrecorded < requests-uint64(refused.Load()) || k.Unrecorded != k.Admitted {
			t.Errorf("%d of %d calls counted as unrecorded, %d refused", k.Unrecorded, k.Admitted, refused.Load())
		}
		if got := fetch(t, c, "GET", s.URL+"/fine", nil); got.status != 200 || got.body != "hello, world\n" {
			t.Errorf("afterwards: %+v", got)
		}
		text := logged.String()
		if !strings.Contains(text, "httpguard.panickingHandler") || strings.Contains(text, "recovered") || strings.Contains(text, "abort Handler") {
			t.Errorf("the server's log lacks the handler's stack, or was told of a second panic:\n%.2000s", text)
		}
	})
}

func panickingHandler() { panic("of the handler's own") }

// lockedBuffer is a bytes.Buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestGoexit(t *testing.T) {
	m, rt := newMiddleware(t, Config{})
	h := m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { runtime.Goexit() }))
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() { get(h, "/") })
	}
	wg.Wait()
	rt.AssertIdle()
	if s := rt.For("http:*").Snapshot(); s.Unrecorded+s.Refused[guard.ReasonFull] != 100 || s.Unrecorded == 0 {
		t.Errorf("unrecorded %d, refused %v, want 100 in all", s.Unrecorded, s.Refused)
	}
}

// A client that goes ends the handler's context, and the place is free.
func TestClientGoes(t *testing.T) {
	both(t, func(t *testing.T, http2 bool) {
		t.Helper()
		m, rt := newMiddleware(t, Config{})
		entered := make(chan struct{})
		s, c := server(t, m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(entered)
			<-r.Context().Done()
		})), http2)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-entered
			cancel()
		}()
		req, err := http.NewRequestWithContext(ctx, "GET", s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := c.Do(req); err == nil {
			resp.Body.Close()
			t.Error("the request was answered")
		}
		rt.AssertIdleWithin(eventually)
		if k := rt.For("http:*").Snapshot(); k.Failed != 1 {
			t.Errorf("failed %d, want 1", k.Failed)
		}
	})
}

// countingConn notes that the server handed it a reader, which is how sendfile begins.
type countingConn struct {
	net.Conn
	n *atomic.Int64
}

func (c countingConn) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.Copy(struct{ io.Writer }{c.Conn}, r)
	c.n.Add(n)
	return n, err
}

type countingListener struct {
	net.Listener
	n *atomic.Int64
}

func (l countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return countingConn{c, l.n}, nil
}

func TestFilesStillGoToTheConnection(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	content := bytes.Repeat([]byte("spillway"), 1<<17)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	sent := map[string]int64{}
	m, rt := newMiddleware(t, Config{})
	serveFile := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) })
	for name, h := range map[string]http.Handler{"bare": serveFile, "guarded": m.Handler(serveFile)} {
		var n atomic.Int64
		s := httptest.NewUnstartedServer(h)
		s.Listener = countingListener{s.Listener, &n}
		s.Start()
		got := fetch(t, s.Client(), "GET", s.URL, nil)
		s.Client().CloseIdleConnections()
		s.Close()
		if got.status != 200 || got.body != string(content) {
			t.Errorf("%s: status %d, %d bytes of %d", name, got.status, len(got.body), len(content))
		}
		sent[name] = n.Load()
	}
	if sent["guarded"] != sent["bare"] || sent["bare"] < int64(len(content))/2 {
		t.Errorf("bytes that went to the connection by ReadFrom: %v, want the same with and without", sent)
	}
	rt.AssertIdleWithin(eventually)
}

// A handler that got a copy of the request, for its timeout, must not cost the server the temporary files of a form, nor
// access logs the pattern.
func TestCopiedRequestHandsBack(t *testing.T) {
	m, rt := newMiddleware(t, Config{})
	if err := rt.Registry().SetDefault(registry.Spec{Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	if os.TempDir() != dir {
		t.Skip("the folder for temporary files cannot be chosen on this platform")
	}
	var inside int
	mux := http.NewServeMux()
	mux.HandleFunc("POST /upload", func(_ http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil {
			t.Error(err)
		}
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Error(err)
		}
		inside = len(files)
	})
	guarded := m.Handler(mux)
	logged := make(chan string, 1)
	s, c := server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		guarded.ServeHTTP(w, r)
		logged <- r.Pattern
	}), false)
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", "big")
	if err != nil {
		t.Fatal(err)
	}
	part.Write(make([]byte, 20<<20)) // above what is kept in memory in any case
	w.Close()
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/upload", &form)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", w.FormDataContentType())
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	s.Close() // waits for the request to be finished
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if inside != 1 || len(files) != 0 {
		t.Errorf("%d temporary files while serving and %d after, want 1 and 0", inside, len(files))
	}
	if p := <-logged; p != "POST /upload" {
		t.Errorf("the access log sees the pattern %q", p)
	}
}
