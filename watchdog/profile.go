package watchdog

import (
	"bytes"
	"strconv"

	"github.com/spillway-go/spillway/internal/goroutine"
)

// A goroutine profile in its text form (runtime/pprof, debug=1) is a sequence of records, one for each kind of goroutine:
//
//	2 @ 0x46b42e 0x46a2d5 0x4b1f87 0x46f2a1
//	# labels: {"route":"/buy", "spillway":"17"}
//	#	0x4b1f86	main.work+0x26	/src/shop/work.go:41
//	<empty line>
//
// The addresses are all frames, innermost first, ending in runtime.goexit unless the profile cut the stack at 128 frames. The lines of frames
// leave out the runtime's at the inner end.

// record is one kind of goroutine: how many there are, and what they share.
type record struct {
	count int
	badge uint64 // the goroutine that our label tells; 0 without one
	whole bool   // the stack is there to its outer end
	// frames, innermost first. They live until the next record.
	frames []frame
}

type frame struct {
	function []byte // "main.work", without the offset
	place    []byte // "/src/shop/work.go:41"
	pc       uint64
}

// maxLine bounds a line's buffer. What is longer was no line that anybody can use.
const maxLine = 64 << 10

// profileReader is the io.Writer that a profile is written to. It keeps one record at a time, and hands each to visit.
type profileReader struct {
	goexit uint64 // the address that a whole stack ends with
	visit  func(*record)

	line   []byte // the beginning of a line that is not complete yet
	long   bool   // the line is longer than maxLine: the rest is dropped
	inside bool   // in a record
	text   []byte // what the frames of the record refer to
	ends   []ends
	rec    record
}

// ends are where a frame's texts lie in text.
type ends struct {
	start, function, place int
	pc                     uint64
}

// Write takes the next part of the profile. It never fails.
func (r *profileReader) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			r.keep(p)
			return n, nil
		}
		line := p[:i]
		p = p[i+1:]
		if len(r.line) > 0 || len(line) > maxLine {
			r.keep(line)
			line = r.line
		}
		r.read(line)
		r.line, r.long = r.line[:0], false
	}
}

func (r *profileReader) keep(part []byte) {
	if room := maxLine - len(r.line); len(part) > room {
		r.long = true
		part = part[:room]
	}
	r.line = append(r.line, part...)
}

// close ends the last record, in case no empty line did.
func (r *profileReader) close() {
	if len(r.line) > 0 {
		r.read(r.line)
	}
	r.line, r.long = nil, false
	r.finish()
}

func (r *profileReader) read(line []byte) {
	switch {
	case len(line) == 0:
		r.finish()
	case line[0] != '#':
		r.finish()
		r.head(line)
	case !r.inside:
	case r.long: // whatever it was, the record cannot be trusted to show all
		r.rec.whole, r.rec.badge = false, 0
	case bytes.HasPrefix(line, []byte("# labels: {")):
		r.rec.badge = badgeIn(line[len("# labels: {"):])
	default:
		r.frame(line)
	}
}

// head reads "2 @ 0x46b42e 0x46f2a1".
func (r *profileReader) head(line []byte) {
	number, rest, ok := bytes.Cut(line, []byte(" @"))
	count, err := strconv.ParseUint(string(number), 10, 31)
	if !ok || err != nil || count == 0 {
		return // "goroutine profile: total 7"
	}
	last := rest[bytes.LastIndexByte(rest, ' ')+1:]
	r.inside = true
	r.text, r.ends = r.text[:0], r.ends[:0]
	r.rec = record{count: int(count), whole: hex(last) == r.goexit && !r.long, frames: r.rec.frames[:0]}
}

// frame reads "#\t0x4b1f86\tmain.work+0x26\t\t/src/shop/work.go:41". The columns are separated by one tab or more.
func (r *profileReader) frame(line []byte) {
	pc, rest := column(line[1:])
	name, rest := column(rest)
	place, _ := column(rest)
	if len(pc) == 0 {
		return
	}
	if i := bytes.LastIndex(name, []byte("+0x")); i >= 0 {
		name = name[:i]
	}
	start := len(r.text)
	r.text = append(append(r.text, name...), place...)
	r.ends = append(r.ends, ends{start, start + len(name), len(r.text), hex(pc)})
}

func column(line []byte) (first, rest []byte) {
	line = bytes.TrimLeft(line, "\t")
	first, rest, _ = bytes.Cut(line, []byte("\t"))
	return first, rest
}

// hex reads "0x46b42e"; 0 if it is no such number.
func hex(b []byte) uint64 {
	if !bytes.HasPrefix(b, []byte("0x")) || len(b) > 18 {
		return 0
	}
	n := uint64(0)
	for _, c := range b[2:] {
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | uint64(c-'a'+10)
		default:
			return 0
		}
	}
	return n
}

func (r *profileReader) finish() {
	if !r.inside {
		return
	}
	r.inside = false
	for _, e := range r.ends {
		r.rec.frames = append(r.rec.frames, frame{r.text[e.start:e.function], r.text[e.function:e.place], e.pc})
	}
	r.visit(&r.rec)
}

// badgeIn finds our label among `"route":"/buy", "spillway":"17"}`. Quotes inside a name or a value are escaped there. Two labels
// of our name are none: one of them is somebody else's.
func badgeIn(list []byte) uint64 {
	var found uint64
	for n := 0; ; {
		name, rest, ok := quoted(list)
		if !ok || len(rest) == 0 || rest[0] != ':' {
			return 0
		}
		value, rest, ok := quoted(rest[1:])
		if !ok {
			return 0
		}
		if string(name) == goroutine.BadgeLabel {
			if n++; n > 1 {
				return 0
			}
			var err error
			if found, err = strconv.ParseUint(string(value), 10, 64); err != nil {
				return 0
			}
		}
		if !bytes.HasPrefix(rest, []byte(", ")) {
			if string(rest) != "}" {
				return 0
			}
			return found
		}
		list = rest[2:]
	}
}

// quoted cuts a quoted string off, without looking into its escapes.
func quoted(b []byte) (inner, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return nil, nil, false
	}
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return b[1:i], b[i+1:], true
		}
	}
	return nil, nil, false
}
