package main

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// ants has started two goroutines before main; they stay.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

func TestPool(t *testing.T) {
	var out bytes.Buffer
	s, err := run(t.Context(), &out)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", out.String())
	// However the machine is doing: what was accepted is stored, whoever left, but for the broken one.
	if s.stored != len(s.accepted)-1 || s.made+s.left+s.failed != len(s.accepted) {
		t.Errorf("%d thumbnails, %d in time, %d later, %d broken, of %d", s.stored, s.made, s.left, s.failed, len(s.accepted))
	}
	if s.most > max(1, runtime.GOMAXPROCS(0)-1) || s.working != 0 {
		t.Errorf("%d worked at once, %d still do", s.most, s.working)
	}
	if !strings.Contains(out.String(), "told:     photos.Thumbnail.Make: photo 1 ends") {
		t.Error("nobody was told of the broken photo")
	}
	if len(s.refusals) == 0 {
		t.Error("three times too many uploads, and none was refused")
	}
	for line := range strings.SplitSeq(out.String(), "\n") {
		if len(line) > 79 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

func TestShrink(t *testing.T) {
	small := shrink(photo(0), 16)
	if size := small.Bounds().Size(); size.X != width/16 || size.Y != height/16 {
		t.Errorf("the size is %v", size)
	}
	for _, x := range []int{0, 7, width/16 - 1} { // green grows by one a line: 0 to 15 have the mean 7
		if c := small.RGBAAt(x, 0); c.R != 0 || c.G != 7 || c.A != 255 {
			t.Errorf("the colour at %d is %v", x, c)
		}
	}
}
