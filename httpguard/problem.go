package httpguard

import (
	"net/http"
	"strconv"
	"time"
)

// reasonFailed is the one reason that is no guard.Reason: the call failed before the handler ran, as a drill wanted.
const reasonFailed = "failed"

// problem is the answer to a request that was not served. It says nothing of keys, limits or the error's text: those
// are for logs.
type problem struct {
	status int
	reason string
	after  time.Duration // 0: coming back does not help
}

// write answers r. The request's body is left unread, so that the server does with the connection what it always does then.
func (p problem) write(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	// What was prepared for the answer that will not be.
	for _, name := range [...]string{"Content-Encoding", "Content-Length", "Etag", "Last-Modified"} {
		delete(h, name)
	}
	values := make([]string, 4) // one allocation for all
	set := func(i int, name, value string) {
		values[i] = value
		h[name] = values[i : i+1 : i+1]
	}
	set(0, "Cache-Control", "no-store")
	if p.after > 0 {
		set(1, "Retry-After", strconv.FormatInt(seconds(p.after), 10))
	}
	if p.status == StatusClientClosedRequest {
		delete(h, "Content-Type")
		set(2, "Content-Length", "0")
		w.WriteHeader(p.status)
		return
	}
	body := p.append(make([]byte, 0, 128))
	set(2, "Content-Type", "application/problem+json")
	set(3, "Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(p.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // if the client has gone there is nobody to tell
	}
}

// append writes the document of RFC 9457. Its type is about:blank, which is left out, so that the title is the status's own. Nothing
// in it needs to be escaped.
func (p problem) append(b []byte) []byte {
	b = append(b, `{"title":"`...)
	b = append(b, http.StatusText(p.status)...)
	b = append(b, `","status":`...)
	b = strconv.AppendInt(b, int64(p.status), 10)
	b = append(b, `,"reason":"`...)
	b = append(b, p.reason...)
	b = append(b, '"')
	if p.after > 0 {
		b = append(b, `,"retry_after_ms":`...)
		b = strconv.AppendInt(b, int64((p.after+time.Millisecond-1)/time.Millisecond), 10)
	}
	return append(b, "}\n"...)
}

// seconds rounds up, so that nobody comes back too early.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
