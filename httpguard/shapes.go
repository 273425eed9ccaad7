package httpguard

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"unsafe"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/internal/goroutine"
)

// What a ResponseWriter may do beyond its interface. Handlers find out by type assertions, so that a wrapped writer must have
// the methods of the one inside and no others: a Hijack that always fails would make a handler try it.
const (
	canFlush = 1 << iota
	canHijack
	canReadFrom
	canPush
)

func abilities(w http.ResponseWriter) (set int) {
	if _, ok := w.(http.Flusher); ok {
		set |= canFlush
	}
	if _, ok := w.(http.Hijacker); ok {
		set |= canHijack
	}
	if _, ok := w.(io.ReaderFrom); ok {
		set |= canReadFrom
	}
	if _, ok := w.(http.Pusher); ok {
		set |= canPush
	}
	return set
}

// One type for each set of abilities, named by their letters; each adds one to a smaller set.
type (
	writerF    struct{ writer }
	writerH    struct{ writer }
	writerFH   struct{ writerF }
	writerR    struct{ writer }
	writerFR   struct{ writerF }
	writerHR   struct{ writerH }
	writerFHR  struct{ writerFH }
	writerP    struct{ writer }
	writerFP   struct{ writerF }
	writerHP   struct{ writerH }
	writerFHP  struct{ writerFH }
	writerRP   struct{ writerR }
	writerFRP  struct{ writerFR }
	writerHRP  struct{ writerHR }
	writerFHRP struct{ writerFHR }
)

func (w *writerF) Flush()                                           { _ = w.FlushError() }
func (w *writerH) Hijack() (net.Conn, *bufio.ReadWriter, error)     { return w.hijack() }
func (w *writerFH) Hijack() (net.Conn, *bufio.ReadWriter, error)    { return w.hijack() }
func (w *writerR) ReadFrom(src io.Reader) (int64, error)            { return w.readFrom(src) }
func (w *writerFR) ReadFrom(src io.Reader) (int64, error)           { return w.readFrom(src) }
func (w *writerHR) ReadFrom(src io.Reader) (int64, error)           { return w.readFrom(src) }
func (w *writerFHR) ReadFrom(src io.Reader) (int64, error)          { return w.readFrom(src) }
func (w *writerP) Push(target string, o *http.PushOptions) error    { return w.push(target, o) }
func (w *writerFP) Push(target string, o *http.PushOptions) error   { return w.push(target, o) }
func (w *writerHP) Push(target string, o *http.PushOptions) error   { return w.push(target, o) }
func (w *writerFHP) Push(target string, o *http.PushOptions) error  { return w.push(target, o) }
func (w *writerRP) Push(target string, o *http.PushOptions) error   { return w.push(target, o) }
func (w *writerFRP) Push(target string, o *http.PushOptions) error  { return w.push(target, o) }
func (w *writerHRP) Push(target string, o *http.PushOptions) error  { return w.push(target, o) }
func (w *writerFHRP) Push(target string, o *http.PushOptions) error { return w.push(target, o) }

// shape remembers the abilities of the writers that came last: a server's are all of one type. It holds the address of their method table,
// shifted to make room for the abilities.
type shape struct{ last atomic.Uint64 }

const abilityBits = 4

func (s *shape) of(w http.ResponseWriter) int {
	table := uint64((*[2]uintptr)(unsafe.Pointer(&w))[0])
	if last := s.last.Load(); last>>abilityBits == table {
		return int(last & (1<<abilityBits - 1))
	}
	set := abilities(w)
	s.last.Store(table<<abilityBits | uint64(set))
	return set
}

// wrap returns what the handler gets for a writer of these abilities, and the writer inside of it.
func wrap(inner http.ResponseWriter, abilities int, g *guard.Guard) (http.ResponseWriter, *writer) {
	switch abilities {
	case canFlush:
		x := new(writerF)
		return x, x.set(inner, g)
	case canHijack:
		x := new(writerH)
		return x, x.set(inner, g)
	case canFlush | canHijack:
		x := new(writerFH)
		return x, x.set(inner, g)
	case canReadFrom:
		x := new(writerR)
		return x, x.set(inner, g)
	case canFlush | canReadFrom:
		x := new(writerFR)
		return x, x.set(inner, g)
	case canHijack | canReadFrom:
		x := new(writerHR)
		return x, x.set(inner, g)
	case canFlush | canHijack | canReadFrom:
		x := new(writerFHR)
		return x, x.set(inner, g)
	case canPush:
		x := new(writerP)
		return x, x.set(inner, g)
	case canFlush | canPush:
		x := new(writerFP)
		return x, x.set(inner, g)
	case canHijack | canPush:
		x := new(writerHP)
		return x, x.set(inner, g)
	case canFlush | canHijack | canPush:
		x := new(writerFHP)
		return x, x.set(inner, g)
	case canReadFrom | canPush:
		x := new(writerRP)
		return x, x.set(inner, g)
	case canFlush | canReadFrom | canPush:
		x := new(writerFRP)
		return x, x.set(inner, g)
	case canHijack | canReadFrom | canPush:
		x := new(writerHRP)
		return x, x.set(inner, g)
	case canFlush | canHijack | canReadFrom | canPush:
		x := new(writerFHRP)
		return x, x.set(inner, g)
	default:
		x := new(writer)
		return x, x.set(inner, g)
	}
}

func (w *writer) set(inner http.ResponseWriter, g *guard.Guard) *writer {
	w.ResponseWriter, w.guard, w.goroutine = inner, g, uint32(goroutine.ID())
	return w
}
