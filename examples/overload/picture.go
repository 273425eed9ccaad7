package main

import (
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"strings"
)

// The picture: a panel for each endpoint, in it a pair of bars for each phase.
const (
	panelWidth  = 400
	panelHeight = 190
	panelTop    = 74
	barWidth    = 26
	phaseWidth  = 74
	marginLeft  = 24
)

const pictureStyle = `
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600; font-size: 14px } .small { font-size: 11px; fill: #57606a }
.unguarded { fill: #cf222e } .guarded { fill: #1a7f37 } .axis { stroke: #8c959f }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .small { fill: #9198a1 }
  .unguarded { fill: #f85149 } .guarded { fill: #3fb950 } .axis { stroke: #656c76 }
}`

// panel is one endpoint over the phases.
type panel struct {
	title string
	value func(PhaseReport) float64
	most  float64 // the value of a bar as high as the panel
}

// writePicture draws both sides beside each other as SVG, for light and dark pages.
func (r *Report) writePicture(w io.Writer) error {
	sides := []*SideReport{r.side(Unguarded), r.side(Guarded)}
	panels := []panel{
		{"/quick: answered in time, per cent", func(p PhaseReport) float64 { return 100 * p.Quick.Success }, 100},
		{"/slow: answered in time, a second", func(p PhaseReport) float64 { return p.Slow.Goodput }, r.Capacity},
	}
	var b strings.Builder
	width, height := 2*panelWidth+2*marginLeft, panelTop+panelHeight+70
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n<style>%s\n</style>\n",
		width, height, "One service without and with guards, through a burst, a slow and a hanging dependency", pictureStyle)
	for i, side := range []string{"without spillway", "with spillway"} {
		x := marginLeft + 150*i
		fmt.Fprintf(&b, "<rect class=\"%s\" x=\"%d\" y=\"12\" width=\"12\" height=\"12\"/><text x=\"%d\" y=\"23\">%s</text>\n",
			sides[i].Side, x, x+18, side)
	}
	for i, p := range panels {
		p.draw(&b, marginLeft+i*(panelWidth+marginLeft), sides)
	}
	fmt.Fprintf(&b, "<text class=\"small\" x=\"%d\" y=\"%d\">%s</text>\n</svg>\n", marginLeft, height-10, html.EscapeString(fmt.Sprintf(
		"Both endpoints share %d connections. In time: within %.0f ms. Arriving at /slow: %.0f a second, in the burst %.0f; it can serve %.0f.",
		r.Pool, r.DeadlineMS, arrivals(sides[1].Phases[Calm]), arrivals(sides[1].Phases[Burst]), r.Capacity)))
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) savePicture(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(r.writePicture(f), f.Close())
}

func arrivals(p PhaseReport) float64 { return float64(p.Slow.Arrived) / p.Seconds }

func (p panel) draw(b *strings.Builder, left int, sides []*SideReport) {
	fmt.Fprintf(b, "<text class=\"title\" x=\"%d\" y=\"%d\">%s</text>\n", left, panelTop-24, p.title)
	floor := panelTop + panelHeight
	for i := range sides[0].Phases {
		x := left + i*phaseWidth
		for j, s := range sides {
			v := p.value(s.Phases[i])
			h := max(1, min(v/p.most, 1)*panelHeight)
			bx := x + j*(barWidth+4)
			fmt.Fprintf(b, "<rect class=\"%s\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\"/>"+
				"<text class=\"small\" text-anchor=\"middle\" x=\"%d\" y=\"%.1f\">%.0f</text>\n",
				s.Side, bx, float64(floor)-h, barWidth, h, bx+barWidth/2, float64(floor)-h-4, v)
		}
		fmt.Fprintf(b, "<text text-anchor=\"middle\" x=\"%d\" y=\"%d\">%s</text>\n", x+barWidth+2, floor+18, sides[0].Phases[i].Name)
	}
	fmt.Fprintf(b, "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>\n", left-4, left+panelWidth-30, floor, floor)
}
