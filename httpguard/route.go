package httpguard

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// router is a handler that can tell the pattern of a request before serving it, as *http.ServeMux does.
type router interface {
	Handler(r *http.Request) (h http.Handler, pattern string)
}

// redirect is the type of the handler by which ServeMux leads to the path with a slash at its end.
var redirect = reflect.TypeOf(http.RedirectHandler("", 0))

// route is a pattern and its guard.
type route struct {
	pattern string
	guard   *guard.Guard
}

// maxRoutes bounds the patterns remembered, in case somebody's router puts more than patterns into Request.Pattern.
const maxRoutes = 4096

// RouteKey is the key of the requests that a pattern of http.ServeMux matches, as a Middleware with the default prefix makes it:
// "GET /items/{id}" has "http:GET:/items/{id}", "/static/" has "http:/static/". A space or another character that a
// key may not have is percent-encoded; what is longer than a key may be is cut, and ends in "~" and a hash of
// the whole. An empty pattern has "http:*", the one key of all requests without a route.
func RouteKey(pattern string) registry.Key { return routeKey(DefaultPrefix, pattern) }

// RouteKey is the key of a pattern under the Middleware's prefix.
func (m *Middleware) RouteKey(pattern string) registry.Key { return routeKey(m.cfg.Prefix, pattern) }

func routeKey(prefix, pattern string) registry.Key {
	if pattern == "" {
		return registry.Key(prefix + "*")
	}
	var b strings.Builder
	b.WriteString(prefix)
	if i := strings.IndexAny(pattern, " \t"); i >= 0 {
		encode(&b, pattern[:i])
		b.WriteByte(':')
		pattern = strings.TrimLeft(pattern[i:], " \t")
	}
	encode(&b, pattern)
	key := b.String()
	if len(key) <= registry.MaxKeyLen {
		return registry.Key(key)
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(key)) // never fails
	tail := fmt.Sprintf("~%016x", sum.Sum64())
	end := registry.MaxKeyLen - len(tail)
	for !utf8.RuneStart(key[end]) {
		end--
	}
	return registry.Key(key[:end] + tail)
}

// encode writes s with everything percent-encoded that a key may not have.
func encode(b *strings.Builder, s string) {
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == ' ' || !unicode.IsPrint(r) || r == utf8.RuneError && n == 1 {
			for _, c := range []byte(s[:n]) {
				fmt.Fprintf(b, "%%%02X", c)
			}
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
}

// guard returns the guard of a request, or nil if it has none.
func (h *handler) guard(r *http.Request) *guard.Guard {
	if h.m.cfg.Key != nil {
		if key := h.m.cfg.Key(r); key != "" {
			return h.m.cfg.Runtime.For(key)
		}
		return nil
	}
	if h.router != nil {
		return h.m.route(patternOf(h.router, r)).guard
	}
	// A handler behind a mux has one pattern, most often.
	if first := h.first.Load(); first != nil && first.pattern == r.Pattern {
		return first.guard
	}
	found := h.m.route(r.Pattern)
	h.first.CompareAndSwap(nil, found)
	return found.guard
}

// patternOf is the pattern of the router for a request that it did not see yet, or else of the one that led here.
func patternOf(rt router, r *http.Request) string {
	h, pattern := rt.Handler(r)
	// ServeMux gives the path itself as the pattern of a CONNECT that it redirects, which must not become a key. The
	// text does not tell it from a pattern, which must not be lost: a client would get round the route's bound.
	if r.Method == http.MethodConnect && reflect.TypeOf(h) == redirect {
		pattern = ""
	}
	if pattern == "" {
		return r.Pattern
	}
	return pattern
}

// route finds the guard of a pattern.
func (m *Middleware) route(pattern string) *route {
	if v, ok := m.routes.Load(pattern); ok {
		return v.(*route) //nolint:errcheck,forcetypeassert // nothing else is stored
	}
	found := &route{strings.Clone(pattern), m.cfg.Runtime.For(m.RouteKey(pattern))}
	if m.known.Add(1) > maxRoutes {
		m.known.Add(-1)
		return found
	}
	if v, loaded := m.routes.LoadOrStore(found.pattern, found); loaded {
		m.known.Add(-1)
		return v.(*route) //nolint:errcheck,forcetypeassert // nothing else is stored
	}
	return found
}
