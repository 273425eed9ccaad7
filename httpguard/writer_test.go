package httpguard

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// Abilities that a ResponseWriter may have; each notes that it was used.
type (
	flushes   struct{ used *string }
	hijacks   struct{ used *string }
	readsFrom struct{ used *string }
	pushes    struct{ used *string }
)

func (a flushes) Flush() { *a.used += "F" }
func (a hijacks) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	*a.used += "H"
	return nil, nil, nil
}
func (a readsFrom) ReadFrom(src io.Reader) (int64, error) {
	*a.used += "R"
	return io.Copy(io.Discard, src)
}
func (a pushes) Push(string, *http.PushOptions) error { *a.used += "P"; return http.ErrNotSupported }

// writerWith returns a writer with a set of abilities.
func writerWith(set int, used *string) http.ResponseWriter {
	base := http.ResponseWriter(&sink{header: http.Header{}})
	f, h, r, p := flushes{used}, hijacks{used}, readsFrom{used}, pushes{used}
	type w = http.ResponseWriter
	return []http.ResponseWriter{
		0: base,
		1: struct {
			w
			flushes
		}{base, f},
		2: struct {
			w
			hijacks
		}{base, h},
		3: struct {
			w
			flushes
			hijacks
		}{base, f, h},
		4: struct {
			w
			readsFrom
		}{base, r},
		5: struct {
			w
			flushes
			readsFrom
		}{base, f, r},
		6: struct {
			w
			hijacks
			readsFrom
		}{base, h, r},
		7: struct {
			w
			flushes
			hijacks
			readsFrom
		}{base, f, h, r},
		8: struct {
			w
			pushes
		}{base, p},
		9: struct {
			w
			flushes
			pushes
		}{base, f, p},
		10: struct {
			w
			hijacks
			pushes
		}{base, h, p},
		11: struct {
			w
			flushes
			hijacks
			pushes
		}{base, f, h, p},
		12: struct {
			w
			readsFrom
			pushes
		}{base, r, p},
		13: struct {
			w
			flushes
			readsFrom
			pushes
		}{base, f, r, p},
		14: struct {
			w
			hijacks
			readsFrom
			pushes
		}{base, h, r, p},
		15: struct {
			w
			flushes
			hijacks
			readsFrom
			pushes
		}{base, f, h, r, p},
	}[set]
}

func TestWrappedWriterCanWhatTheInnerCan(t *testing.T) {
	for set := range 16 {
		var used string
		inner := writerWith(set, &used)
		if got := abilities(inner); got != set {
			t.Fatalf("the test's writer %d has abilities %d", set, got)
		}
		w, seen := wrapped(inner)
		if got := abilities(w); got != set {
			t.Errorf("a writer of abilities %04b is wrapped as %04b", set, got)
		}
		if u, ok := w.(interface{ Unwrap() http.ResponseWriter }); !ok || u.Unwrap() != inner {
			t.Errorf("%04b: Unwrap does not give the writer inside", set)
		}
		want := ""
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
			want += "F"
		}
		if h, ok := w.(http.Hijacker); ok {
			h.Hijack()
			want += "H"
		}
		if r, ok := w.(io.ReaderFrom); ok {
			if n, err := r.ReadFrom(strings.NewReader("abc")); n != 3 || err != nil {
				t.Errorf("%04b: ReadFrom: %d, %v", set, n, err)
			}
			want += "R"
		}
		if p, ok := w.(http.Pusher); ok {
			if err := p.Push("/x", nil); !errors.Is(err, http.ErrNotSupported) {
				t.Errorf("%04b: Push: %v", set, err)
			}
			want += "P"
		}
		if used != want {
			t.Errorf("%04b: %q reached the writer inside, want %q", set, used, want)
		}
		if seen.streams != (set&(canFlush|canHijack) != 0) || seen.hijacked != (set&canHijack != 0) {
			t.Errorf("%04b: stream %v, hijacked %v", set, seen.streams, seen.hijacked)
		}
	}
}

// errFlush has only the newer method.
type errFlush struct {
	sink
	err error
}

func (e *errFlush) FlushError() error { return e.err }

func TestFlushThroughTheController(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		inner  http.ResponseWriter
		want   error
		status int16
	}{
		{&sink{header: http.Header{}}, http.ErrNotSupported, 0},
		{writerWith(canFlush, new(string)), nil, 200},
		{&errFlush{sink{header: http.Header{}}, broken}, broken, 200},
		{unwraps{writerWith(canFlush, new(string))}, nil, 200},
	} {
		w, seen := wrapped(c.inner)
		err := http.NewResponseController(w).Flush()
		if !errors.Is(err, c.want) || !seen.streams || seen.status != c.status {
			t.Errorf("%T: Flush: %v, stream %v, status %d", c.inner, err, seen.streams, seen.status)
		}
	}
}

// unwraps is somebody's wrapper that offers nothing but Unwrap.
type unwraps struct{ http.ResponseWriter }

func (u unwraps) Unwrap() http.ResponseWriter { return u.ResponseWriter }

func TestOutcomes(t *testing.T) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		name    string
		ctx     context.Context
		handler http.HandlerFunc
		failed  uint64
		stream  bool
		status  int
	}{
		{"nothing written", nil, func(http.ResponseWriter, *http.Request) {}, 0, false, 200},
		{"200 by a write", nil, func(w http.ResponseWriter, _ *http.Request) { w.Write(nil) }, 0, false, 200},
		{"200 by a string", nil, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "x") }, 0, false, 200},
		{"404", nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, 0, false, 404},
		{"499", nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(499) }, 0, false, 499},
		{"500", nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, 1, false, 500},
		{"503", nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, 1, false, 503},
		{"the first counts", nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200); w.WriteHeader(500) }, 0, false, 200},
		{"the first counts, body", nil, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("x")); w.WriteHeader(500) }, 0, false, 200},
		{"early hints", nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(500) }, 1, false, 103}, // for a recorder
		{"switching protocols", nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(101) }, 0, true, 101},
		{"events", nil, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "Text/Event-Stream; charset=utf-8")
			w.WriteHeader(200)
		}, 0, true, 200},
		{"events by a write", nil, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Write([]byte("data: 1\n\n"))
		}, 0, true, 200},
		{"other events", nil, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event")
			w.WriteHeader(200)
		}, 0, false, 200},
		{"flushed", nil, func(w http.ResponseWriter, _ *http.Request) { flush(w); w.WriteHeader(500) }, 0, true, 200},
		{"client gone, served", gone, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) }, 0, false, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, rt := newMiddleware(t, Config{})
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			handler := c.handler
			if c.ctx != nil {
				handler = func(w http.ResponseWriter, r *http.Request) { c.handler(w, r.WithContext(c.ctx)) }
			}
			var pinned bool
			w := serve(m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				handler(w, r)
				pinned = only(t, rt).Pinned
			})), r)
			s := rt.For("http:*").Snapshot()
			if s.Admitted != 1 || s.Failed != c.failed || s.Unrecorded != 0 || pinned != c.stream || w.Code != c.status {
				t.Errorf("admitted %d, failed %d (want %d), unrecorded %d, stream %v (want %v), status %d (want %d)",
					s.Admitted, s.Failed, c.failed, s.Unrecorded, pinned, c.stream, w.Code, c.status)
			}
			rt.AssertIdle()
		})
	}
}

// A handler that gives up because its client has gone is no success.
func TestGivingUpIsAFailure(t *testing.T) {
	m, rt := newMiddleware(t, Config{})
	ctx, cancel := context.WithCancel(context.Background())
	h := m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { cancel() }))
	serve(h, httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
	if s := rt.For("http:*").Snapshot(); s.Failed != 1 {
		t.Errorf("failed %d, want 1", s.Failed)
	}
	// And one whose client went before is not served at all.
	w := serve(h, httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
	if s := rt.For("http:*").Snapshot(); s.Refused[guard.ReasonCanceled] != 1 || w.Code != StatusClientClosedRequest || w.Body.Len() > 0 {
		t.Errorf("refused %v, status %d, body %q", s.Refused, w.Code, w.Body)
	}
}

// ReadFrom of nothing leaves the status open, as the server's does.
func TestReadFromNothing(t *testing.T) {
	var used string
	w, seen := wrapped(writerWith(canReadFrom, &used))
	io.Copy(w, onlyReader{strings.NewReader("")})
	w.WriteHeader(500)
	if used != "R" || seen.end(context.Background()) == nil {
		t.Errorf("used %q, status %d", used, seen.status)
	}
	w, seen = wrapped(writerWith(canReadFrom, &used))
	w.Header().Set("Content-Type", "text/event-stream")
	io.Copy(w, onlyReader{strings.NewReader("data")})
	if seen.status != 200 || !seen.streams {
		t.Errorf("status %d, stream %v", seen.status, seen.streams)
	}
}

type onlyReader struct{ io.Reader }

// A writer that a handler leaked must not touch the next request.
func TestLeakedWriter(t *testing.T) {
	m, rt := newMiddleware(t, Config{})
	var leaked http.ResponseWriter
	first := true
	h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if first {
			first, leaked = false, w
			return
		}
		leaked.WriteHeader(500)
		leaked.Write([]byte("late"))
		flush(leaked)
		if only(t, rt).Pinned {
			t.Error("the leaked writer made the next call a stream")
		}
		io.WriteString(w, "second")
	}))
	get(h, "/")
	if w := get(h, "/"); w.Code != 200 || w.Body.String() != "second" {
		t.Errorf("the second request was answered %d %q", w.Code, w.Body)
	}
	if s := rt.For("http:*").Snapshot(); s.Failed != 0 || s.Admitted != 2 {
		t.Errorf("failed %d of %d", s.Failed, s.Admitted)
	}
}

// A stream that begins on another goroutine than the handler's is one.
func TestStreamOfAnotherGoroutine(t *testing.T) {
	m, rt := newMiddleware(t, Config{})
	get(m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			flush(w)
		}()
		<-done
		if !only(t, rt).Pinned {
			t.Error("it is no stream")
		}
	})), "/")
}

// wrapped is wrap for a writer of no call.
func wrapped(inner http.ResponseWriter) (http.ResponseWriter, *writer) {
	return wrap(inner, abilities(inner), nil)
}

// The abilities that are remembered are those of the writer at hand.
func TestShape(t *testing.T) {
	var s shape
	var used string
	for range 2 {
		for set := range 16 {
			w := writerWith(set, &used)
			for range 2 {
				if got := s.of(w); got != set {
					t.Errorf("abilities %04b are taken for %04b", set, got)
				}
			}
		}
	}
}

// Guarded twice under one key a request counts once; both see its status.
func TestNestedMiddleware(t *testing.T) {
	m, rt := newMiddleware(t, Config{})
	if err := rt.Registry().Declare("http:*", registry.Spec{Limit: 1}); err != nil {
		t.Fatal(err)
	}
	h := m.Handler(m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })))
	if w := get(h, "/"); w.Code != 500 {
		t.Errorf("status %d", w.Code)
	}
	if s := rt.For("http:*").Snapshot(); s.Admitted != 1 || s.Nested != 1 || s.Failed != 1 {
		t.Errorf("admitted %d, nested %d, failed %d, want 1 each", s.Admitted, s.Nested, s.Failed)
	}
	rt.AssertIdle()
}

// fatContext cannot be compared.
type fatContext struct {
	context.Context
	_ []int
}

func TestRequestIsCopiedOnlyForAnotherContext(t *testing.T) {
	m, rt := newMiddleware(t, Config{})
	var got *http.Request
	h := m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r }))
	for _, ctx := range []context.Context{context.Background(), t.Context(), fatContext{Context: t.Context()}} {
		r := httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx)
		serve(h, r)
		if got != r {
			t.Errorf("%T: the handler got a copy of the request", ctx)
		}
	}
	if err := rt.Registry().Declare("http:*", registry.Spec{Timeout: 1e9}); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	serve(h, r)
	if _, limited := got.Context().Deadline(); got == r || !limited {
		t.Errorf("with a timeout the handler got the same request %v, with a deadline %v", got == r, limited)
	}
}

func TestAllocations(t *testing.T) {
	m, _ := newMiddlewareWithoutInjector(t)
	h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }))
	mux := http.NewServeMux()
	mux.Handle("GET /x", h)
	for name, h := range map[string]http.Handler{"alone": h, "behind a mux": mux} {
		w, r := &sink{header: http.Header{}}, httptest.NewRequest(http.MethodGet, "/x", nil)
		if n := testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) }); n > 1 {
			t.Errorf("%s: %v allocations a request, want the writer's one", name, n)
		}
	}
}

// newMiddlewareWithoutInjector has the short path of a real program.
func newMiddlewareWithoutInjector(tb testing.TB) (*Middleware, *guard.Runtime) {
	tb.Helper()
	rt, err := guard.NewRuntime(nil, guard.WithLogger(silent))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { rt.Close() })
	m, err := New(Config{Runtime: rt})
	if err != nil {
		tb.Fatal(err)
	}
	return m, rt
}

func ExampleMiddleware_Handler() {
	rt, err := guard.NewRuntime(nil, guard.WithLogger(silent))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close()
	m, err := New(Config{Runtime: rt})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /items/{id}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "item %s", r.PathValue("id"))
	})
	guarded := m.Handler(mux)

	w := httptest.NewRecorder()
	guarded.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/items/7", nil))
	fmt.Println(w.Body)

	rt.Close() // from here on everything is refused
	w = httptest.NewRecorder()
	guarded.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/items/7", nil))
	fmt.Print(w.Code, " ", w.Header().Get("Retry-After"), " ", bytes.NewBuffer(w.Body.Bytes()))
	// Output:
	// item 7
	// 503 1 {"title":"Service Unavailable","status":503,"reason":"closed","retry_after_ms":1000}
}

// Half of a goroutine's number is as good as all of it, beside that of a goroutine that was started not more than two thousand million later or before.
func TestWholeNumber(t *testing.T) {
	for _, n := range []uint64{1, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<32 + 1, 1 << 40, 1<<40 + 1<<31} {
		for _, near := range []uint64{n, n + 1, n + 1<<31 - 1, n - min(n, 1<<31-1)} {
			if got := whole(uint32(n), near); got != n {
				t.Errorf("%d beside %d is taken for %d", n, near, got)
			}
		}
	}
}
