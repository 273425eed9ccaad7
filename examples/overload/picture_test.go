package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestPictureShowsBothSidesOfEveryPhase(t *testing.T) {
	script := newScript(20*time.Second, 200, 100, 10, 1)
	report := newReport(script)
	for _, r := range played(script) {
		report.add(script, r)
	}
	var buf bytes.Buffer
	if err := report.writePicture(&buf); err != nil {
		t.Fatal(err)
	}
	bars := map[string]int{}
	var texts strings.Builder
	for dec := xml.NewDecoder(&buf); ; {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			if tok.Name.Local == "rect" {
				bars[tok.Attr[0].Value]++
			}
		case xml.CharData:
			texts.Write(tok)
			texts.WriteByte('\n')
		}
	}
	// Five phases, two endpoints, and the legend.
	if bars["unguarded"] != 11 || bars["guarded"] != 11 {
		t.Errorf("rectangles by side: %v, want 11 each", bars)
	}
	for _, p := range script.Phases {
		if strings.Count(texts.String(), "\n"+p.Name+"\n") != 2 {
			t.Errorf("phase %q is not named once in each panel", p.Name)
		}
	}
}

func TestPictureNeedsBothSides(t *testing.T) {
	_, err := parse([]string{"-picture", "x.svg", "-side", "guarded"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "-picture: shows both sides") {
		t.Errorf("error %v", err)
	}
}
