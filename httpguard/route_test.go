package httpguard

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

func TestRouteKey(t *testing.T) {
	long := "GET /" + strings.Repeat("a", 300)
	for _, c := range []struct {
		pattern string
		want    registry.Key
	}{
		{"GET /items/{id}", "http:GET:/items/{id}"},
		{"GET \t /items", "http:GET:/items"},
		{"/static/", "http:/static/"},
		{"/", "http:/"},
		{"/{$}", "http:/{$}"},
		{"example.com/", "http:example.com/"},
		{"POST example.com/a/{rest...}", "http:POST:example.com/a/{rest...}"},
		{"GET /a b", "http:GET:/a%20b"},
		{"GET /a%20b", "http:GET:/a%20b"}, // the same route for http.ServeMux
		{"/stra\u00dfe", "http:/stra\u00dfe"},
		{"/nul\x00", "http:/nul%00"},
		{"/bad\xff", "http:/bad%FF"},
		{"/nbsp\u00a0", "http:/nbsp%C2%A0"},
		{"", "http:*"},
		{long, ""},
		{long + "b", ""},
		{"/" + strings.Repeat("\u00e9", 200), ""},
	} {
		got := RouteKey(c.pattern)
		if err := got.Validate(); err != nil {
			t.Errorf("RouteKey(%q): %v", c.pattern, err)
		}
		if c.want != "" && got != c.want {
			t.Errorf("RouteKey(%q) = %q, want %q", c.pattern, got, c.want)
		}
		if c.want == "" && (len(got) < registry.MaxKeyLen-3 || !strings.Contains(string(got), "~")) {
			t.Errorf("RouteKey(%q) = %q, want it cut, with a hash", c.pattern, got)
		}
	}
	if RouteKey(long) == RouteKey(long+"b") {
		t.Error("two long patterns have one key")
	}
}

func FuzzRouteKey(f *testing.F) {
	for _, s := range []string{"", "GET /items/{id}", "/a b", "\x80\x00", "GET /" + strings.Repeat("\u00e9", 200)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		key := RouteKey(pattern)
		if err := key.Validate(); err != nil {
			t.Errorf("RouteKey(%q): %v", pattern, err)
		}
		if key != RouteKey(pattern) {
			t.Errorf("RouteKey(%q) differs from call to call", pattern)
		}
	})
}

// keys are the keys that a runtime has seen calls of.
func keys(m *Middleware) map[registry.Key]uint64 {
	seen := map[registry.Key]uint64{}
	for _, k := range m.cfg.Runtime.Snapshot().Keys {
		if k.Admitted+k.Nested > 0 {
			seen[k.Key] = k.Admitted + k.Nested
		}
	}
	return seen
}

func TestKeysOfRequests(t *testing.T) {
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	routes := func(wrap func(http.Handler) http.Handler) *http.ServeMux {
		mux := http.NewServeMux()
		mux.Handle("GET /items/{id}", wrap(ok))
		mux.Handle("/tree/", wrap(ok))
		mux.Handle("admin.example/items/", wrap(ok))
		return mux
	}
	plain := func(h http.Handler) http.Handler { return h }
	requests := []struct {
		method, target string
		want           registry.Key
		status         int
	}{
		{"GET", "/items/1", "http:GET:/items/{id}", 200},
		{"GET", "/items/2?q=3", "http:GET:/items/{id}", 200},
		{"HEAD", "/items/1", "http:GET:/items/{id}", 200},
		{"GET", "/tree/a/b", "http:/tree/", 200},
		{"BREW", "/tree/a", "http:/tree/", 200},
		{"CONNECT", "/tree/a", "http:/tree/", 200},
		{"CONNECT", "/tree/..%2ftree", "http:/tree/", 200},
		{"CONNECT", "/tree", "http:*", 307}, // the mux does not tell its route
		{"GET", "http://admin.example/items/7", "http:admin.example/items/", 200},
		{"GET", "/tree", "http:/tree/", 307},            // a redirect belongs to the route it leads to
		{"GET", "/tree/x/../y", "http:/tree/", 307},     // so does one to the clean path
		{"POST", "/items/1", "http:*", 405},             // no route
		{"GET", "/none/1", "http:*", 404},               // no route
		{"OPTIONS", "*", "http:*", http.StatusNotFound}, // stands for any path
	}
	for name, c := range map[string]struct {
		handler func(m *Middleware) http.Handler
		bare    bool // requests without a route are not seen
	}{
		"around the mux":     {func(m *Middleware) http.Handler { return m.Handler(routes(plain)) }, false},
		"around each":        {func(m *Middleware) http.Handler { return routes(m.Handler) }, true},
		"both":               {func(m *Middleware) http.Handler { return m.Handler(routes(m.Handler)) }, false},
		"around another mux": {func(m *Middleware) http.Handler { return m.Handler(mount(routes(plain))) }, false},
	} {
		for _, r := range requests {
			t.Run(name+"/"+r.method+r.target, func(t *testing.T) {
				m, rt := newMiddleware(t, Config{})
				h := c.handler(m)
				w := serve(h, httptest.NewRequest(r.method, r.target, nil))
				seen := keys(m)
				want := r.want
				if name == "around another mux" {
					want = "http:/"
				}
				if c.bare && w.Code != 200 {
					if len(seen) != 0 {
						t.Errorf("without a route the keys are %v", seen)
					}
				} else if len(seen) != 1 || seen[want] == 0 {
					t.Errorf("keys %v, want %q", seen, want)
				}
				rt.AssertIdle()
			})
		}
	}
}

func mount(h http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", h)
	return mux
}

// A mux inside of a route knows better than the route.
func TestKeyOfAnInnerMux(t *testing.T) {
	m, _ := newMiddleware(t, Config{})
	inner := http.NewServeMux()
	inner.HandleFunc("GET /api/items/{id}", func(http.ResponseWriter, *http.Request) {})
	outer := http.NewServeMux()
	outer.Handle("/api/", m.Handler(inner))
	get(outer, "/api/items/1")
	get(outer, "/api/none")
	if seen := keys(m); len(seen) != 2 || seen["http:GET:/api/items/{id}"] != 1 || seen["http:/api/"] != 1 {
		t.Errorf("keys %v, want the inner route, and the outer one where the inner mux has none", seen)
	}
}

// What a client may choose freely must not make keys.
func TestKeysAreBounded(t *testing.T) {
	m, _ := newMiddleware(t, Config{})
	mux := http.NewServeMux()
	mux.HandleFunc("/tree/{id}/", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("CONNECT /tunnel/", func(http.ResponseWriter, *http.Request) {})
	h := m.Handler(mux)
	for i := range 500 {
		for _, method := range []string{"GET", "CONNECT", fmt.Sprintf("M%d", i)} {
			for _, path := range []string{"/tree/%d", "/tree/%d/", "/tree/..%%2f%d", "/tree/a%%2f%d", "/none/%d", "/tunnel/%d"} {
				serve(h, httptest.NewRequest(method, fmt.Sprintf(path, i), nil))
			}
		}
	}
	seen := keys(m)
	if len(seen) != 3 || seen["http:*"] == 0 || seen["http:/tree/{id}/"] == 0 || seen["http:CONNECT:/tunnel/"] != 500 {
		t.Errorf("keys %v, want two routes and the rest", seen)
	}
}

// The method is the client's choice: no method leads round the bound of a route for all.
func TestNoMethodGetsRoundABound(t *testing.T) {
	m, rt := newMiddleware(t, Config{})
	mux := http.NewServeMux()
	mux.HandleFunc("/sub/", func(http.ResponseWriter, *http.Request) {})
	h := m.Handler(mux)
	if err := rt.Registry().Declare(RouteKey("/sub/"), registry.Spec{Limit: 1, Expand: 1}); err != nil {
		t.Fatal(err)
	}
	release := rt.Fill(RouteKey("/sub/"))
	defer release()
	for _, method := range []string{"GET", "POST", "CONNECT", "OPTIONS", "TRACE", "BREW"} {
		for _, path := range []string{"/sub/", "/sub/x", "/sub/x/", "/sub/..%2fsub"} {
			// Other methods are redirected to the clean path, which has a route or none.
			if strings.Contains(path, "%") && method != http.MethodConnect {
				continue
			}
			if got := serve(h, httptest.NewRequest(method, path, nil)).Code; got != http.StatusServiceUnavailable {
				t.Errorf("%s %s: status %d while the route is full, want 503", method, path, got)
			}
		}
	}
}

func TestRoutesRememberedAreBounded(t *testing.T) {
	m, _ := newMiddleware(t, Config{})
	h := m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for i := range maxRoutes + 100 {
		r.Pattern = fmt.Sprintf("/wrong/%d", i) // somebody's router puts paths there
		serve(h, r)
	}
	n := 0
	m.routes.Range(func(_, _ any) bool { n++; return true })
	if n != maxRoutes || m.known.Load() != maxRoutes {
		t.Errorf("%d routes are remembered and %d counted, want %d", n, m.known.Load(), maxRoutes)
	}
}

func TestOneHandlerOfSeveralRoutes(t *testing.T) {
	m, _ := newMiddleware(t, Config{Prefix: "shop:"})
	h := m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	mux := http.NewServeMux()
	mux.Handle("/a", h)
	mux.Handle("/b", h)
	for range 3 {
		get(mux, "/a")
		get(mux, "/b")
	}
	get(h, "/a")
	want := map[registry.Key]uint64{m.RouteKey("/a"): 3, "shop:/b": 3, "shop:*": 1}
	if seen := keys(m); fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("keys %v, want %v", seen, want)
	}
}

func TestOwnKey(t *testing.T) {
	m, rt := newMiddleware(t, Config{Key: func(r *http.Request) registry.Key {
		if r.URL.Path == "/health" {
			return ""
		}
		return registry.Key("tenant@" + r.Host)
	}})
	h := m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	rt.Refuse("tenant@a", guard.ReasonFull)
	for target, want := range map[string]int{"http://a/x": 503, "http://b/x": 200, "http://a/health": 200} {
		if got := get(h, target).Code; got != want {
			t.Errorf("%s: status %d, want %d", target, got, want)
		}
	}
	if seen := keys(m); len(seen) != 1 || seen["tenant@b"] != 1 {
		t.Errorf("keys %v", seen)
	}
}

// A request that a route declares nothing for has the default spec, one that it does has its own.
func TestSpecOfARoute(t *testing.T) {
	m, rt := newMiddleware(t, Config{})
	if err := rt.Registry().Declare(RouteKey("GET /search"), registry.Spec{Limit: 1}); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	var inner int
	h := m.Handler(mux)
	mux.HandleFunc("GET /search", func(http.ResponseWriter, *http.Request) {
		done := make(chan int)
		go func() { done <- get(h, "/search").Code }() // not nested: another goroutine
		inner = <-done
	})
	if got := get(h, "/search").Code; got != 200 || inner != 503 {
		t.Errorf("status %d, and of a second request meanwhile %d, want 200 and 503", got, inner)
	}
	rt.AssertIdle()
}
