package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMarkdown(t *testing.T) {
	r := sample()
	r.judge()
	var b strings.Builder
	if err := r.markdown(&b); err != nil {
		t.Fatal(err)
	}
	out := b.String()
	for _, want := range []string{
		"| admitted | x channel | 95 % | ns | ns, 2 goroutines | ns, 64 | allocs | bytes |\n",
		"| buffered channel, pair | 1.00 | 0.990 .. 1.01 | 50.0 | 55.0 (1.00) | 60.0 (1.00) | 0 | 0 |\n",
		"| **spillway: g.Do** | 1.50 | 1.48 .. 1.52 | 75.0 | 82.5 (1.50) | 90.0 (1.50) | 0 | 0 |\n",
		"| peer <of> & \"others\" | 320 | 317 .. 323 | 16000 | 17600 (320) | 19200 (320) | 13 | 384 |\n",
		"\n| refused |", "| g.Do / channel pair | 1.50 | 1.48 .. 1.52 | 2.00 | met |\n",
		"- spillway: g.Do: ours\n", "Versions: a.org/a v1.0.0, b.org/b v2.0.0.\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for i, line := range strings.Split(out, "\n") {
		if n := strings.Count(line, "|"); n != 0 && n != 9 && n != 6 {
			t.Errorf("line %d has %d bars: %s", i+1, n, line)
		}
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 0.1234: "0.123", 1.005: "1.00", -12.34: "-12.3", 99.9: "99.9", 16000: "16000", 0.9996: "1.00", 9.999: "10.0", 0.0421: "0.042"} {
		if got := number(x); got != want {
			t.Errorf("number(%v) is %q, want %q", x, got, want)
		}
	}
}

func TestPictures(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "img")
	if err := sample().pictures(dir); err != nil {
		t.Fatal(err)
	}
	for _, p := range palettes {
		b, err := os.ReadFile(filepath.Join(dir, p.file))
		if err != nil {
			t.Fatal(err)
		}
		dots, texts := 0, ""
		d := xml.NewDecoder(bytes.NewReader(b))
		for {
			tok, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s is not well-formed: %v", p.file, err)
			}
			switch tok := tok.(type) {
			case xml.StartElement:
				if tok.Name.Local == "circle" {
					dots++
				}
			case xml.CharData:
				texts += string(tok)
			}
		}
		if dots != 4 { // all rows but A against A
			t.Errorf("%s has %d dots, want 4", p.file, dots)
		}
		if !strings.Contains(texts, `peer <of> & "others"`) {
			t.Errorf("%s does not name every row", p.file)
		}
	}
}

func TestAxisHoldsEverything(t *testing.T) {
	r := sample()
	least, most := axis(r.Rows)
	if least >= 0.25 || most <= 320 {
		t.Errorf("axis %v .. %v does not hold 0.25 .. 320", least, most)
	}
	c := &canvas{least: least, most: most}
	if x := c.x(least); x != plotLeft {
		t.Errorf("the least is drawn at %v, want %v", x, plotLeft)
	}
	if x := c.x(most); x != plotRight {
		t.Errorf("the most is drawn at %v, want %v", x, plotRight)
	}
	got := ticks(least, most)
	want := []float64{0.3, 1, 3, 10, 30, 100, 300}
	if len(got) != len(want) {
		t.Fatalf("ticks %v, want %v", got, want)
	}
	for i := range want {
		if label(got[i]) != label(want[i]) {
			t.Errorf("ticks %v, want %v", got, want)
		}
	}
}
