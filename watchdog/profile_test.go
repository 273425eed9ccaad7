package watchdog

import (
	"bytes"
	"fmt"
	"io"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/spillway-go/spillway/internal/goroutine"
)

const sample = "goroutine profile: total 7\n" +
	"4 @ 0x46b42e 0x46a2d5 0x4b1f87 0x46f2a1\n" +
	"#\t0x4b1f86\tmain.work+0x26\t\t/src/shop/work.go:41\n" +
	"\n" +
	"2 @ 0x46b42e 0x4b1f87 0x4b2f87 0x46f2a1\n" +
	"# labels: {\"route\":\"/buy\", \"spillway\":\"17\"}\n" +
	"#\t0x4b1f86\tgithub.com/a/b%2ev3.(*T[...]).Do.func1+0x26\t/src/a b/work.go:41\n" +
	"#\t0x4b2f86\tmain.main+0x1\t\t\t\t\t\tC:/src/work.go:7\n" +
	"\n" +
	"1 @ 0x46b42e 0x4b1f87\n" +
	"# labels: {\"spillway\":\"3\"}\n" +
	"#\t0x46b42d\n" +
	"#\t0x4b1f86\tmain.deep+0x26\t/src/deep.go:1\n" +
	"\n"

// read returns what a profile's records say, one line each.
func read(t testing.TB, profile io.Reader) (lines []string) {
	t.Helper()
	r := profileReader{goexit: 0x46f2a1, visit: func(r *record) {
		var b strings.Builder
		fmt.Fprintf(&b, "%d", r.count)
		if r.badge != 0 {
			fmt.Fprintf(&b, " badge %d", r.badge)
		}
		if !r.whole {
			b.WriteString(" cut")
		}
		for _, f := range r.frames {
			fmt.Fprintf(&b, " [%s|%s|%#x]", f.function, f.place, f.pc)
		}
		lines = append(lines, b.String())
	}}
	if _, err := io.Copy(&r, profile); err != nil {
		t.Fatal(err)
	}
	r.close()
	return lines
}

var sampleRecords = []string{
	"4 [main.work|/src/shop/work.go:41|0x4b1f86]",
	"2 badge 17 [github.com/a/b%2ev3.(*T[...]).Do.func1|/src/a b/work.go:41|0x4b1f86] [main.main|C:/src/work.go:7|0x4b2f86]",
	"1 badge 3 cut [||0x46b42d] [main.deep|/src/deep.go:1|0x4b1f86]",
}

func TestProfileIsRead(t *testing.T) {
	for name, r := range map[string]io.Reader{
		"at once":         strings.NewReader(sample),
		"byte by byte":    iotest.OneByteReader(strings.NewReader(sample)),
		"without its end": strings.NewReader(strings.TrimRight(sample, "\n")),
	} {
		if got := read(t, r); strings.Join(got, "\n") != strings.Join(sampleRecords, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(sampleRecords, "\n"))
		}
	}
}

// What is too long to be kept makes a record that proves nothing, and leaves the next one alone.
func TestOverlongLines(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	for name, lines := range map[string]string{
		"addresses": "1 @ 0x1" + strings.Repeat(" 0x4b1f87", maxLine/8) + " 0x46f2a1\n# labels: {\"spillway\":\"1\"}\n#\t0x1\tmain.f+0x1\t/f.go:1\n\n",
		"labels":    "1 @ 0x1 0x46f2a1\n# labels: {\"a\":\"" + long + "\", \"spillway\":\"1\"}\n#\t0x1\tmain.f+0x1\t/f.go:1\n\n",
		"function":  "1 @ 0x1 0x46f2a1\n# labels: {\"spillway\":\"1\"}\n#\t0x1\t" + long + "+0x1\t/f.go:1\n\n",
	} {
		got := read(t, strings.NewReader(lines+sample))
		if len(got) != 1+len(sampleRecords) || strings.Join(got[1:], "\n") != strings.Join(sampleRecords, "\n") {
			t.Errorf("%s: %d records", name, len(got))
			continue
		}
		if badge, cut := strings.Contains(got[0], " badge 1"), strings.Contains(got[0], " cut"); !cut || badge == (name != "addresses") {
			t.Errorf("%s: the record is %.60q", name, got[0])
		}
	}
}

func TestLabelIsFound(t *testing.T) {
	for list, want := range map[string]uint64{
		`"spillway":"17"}`:                            17,
		`"spillway":"p17.3"}`:                         0,
		`"a":"b", "spillway":"1", "z":"\"}"}`:         1,
		`"a":"\", \"spillway\":\"d5\", \"", "b":"c"}`: 0,
		`"a\\":"x", "spillway":"2"}`:                  2,
		`"spillway":"1", "spillway":"2"}`:             0,
		`"spillway":"x1"}`:                            0,
		`"spillway":"d"}`:                             0,
		`"spillway":"1.2"}`:                           0,
		`"spillway":"p1"}`:                            0,
		`"spillway":"p1."}`:                           0,
		`"spillway":"-1"}`:                            0,
		`"spillway":"99999999999999999999"}`:          0,
		`"Spillway":"d1"}`:                            0,
		`"spillway":"1"`:                              0,
		`"spillway":"1"} `:                            0,
		`"spillway":"1",}`:                            0,
		`"spillway"`:                                  0,
		`}`:                                           0,
		``:                                            0,
		`"spillway":"1", "b":"unterminated`:           0,
		"\"spillway\":\"3\", \"b\":\"tab\\tin it\"}":  3,
	} {
		if got := badgeIn([]byte(list)); got != want {
			t.Errorf("%s is read as %d, want %d", list, got, want)
		}
	}
}

// Whatever labels a user sets, ours is found, and found as it is.
func FuzzLabels(f *testing.F) {
	f.Add("route", "/buy", uint64(17))
	f.Add(`"`, `\`, uint64(0))
	f.Add("spillway\x00", "\n}, \"spillway\":\"1\"", uint64(1<<63))
	f.Fuzz(func(t *testing.T, name, value string, id uint64) {
		theirs := strconv.Quote(name) + ":" + strconv.Quote(value)
		ours := fmt.Sprintf("%q:%q", goroutine.BadgeLabel, strconv.FormatUint(id, 10))
		want := id
		if name == goroutine.BadgeLabel {
			want = 0
		}
		for _, list := range []string{theirs + ", " + ours + "}", ours + ", " + theirs + "}"} {
			if got := badgeIn([]byte(list)); got != want {
				t.Errorf("%s is read as %v", list, got)
			}
		}
		if got := badgeIn([]byte(theirs + "}")); name != goroutine.BadgeLabel && got != 0 {
			t.Errorf("%s is read as ours: %v", theirs, got)
		}
	})
}

// Whatever comes, in whatever pieces, the reader says the same and keeps little.
func FuzzProfile(f *testing.F) {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		f.Fatal(err)
	}
	f.Add(profile.Bytes(), 7)
	f.Add([]byte(sample), 3)
	f.Add([]byte("#\n#\t\n1 @\n# labels: {\n\n0 @ 0x1\n"), 1)
	f.Fuzz(func(t *testing.T, profile []byte, piece int) {
		piece = 1 + int(uint(piece)%100)
		var got []string
		r := profileReader{goexit: 0x46f2a1}
		r.visit = func(rec *record) {
			if rec.count < 1 || len(r.line) > maxLine {
				t.Errorf("count %d, a line of %d bytes", rec.count, len(r.line))
			}
			got = append(got, fmt.Sprint(rec.count, rec.badge, rec.whole, len(rec.frames)))
			for _, s := range rec.frames {
				got = append(got, string(s.function)+string(s.place))
			}
		}
		for rest := profile; len(rest) > 0; {
			n := min(piece, len(rest))
			if _, err := r.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		r.close()
		pieces := got
		got = nil
		r = profileReader{goexit: 0x46f2a1, visit: r.visit}
		if _, err := r.Write(profile); err != nil {
			t.Fatal(err)
		}
		r.close()
		if strings.Join(got, "\n") != strings.Join(pieces, "\n") {
			t.Errorf("in pieces of %d:\n%q\nat once:\n%q", piece, pieces, got)
		}
	})
}

// The profile of this build has the form that the reader knows.
func TestProfileOfThisBuild(t *testing.T) {
	NeedsBadges(t)
	leave, in := make(chan struct{}), make(chan uint64)
	done := make(chan error)
	go func() {
		me := goroutine.ID()
		badge := goroutine.Wear(me)
		defer badge.Off()
		done <- goroutine.Run(func() error { in <- me; <-leave; return nil })
	}()
	want := <-in
	found := 0
	r := profileReader{goexit: uint64(goexit()), visit: func(r *record) {
		if r.badge == want {
			found++
			if !r.whole || r.count != 1 || len(r.frames) < 3 || runs(r.frames) != 1 {
				t.Errorf("%+v", r)
			}
		}
	}}
	if err := pprof.Lookup("goroutine").WriteTo(&r, 1); err != nil {
		t.Fatal(err)
	}
	r.close()
	close(leave)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if found != 1 {
		t.Errorf("%d records of the goroutine", found)
	}
}
