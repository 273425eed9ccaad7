package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"time"
)

// Measures of the picture, in pixels.
const (
	panelWidth  = 400.0
	panelHeight = 210.0
	panelLeft   = 56.0
	panelGap    = 52.0
	panelTop    = 92.0
	pictureTall = 372
	most        = 2.0 // a line that goes higher leaves the panel
)

// lines are the rules that are drawn, by their place in rules.
var lines = []struct {
	rule        int
	class, name string
}{
	{1, "a", "runnable goroutines"},
	{2, "b", "CPU of quota or of own CPUs"},
	{7, "c", "host CPU by gopsutil"},
	{8, "d", "load1"},
	{9, "e", "CPU, averaged with 0.95"},
}

// svg draws one overload and one steady load: each signal in units of its own limit, so that above the line is "not normal".
func (r *report) svg() []byte {
	quota := 0.0
	if r.NoQuota == "" {
		quota = halfACPU
	}
	var b bytes.Buffer
	wide := panelLeft + 2*panelWidth + panelGap + 24
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" role="img" aria-label="How fast five signals see an overload, and what they say of a busy machine">
<style>
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600; font-size: 14px } .small { font-size: 11px; fill: #57606a }
path { fill: none; stroke-width: 2; stroke-linejoin: round } .axis { stroke: #8c959f; stroke-width: 1 } .limit { stroke: #8c959f; stroke-width: 1; stroke-dasharray: 4 3 }
.a { stroke: #1a7f37 } .b { stroke: #0969da } .c { stroke: #cf222e } .d { stroke: #9a6700 } .e { stroke: #8250df }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .small { fill: #9198a1 } .axis, .limit { stroke: #656c76 }
  .a { stroke: #3fb950 } .b { stroke: #4493f8 } .c { stroke: #f85149 } .d { stroke: #d29922 } .e { stroke: #ab7df8 }
}
</style>
`, wide, pictureTall)
	fmt.Fprintf(&b, "<text class=\"title\" x=\"24\" y=\"28\">Who notices, and when</text>\n")
	x := 24.0
	for _, l := range lines {
		fmt.Fprintf(&b, "<path class=%q d=\"M%.1f 50h18\"/><text x=\"%.1f\" y=\"54\">%s</text>\n", l.class, x, x+24, html.EscapeString(l.name))
		x += 44 + 7.1*float64(len(l.name))
	}
	where := fmt.Sprintf("on %d CPUs", r.Machine.CPUs)
	if quota > 0 {
		where = fmt.Sprintf("with a quota of %v CPU", quota)
	}
	r.panel(&b, panelLeft, loadSpin, quota, "Overload: "+loadSpin+" "+where)
	r.panel(&b, panelLeft+panelWidth+panelGap, loadSteady, quota, "Busy: "+loadSteady+" "+where)
	fmt.Fprintf(&b, "<text class=\"small\" x=\"24\" y=\"%d\">Each signal in units of its own limit: above the dashed line it says &quot;not normal&quot;. One run each.</text>\n",
		pictureTall-28)
	fmt.Fprintf(&b, "<text class=\"small\" x=\"24\" y=\"%d\">%s</text>\n", pictureTall-12, html.EscapeString(r.Machine.String()))
	fmt.Fprintln(&b, "</svg>")
	return b.Bytes()
}

func (r *report) panel(b *bytes.Buffer, left float64, load string, quota float64, title string) {
	fmt.Fprintf(b, "<text class=\"title\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", left, panelTop-10, html.EscapeString(title))
	bottom := panelTop + panelHeight
	y := func(v float64) float64 { return bottom - panelHeight*min(most, max(0, v))/most }
	for _, v := range []float64{0, 1, 2} {
		fmt.Fprintf(b, "<text class=\"small\" text-anchor=\"end\" x=\"%.1f\" y=\"%.1f\">%.0f</text>\n", left-6, y(v)+4, v)
	}
	var t trace
	for _, candidate := range r.Traces {
		if candidate.Job.Load == load && candidate.Job.Quota == quota {
			t = candidate
			break
		}
	}
	const lead = time.Second
	x := func(at time.Duration) float64 {
		return left + panelWidth*float64(at+lead)/float64(t.Job.Lasts+lead)
	}
	fmt.Fprintf(b, "<path class=\"axis\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n", left, panelTop, bottom, left+panelWidth)
	fmt.Fprintf(b, "<path class=\"limit\" d=\"M%.1f %.1fH%.1f\"/>\n", left, y(1), left+panelWidth)
	if len(t.Looks) == 0 {
		return
	}
	fmt.Fprintf(b, "<path class=\"axis\" d=\"M%.1f %.1fV%.1f\"/>\n", x(0), panelTop, bottom)
	step := time.Second
	if t.Job.Lasts > 6*time.Second {
		step = 2 * time.Second
	}
	for at := time.Duration(0); at <= t.Job.Lasts; at += step {
		fmt.Fprintf(b, "<text class=\"small\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%.0f s</text>\n", x(at), bottom+16, at.Seconds())
	}
	all := rules(r.Machine.CPUs)
	for _, l := range lines {
		fmt.Fprintf(b, "<path class=%q d=%q/>\n", l.class, curve(t, all[l.rule].value(t.Looks), x, y, lead))
	}
}

// curve draws steps: a value holds until the next sample. Values that are not known yet leave a gap.
func curve(t trace, values []float64, x func(time.Duration) float64, y func(float64) float64, lead time.Duration) string {
	var b bytes.Buffer
	pen, last := false, math.NaN()
	for i, l := range t.Looks {
		v := values[i]
		if l.At < -lead || l.At > t.Job.Lasts || v < 0 || math.IsNaN(v) {
			continue
		}
		switch {
		case !pen:
			fmt.Fprintf(&b, "M%.1f %.1f", x(l.At), y(v))
			pen = true
		case y(v) != y(last):
			fmt.Fprintf(&b, "H%.1fV%.1f", x(l.At), y(v))
		default:
			continue
		}
		last = v
	}
	if pen {
		fmt.Fprintf(&b, "H%.1f", x(t.Job.Lasts))
	}
	return b.String()
}
