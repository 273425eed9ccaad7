package httpguard

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Middleware guards the handlers that it wraps. Make it with New: Handler of the zero value panics. All its methods are safe for
// concurrent use.
type Middleware struct {
	cfg    Config
	names  [headers]string        // of the headers, canonical
	bad    [headers]atomic.Uint64 // values that could not be read
	routes sync.Map               // pattern -> *guard.Guard
	known  atomic.Int64           // entries in routes, never above maxRoutes
}

// New returns a Middleware, or an error that says what is wrong with cfg.
func New(cfg Config) (*Middleware, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Middleware{cfg: cfg}
	for i, name := range namesOf(&cfg.Headers) {
		m.names[i] = *name
	}
	return m, nil
}

// Handler returns a handler that serves a request with next if the request's key admits it, and answers it otherwise as Reject does.
// As a method value it is a func(http.Handler) http.Handler. It panics if next is nil,
// or m was not made by New.
func (m *Middleware) Handler(next http.Handler) http.Handler {
	if m == nil || m.cfg.Runtime == nil {
		panic("httpguard: Handler of a Middleware that was not made by New")
	}
	if next == nil {
		panic("httpguard: Handler got a nil handler")
	}
	h := &handler{m: m, next: next}
	h.router, _ = next.(router)
	return h
}

// BadHeaders is the number of headers of trusted peers that could not be read, by name; names without any are left out.
func (m *Middleware) BadHeaders() map[string]uint64 {
	bad := map[string]uint64{}
	for i, name := range m.names {
		if n := m.bad[i].Load(); n > 0 {
			bad[name] = n
		}
	}
	return bad
}

type handler struct {
	m      *Middleware
	next   http.Handler
	router router // next, if it can tell its patterns
	first  atomic.Pointer[route]
	shape  shape // of the server's writers
}

// ServeHTTP never recovers: a panic of the handler passes through with its own stack, and the guard counts the call as unrecorded.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g := h.guard(r)
	if g == nil {
		h.next.ServeHTTP(w, r)
		return
	}
	ctx := r.Context()
	if trust := h.m.cfg.Trust; trust != nil && trust(r) {
		var cancel context.CancelFunc
		ctx, cancel = h.m.inherit(r)
		defer cancel()
	}
	refused := true
	serve := func(ctx context.Context) error {
		refused = false
		inner := r
		if !same(ctx, r.Context()) {
			inner = r.WithContext(ctx)
		}
		wrapped, seen := wrap(w, h.shape.of(w), g)
		h.next.ServeHTTP(wrapped, inner)
		err := seen.end(inner.Context())
		if inner != r {
			handBack(r, inner)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			fail(w, r, err) // or else the server answered with an empty 200
		}
		return err
	}
	var err error
	if weigh := h.m.cfg.Weight; weigh != nil {
		err = g.DoN(ctx, weigh(r), serve)
	} else {
		err = g.DoContext(ctx, serve)
	}
	if refused {
		h.m.refuse(w, r, err)
	}
}

// same reports whether two contexts are one, by the words of the interface: comparing the contexts themselves panics
// where somebody's context is a struct with a slice in it.
func same(a, b context.Context) bool {
	return *(*[2]uintptr)(unsafe.Pointer(&a)) == *(*[2]uintptr)(unsafe.Pointer(&b))
}

// handBack carries to the server's request what the handler left in the copy that it got: the pattern, which access logs read,
// and the form, whose temporary files the server removes.
func handBack(r, inner *http.Request) {
	r.Pattern = inner.Pattern
	if r.MultipartForm == nil {
		r.MultipartForm = inner.MultipartForm
	}
}

// errServer is the outcome of a call that was answered with a status of 500 or above.
var errServer = errors.New("httpguard: the handler answered with a server error")
