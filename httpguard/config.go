package httpguard

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// DefaultPrefix begins the keys that are made from routes.
const DefaultPrefix = "http:"

// maxPrefixLen leaves most of a key to the route.
const maxPrefixLen = 64

// Config says what a Middleware does. The zero value guards every route in the default runtime and honours
// nobody's headers. Its functions are called on the request's goroutine, many at once, before a place is taken
// (Rejected: after it was refused).
type Config struct {
	// Runtime whose guards are used. Nil: guard.Default().
	Runtime *guard.Runtime

	// Key names the guard of a request. An empty key lets the request pass unguarded, which suits health checks. There must
	// be a small, fixed number of keys: never make one from a path with ids in it, a user or a query.
	// Nil: one key for each route of an http.ServeMux, see RouteKey.
	Key func(*http.Request) registry.Key

	// Prefix begins the keys that are made from routes: up to 64 bytes of the characters that a key may have. Two
	// services in one process need two. Empty: DefaultPrefix. Without effect beside Key.
	Prefix string

	// Weight is the number of places that a request takes, all or none; below 1 counts as 1. A request that weighs more than
	// its key can ever hold is refused for ever. Nil: every request takes one.
	Weight func(*http.Request) int

	// Trust reports whether the sender of a request may tell its criticality, caller, remaining time and attempt in
	// headers. A client that is trusted can declare its requests the most important ones, so never trust the
	// public. TrustNetworks makes one from addresses. Nil: nobody is trusted.
	Trust func(*http.Request) bool

	// Headers are the names of those headers.
	Headers Headers

	// Rejected answers a refused request instead of the default answer, which Reject gives. Nil: Reject.
	Rejected func(http.ResponseWriter, *http.Request, *guard.Rejection)

	// RateLimit names the policy behind an answer with 429, for the fields RateLimit and RateLimit-Policy
	// (draft-ietf-httpapi-ratelimit-headers-12). Nil, or a zero Policy: without these fields. Without effect beside
	// Rejected.
	RateLimit func(*http.Request, *guard.Rejection) Policy
}

// withDefaults fills in what is unset, and says in one sentence what is wrong.
func (c Config) withDefaults() (Config, error) {
	if c.Runtime == nil {
		c.Runtime = guard.Default()
	}
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if len(c.Prefix) > maxPrefixLen || registry.Key(c.Prefix).Validate() != nil {
		return c, fmt.Errorf("httpguard: Prefix is %.100q, must be at most %d bytes of printable characters without spaces",
			c.Prefix, maxPrefixLen)
	}
	c.Headers = c.Headers.withDefaults()
	return c, c.Headers.validate()
}

// Headers are the names of the request headers that are honoured from trusted peers. They must differ. A value that
// cannot be read, or a header given twice, is ignored and counted (BadHeaders); no request fails for it.
type Headers struct {
	// Criticality is one of critical_plus, critical, sheddable_plus, sheddable. Empty: "Spillway-Criticality".
	Criticality string
	// Caller is the user or service on whose behalf the request is made: at most 128 bytes of the
	// characters that a key may have. Empty: "Spillway-Caller".
	Caller string
	// Timeout is how long the sender will still wait, in whole milliseconds, counted from the arrival of the request: an
	// optional minus sign and 1 to 15 digits. It can only shorten the time that the request has otherwise. 0 and
	// below: nobody waits any more, the request is refused with 504. Empty: "Spillway-Timeout-Ms".
	Timeout string
	// Attempt is 1 for the first try, 2 for the first retry, up to 1000. Empty: "Spillway-Attempt".
	Attempt string
}

func (h Headers) withDefaults() Headers {
	for i, name := range namesOf(&h) {
		if *name == "" {
			*name = defaultHeaders[i]
		}
		*name = http.CanonicalHeaderKey(*name)
	}
	return h
}

func (h Headers) validate() error {
	seen := map[string]bool{}
	for _, name := range namesOf(&h) {
		if !token(*name) {
			return fmt.Errorf("httpguard: header name %.100q must consist of letters, digits and any of !#$%%&'*+-.^_`|~", *name)
		}
		if seen[*name] {
			return fmt.Errorf("httpguard: header name %q is used for two headers, they must differ", *name)
		}
		seen[*name] = true
	}
	return nil
}

// namesOf lists the names in the order of their constants.
func namesOf(h *Headers) [headers]*string {
	return [headers]*string{&h.Criticality, &h.Caller, &h.Timeout, &h.Attempt}
}

var defaultHeaders = [headers]string{"Spillway-Criticality", "Spillway-Caller", "Spillway-Timeout-Ms", "Spillway-Attempt"}

// token is the grammar of a field name, RFC 9110 section 5.6.2.
func token(s string) bool {
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}
