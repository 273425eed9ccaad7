// Package httpguard guards the handlers of a net/http server: each route has a bound on its requests in flight, the
// rest is refused at once, with an answer that clients can act on.
//
//	mux := http.NewServeMux()
//	mux.Handle("GET /items/{id}", items)
//	mux.Handle("GET /search", search)
//	guarded, err := httpguard.New(httpguard.Config{})
//	if err != nil {
//		return err
//	}
//	reg := guard.Default().Registry()
//	reg.Declare(httpguard.RouteKey("GET /search"), registry.Spec{Limit: 8, Timeout: time.Second})
//	return http.ListenAndServe(addr, guarded.Handler(mux))
//
// A Middleware wraps a whole mux, as here, or one handler each (mux.Handle("GET /search", guarded.Handler(search))), and the key is
// the same: that of the route. The first looks every route up twice, once for its key, which costs about 80 ns. With
// other routers, which say their patterns only while serving, wrap the handlers, or set Config.Key.
//
// When not to use it: it counts requests, not bytes, so that slow uploads and downloads are for http.Server's timeouts; it
// does not know who a user is, so that limits per user are for Config.Key no more than for any key; and a server of
// static files needs none. Guard what calls something slow. Health checks should stay outside (an empty key).
//
// # The answer to a refused request
//
// The status is 429 for the reasons rate and quota, 504 for deadline, 500 for invalid_key, and 503 for all others (see StatusOf).
// Retry-After, in whole seconds rounded up and never 0, says when to come back; it is left out where that would not help.
// Cache-Control is no-store. The body is of the type application/problem+json (RFC 9457; none for HEAD):
//
//	{"title":"Service Unavailable","status":503,"reason":"full","retry_after_ms":200}
//
// This is a contract: title is the status's own text, reason is one of guard.Reasons as guard.Reason.String spells it, or
// "failed" when a drill failed the request; retry_after_ms is there with Retry-After, and more exact. Members may be added.
// Nothing tells of keys, limits or the error's text. The request's body was not read.
// A request whose client has gone gets the status 499 for the access log and no body.
//
// # How a request ends
//
// A status of 500 or above counts as a failure of the call, and so does a handler that returns without an answer after its context
// has ended; if it was the deadline that passed, the client gets a 504 as above. A panic is passed on with its own stack,
// and counts as unrecorded, http.ErrAbortHandler like any other; so does runtime.Goexit.
//
// The first flush of an answer, a hijacked connection, a status of 101 and the content type text/event-stream make the call a
// stream, which never loses its place for its age. A place is given back when the handler returns, though a hijacked
// connection may live on: a handler that should hold its place for as long must not return before. A Hijack that reaches
// the connection by Unwrap alone, through another middleware's writer without that method, is not seen.
//
// The handler's ResponseWriter has Flush, Hijack, ReadFrom and Push exactly if the server's has, and Unwrap for
// http.ResponseController. It has no CloseNotify; use the request's context.
//
// # What a trusted peer may say
//
// See Headers. By default nobody is trusted, and the headers mean nothing. With Config.Trust criticality, caller and attempt
// travel on in the request's context (guard.CriticalityFrom and so on), and the time that remains is its deadline.
package httpguard
