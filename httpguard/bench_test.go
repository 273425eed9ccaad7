package httpguard

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// sink is a ResponseWriter without any cost of its own.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header                 { return s.header }
func (s *sink) WriteHeader(int)                     {}
func (s *sink) Write(b []byte) (int, error)         { return len(b), nil }
func (s *sink) WriteString(str string) (int, error) { return len(str), nil }

// h1Sink has what the server's writer of HTTP/1 has.
type h1Sink struct {
	sink
	http.Hijacker
	io.ReaderFrom
}

func (*h1Sink) Flush() {}

func hello(w http.ResponseWriter, _ *http.Request) {
	io.WriteString(w, "hello, world\n")
}

// BenchmarkHandler compares handlers with and without the middleware. One after the other they see different moods of the
// machine: bench/cost compares them in turns.
func BenchmarkHandler(b *testing.B) {
	m, _ := newMiddlewareWithoutInjector(b)
	mux := func(h http.Handler) http.Handler {
		mux := http.NewServeMux()
		mux.Handle("GET /hello", h)
		return mux
	}
	bare := http.HandlerFunc(hello)
	for _, c := range []struct {
		name    string
		handler http.Handler
	}{
		{"alone", bare},
		{"alone/guarded", m.Handler(bare)},
		{"mux", mux(bare)},
		{"mux/guarded", mux(m.Handler(bare))},
		{"mux/guarded around", m.Handler(mux(bare))},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := &h1Sink{sink: sink{header: http.Header{}}}
			r := httptest.NewRequest(http.MethodGet, "/hello", nil)
			b.ReportAllocs()
			for b.Loop() {
				c.handler.ServeHTTP(w, r)
			}
		})
	}
}

func BenchmarkRefused(b *testing.B) {
	m, rt := newMiddlewareWithoutInjector(b)
	rt.Close()
	h := m.Handler(http.HandlerFunc(hello))
	r := httptest.NewRequest(http.MethodGet, "/hello", nil)
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(&sink{header: http.Header{}}, r)
	}
}
