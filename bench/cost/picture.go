package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/bench/internal/contender"
)

// palette is one of the two looks of the picture.
type palette struct {
	file                                 string
	paper, ink, faint, grid, peer, spill string
}

var palettes = []palette{
	{"cost-light.svg", "#ffffff", "#1f2328", "#59636e", "#e4e8ec", "#8c959f", "#0969da"},
	{"cost-dark.svg", "#0d1117", "#e6edf3", "#9198a1", "#262c34", "#7d8590", "#4493f8"},
}

// pictures writes the report as one picture for light pages and one for dark ones.
func (r *report) pictures(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, p := range palettes {
		if err := os.WriteFile(filepath.Join(dir, p.file), r.svg(p), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Measures of the picture, in pixels. The axis is logarithmic, as the dearest costs hundreds of times the cheapest; a
// stem leads from the channel's own cost to each dot, so what lies left of the line is cheaper than a channel.
const (
	width      = 860
	margin     = 24
	plotLeft   = 292.0
	plotRight  = 648.0
	rowHeight  = 23
	ratioRight = 716
	nsRight    = 774
	allocRight = width - margin
)

// canvas collects SVG elements.
type canvas struct {
	bytes.Buffer
	least, most float64 // ends of the axis
}

func (c *canvas) x(ratio float64) float64 {
	at := math.Log(ratio/c.least) / math.Log(c.most/c.least)
	return plotLeft + at*(plotRight-plotLeft)
}

func (c *canvas) text(class string, x, y float64, s string) {
	fmt.Fprintf(c, "<text class=%q x=\"%.1f\" y=\"%.1f\">%s</text>\n", class, x, y, html.EscapeString(s))
}

// svg draws the report.
func (r *report) svg(p palette) []byte {
	admitted, refused := r.drawn(false), r.drawn(true)
	c := &canvas{}
	c.least, c.most = axis(slices.Concat(admitted, refused))

	const top = 108
	height := top + rowHeight*(len(admitted)+len(refused)) + 80
	if len(refused) > 0 {
		height += 34
	}
	fmt.Fprintf(c, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\">\n",
		width, height, width, height)
	fmt.Fprintln(c, "<title>What guarding one call costs, in units of a buffered channel's send and receive</title>")
	fmt.Fprintf(c, `<style>
text{font:13px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:%[1]s}
.title{font-size:17px;font-weight:600}.faint{fill:%[2]s}.small{font-size:11.5px;fill:%[2]s}
.part{font-weight:600;fill:%[2]s}.ours{font-weight:600}
.num{text-anchor:end;font-variant-numeric:tabular-nums}.head{text-anchor:end;font-size:11.5px;fill:%[2]s}
.tick{text-anchor:middle;font-size:11.5px;fill:%[2]s}
</style>
`, p.ink, p.faint)
	fmt.Fprintf(c, "<rect width=\"%d\" height=\"%d\" rx=\"6\" fill=%q/>\n", width, height, p.paper)
	c.text("title", margin, 36, "What guarding one call costs")
	c.text("faint", margin, 58, "One goroutine, in units of a buffered channel's send and receive; logarithmic, less is better")

	y := float64(top)
	c.text("part", margin, y-12, "admitted")
	c.text("head", ratioRight, y-12, "x channel")
	c.text("head", nsRight, y-12, "ns")
	c.text("head", allocRight, y-12, "allocs")
	y = c.rows(p, admitted, y)
	if len(refused) > 0 {
		y += 34
		c.text("part", margin, y-12, "refused")
		y = c.rows(p, refused, y)
	}
	for _, t := range ticks(c.least, c.most) {
		c.text("tick", c.x(t), y+18, label(t))
	}
	c.text("small", margin, y+60, "Breakers and shedders hold no bound; they stand in the same place of a program. Several goroutines: see the table.")
	c.text("small", margin, y+44, r.Machine.Hardware()+"; median of "+strconv.Itoa(r.Rounds)+" paired rounds, all in one run")
	fmt.Fprintln(c, "</svg>")
	return c.Bytes()
}

// rows draws one part below y, its grid first, and returns where it ends.
func (c *canvas) rows(p palette, rows []row, y float64) float64 {
	bottom := y + float64(rowHeight*len(rows))
	for _, t := range ticks(c.least, c.most) {
		colour, w := p.grid, 1
		if t == 1 {
			colour, w = p.peer, 2
		}
		fmt.Fprintf(c, "<path d=\"M%.1f %.1fV%.1f\" stroke=%q stroke-width=\"%d\"/>\n", c.x(t), y-4, bottom, colour, w)
	}
	for _, row := range rows {
		middle := y + rowHeight/2
		class, colour := "", p.peer
		if strings.HasPrefix(row.Name, "spillway") {
			class, colour = "ours", p.spill
		}
		ratio := row.Runs[0].Ratio.Median
		fmt.Fprintf(c, "<path d=\"M%.1f %.1fH%.1f\" stroke=%q stroke-width=\"3\"/>\n", c.x(1), middle, c.x(ratio), colour)
		fmt.Fprintf(c, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=%q/>\n", c.x(ratio), middle, colour)
		c.text(class, margin, middle+4.5, row.Name)
		c.text("num "+class, ratioRight, middle+4.5, number(ratio))
		c.text("num "+class, nsRight, middle+4.5, number(row.Runs[0].Nanoseconds.Median))
		c.text("num "+class, allocRight, middle+4.5, count(row.Allocs))
		y += rowHeight
	}
	return bottom
}

// drawn returns the rows of one part, without A against A, which is about the method.
func (r *report) drawn(refused bool) []row {
	var out []row
	for _, row := range r.Rows {
		if row.Refuses == refused && row.Name != contender.ChannelAgain {
			out = append(out, row)
		}
	}
	return out
}

// axis returns the ends of an axis that holds every row and the channel's 1.
func axis(rows []row) (least, most float64) {
	least, most = 0.8, 1.25
	for _, row := range rows {
		least = min(least, row.Runs[0].Ratio.Median)
		most = max(most, row.Runs[0].Ratio.Median)
	}
	return least / 1.25, most * 1.25
}

// ticks returns the values 1, 10, 100 ... and their inverses between the ends, and those halfway (3, 30 ...) too.
func ticks(least, most float64) []float64 {
	var out []float64
	for e := math.Floor(math.Log10(least)); e <= math.Log10(most); e++ {
		for _, m := range []float64{1, 3} {
			if t := m * math.Pow(10, e); t >= least && t <= most {
				out = append(out, t)
			}
		}
	}
	return out
}

func label(t float64) string { return fmt.Sprintf("%gx", math.Round(t*1000)/1000) }
