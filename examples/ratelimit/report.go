package main

import (
	"fmt"
	"html"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

func table(w io.Writer, arrivals []time.Duration, all []*contestant) error {
	fmt.Fprintf(w, "%d requests in %v, the busiest second has %d. Every limit is %d a second.\n\n",
		len(arrivals), duration, most(arrivals, time.Second), limit)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tpassed\trefused\tin any 1 s\tin any 100 ms\tin any 10 ms\tlongest wait\t")
	for _, c := range all {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%v\t\n", c.name, len(c.left), c.refused,
			most(c.left, time.Second), most(c.left, 100*time.Millisecond), most(c.left, 10*time.Millisecond), c.waited.Round(time.Millisecond))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, c := range all {
		fmt.Fprintf(w, "%-14s  %s\n", c.name, c.flaw)
	}
	return nil
}

// The picture: a panel for each limit, in it a bar for every 50 ms, and a line for what the last second had let through.
const (
	step      = 50 * time.Millisecond
	barWidth  = 7
	panelTall = 96
	panelStep = 150
	left      = 44
	top       = 66
	scale     = 100 // requests in a step that reach the top; more are cut
	lineScale = 200 // requests in a second that reach the top
)

const style = `
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600; font-size: 14px } .small { font-size: 11px; fill: #57606a }
.came { fill: #d0d7de } .passed { fill: #1a7f37 } .axis { stroke: #8c959f } .limit { stroke: #8c959f; stroke-dasharray: 4 3 } .second { stroke: #cf222e; stroke-width: 1.5; fill: none }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .small { fill: #9198a1 }
  .came { fill: #3d444d } .passed { fill: #3fb950 } .axis { stroke: #656c76 } .limit { stroke: #656c76 } .second { stroke: #f85149 }
}`

// picture draws what came and what passed as SVG, for light and dark pages.
func picture(w io.Writer, arrivals []time.Duration, all []*contestant) error {
	var b strings.Builder
	wide := left + int(duration/step)*barWidth + 20
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n<style>%s\n</style>\n",
		wide, top+len(all)*panelStep+6, "The same traffic through four rate limits of 100 a second", style)
	fmt.Fprintf(&b, "<text class=\"title\" x=\"%d\" y=\"22\">The same traffic through four limits of %d a second</text>\n", left, limit)
	fmt.Fprintf(&b, "<rect class=\"came\" x=\"%d\" y=\"32\" width=\"12\" height=\"12\"/><text class=\"small\" x=\"%d\" y=\"42\">came in 50 ms</text>\n", left, left+18)
	fmt.Fprintf(&b, "<rect class=\"passed\" x=\"%d\" y=\"32\" width=\"12\" height=\"12\"/><text class=\"small\" x=\"%d\" y=\"42\">went ahead in 50 ms</text>\n", left+110, left+128)
	fmt.Fprintf(&b, "<path class=\"second\" d=\"M%d 38h18\"/><text class=\"small\" x=\"%d\" y=\"42\">went ahead in the second before; dashed: %d</text>\n",
		left+256, left+280, limit)
	for i, c := range all {
		panel(&b, top+i*panelStep, arrivals, c)
	}
	fmt.Fprintln(&b, "</svg>")
	_, err := io.WriteString(w, b.String())
	return err
}

func panel(b *strings.Builder, y int, arrivals []time.Duration, c *contestant) {
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\"><tspan class=\"title\">%s</tspan>: %s</text>\n", left, y+8, c.name, html.EscapeString(c.flaw))
	floor := y + 18 + panelTall
	bars(b, "came", floor, barWidth-1, arrivals)
	bars(b, "passed", floor, barWidth-1, c.left)
	end := left + int(duration/step)*barWidth
	fmt.Fprintf(b, "<path class=\"axis\" d=\"M%d %dH%d\"/><path class=\"limit\" d=\"M%d %dH%d\"/>\n",
		left, floor, end, left, floor-panelTall*limit/lineScale, end)
	fmt.Fprintf(b, "<path class=\"second\" d=\"M%s\"/>\n", line(floor, c.left))
	for s := range int(duration/time.Second) + 1 {
		fmt.Fprintf(b, "<text class=\"small\" text-anchor=\"middle\" x=\"%d\" y=\"%d\">%d s</text>\n", left+s*int(time.Second/step)*barWidth, floor+14, s)
	}
	for _, n := range []int{limit, lineScale} {
		fmt.Fprintf(b, "<text class=\"small\" text-anchor=\"end\" x=\"%d\" y=\"%d\">%d</text>\n", left-6, floor-panelTall*n/lineScale+4, n)
	}
	fmt.Fprintf(b, "<text class=\"small\" text-anchor=\"end\" x=\"%d\" y=\"%d\">at most %d in a second, %d in 10 ms; longest wait %d ms</text>\n",
		end, floor-panelTall+4, most(c.left, time.Second), most(c.left, 10*time.Millisecond), c.waited.Milliseconds())
}

// line is what went ahead in the second before each moment.
func line(floor int, at []time.Duration) string {
	var points []string
	for t := time.Duration(0); t <= duration; t += step / 2 {
		n := 0
		for _, a := range at {
			if a <= t && a > t-time.Second {
				n++
			}
		}
		points = append(points, fmt.Sprintf("%.1f %.1f", left+float64(t)/float64(step)*barWidth, float64(floor)-panelTall*float64(n)/lineScale))
	}
	return strings.Join(points, "L")
}

func bars(b *strings.Builder, class string, floor, width int, at []time.Duration) {
	counts := make([]int, duration/step)
	for _, t := range at {
		if i := int(t / step); i < len(counts) { // the last may leave after the end
			counts[i]++
		}
	}
	var d strings.Builder
	for i, n := range counts {
		if n > 0 {
			tall := float64(panelTall) * min(float64(n)/scale, 1)
			fmt.Fprintf(&d, "M%d %dv-%.1fh%dv%.1fz", left+i*barWidth, floor, tall, width, tall)
		}
	}
	fmt.Fprintf(b, "<path class=\"%s\" d=\"%s\"/>\n", class, d.String())
}
