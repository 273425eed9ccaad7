package httpguard

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/internal/goroutine"
)

// writer sees the status of an answer and whether the answer is a stream. It is the ResponseWriter that a handler gets, in the
// shape that wrap gives it.
//
// It is made anew for each request and never used again: a handler may have handed it to a goroutine that writes
// after the request, and such a write must not land in another request's answer. Like the server's own writer it is for one
// goroutine at a time.
type writer struct {
	http.ResponseWriter
	guard     *guard.Guard // for Pin; nil once the handler has returned
	goroutine uint32       // that serves the call, the low half of its number: with all of it the writer would take half as much memory again
	status    int16        // of the answer, 0 before there is one
	streams   bool         // the call is pinned
	hijacked  bool
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(code int) {
	if code >= 200 || code == http.StatusSwitchingProtocols { // else there is more to come
		w.begin(code)
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *writer) Write(b []byte) (int, error) {
	w.begin(http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// WriteString is there always, since one that writes bytes is as good as none.
func (w *writer) WriteString(s string) (int, error) {
	w.begin(http.StatusOK)
	return io.WriteString(w.ResponseWriter, s)
}

// FlushError is there always, and by itself promises nothing: http.ResponseController calls it, and finds the writer
// further in that can flush, if any.
func (w *writer) FlushError() error {
	w.stream() // before the client can see it
	err := http.NewResponseController(w.ResponseWriter).Flush()
	if !errors.Is(err, http.ErrNotSupported) {
		w.begin(http.StatusOK)
	}
	return err
}

// begin notes the status of the answer, once.
func (w *writer) begin(code int) {
	if w.status == 0 {
		w.status = int16(code) // of three digits
		w.look()
	}
}

// look finds out from the answer's beginning whether it is a stream.
func (w *writer) look() {
	if w.status == http.StatusSwitchingProtocols {
		w.stream()
	} else if v := w.Header()["Content-Type"]; len(v) > 0 && isEventStream(v[0]) {
		w.stream()
	}
}

func isEventStream(contentType string) bool {
	const want = "text/event-stream"
	return len(contentType) >= len(want) && strings.EqualFold(contentType[:len(want)], want)
}

// stream pins the call: the age of a stream says nothing, so that it must not lose its place for it.
func (w *writer) stream() {
	if !w.streams {
		w.streams = true
		if w.guard != nil {
			w.guard.Pin(whole(w.goroutine, goroutine.ID()))
		}
	}
}

// whole returns the number whose low half is known: the nearest to that of another goroutine of this time.
func whole(low uint32, near uint64) uint64 { return near + uint64(int64(int32(low-uint32(near)))) }

// end is called when the handler has returned, and says how the call ended. A writer that outlives its request must not pin another
// call.
func (w *writer) end(ctx context.Context) error {
	w.guard = nil
	switch {
	case w.hijacked:
		return nil
	case w.status >= 500:
		return errServer
	case w.status == 0:
		return ctx.Err() // a handler that gave up with its time is no success
	default:
		return nil
	}
}

// What follows is called by the shapes that have the ability.

func (w *writer) hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.hijacked = true
		w.stream()
	}
	return conn, rw, err
}

func (w *writer) readFrom(src io.Reader) (int64, error) {
	if w.status == 0 {
		w.look()
	}
	n, err := w.ResponseWriter.(io.ReaderFrom).ReadFrom(src) //nolint:errcheck,forcetypeassert // or else wrap had chosen another shape
	if n > 0 {
		w.begin(http.StatusOK) // of nothing no answer may have begun
	}
	return n, err
}

func (w *writer) push(target string, opts *http.PushOptions) error {
	return w.ResponseWriter.(http.Pusher).Push(target, opts) //nolint:errcheck,forcetypeassert // or else wrap had chosen another shape
}
