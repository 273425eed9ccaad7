package httpguard

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/spillway-go/spillway/bulkhead"
	"github.com/spillway-go/spillway/guardtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quiet is where servers write of panics.
var quiet = log.New(io.Discard, "", 0)

// silent is the logger of runtimes without guardtest.
var silent = zerolog.Nop()

// newMiddleware returns a Middleware over a runtime of the test's own.
func newMiddleware(t *testing.T, cfg Config) (*Middleware, *guardtest.Runtime) {
	t.Helper()
	rt := guardtest.New(t)
	cfg.Runtime = rt.Runtime
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m, rt
}

// get serves one request without a server.
func get(h http.Handler, target string) *httptest.ResponseRecorder {
	return serve(h, httptest.NewRequest(http.MethodGet, target, nil))
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// only returns the entry of the single call in flight that has no route.
func only(t *testing.T, rt *guardtest.Runtime) bulkhead.Entry {
	t.Helper()
	entries := rt.For("http:*").Entries()
	if len(entries) != 1 {
		t.Errorf("%d calls in flight, want 1", len(entries))
		return bulkhead.Entry{}
	}
	return entries[0]
}

// server starts a server over TCP, with HTTP/2 if asked, and a client of its own for it.
func server(t *testing.T, h http.Handler, http2 bool) (*httptest.Server, *http.Client) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = quiet
	s.EnableHTTP2 = http2
	if http2 {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	t.Cleanup(s.Client().CloseIdleConnections)
	return s, s.Client()
}

// answer is what a client got.
type answer struct {
	status int
	header http.Header
	body   string
}

// fetch reads a whole answer.
func fetch(t *testing.T, c *http.Client, method, url string, body io.Reader) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// flush is what a handler does that knows its writer.
func flush(w http.ResponseWriter) {
	f, ok := w.(http.Flusher)
	if !ok {
		panic("the writer has no Flush")
	}
	f.Flush()
}
