package main

import (
	"strings"
	"time"
)

// stripCells is the number of cells of a strip; the phases' shares of 3, 4, 5,
// 5 and 3 twentieths fall on whole cells.
const stripCells = 60

// lanes draws, for every side, what became of either endpoint over time.
func (s *screen) lanes() []string {
	var axis strings.Builder
	axis.WriteString(spaces(10))
	for i := range s.script.Phases {
		p := &s.script.Phases[i]
		axis.WriteString(left(p.Name, s.cell(p.Start+p.Length)-s.cell(p.Start)+1))
	}
	lines := []string{s.paint.dim("share of what could be answered that was answered in time"), s.paint.dim(axis.String())}
	for i, side := range s.sides {
		lines = append(lines, string(side))
		for e, strip := range s.strips[i] {
			lines = append(lines, "  "+left(Endpoint(e).String(), 8)+strip)
		}
	}
	return lines
}

// cell is the cell in which time t of the script lies.
func (s *screen) cell(t time.Duration) int {
	return int(t * stripCells / s.script.length())
}

// planned counts the arrivals of every cell.
func (s *screen) planned() [2][stripCells]int {
	var n [2][stripCells]int
	for _, a := range s.script.plan() {
		if i := s.cell(a.At); a.At >= 0 && i < stripCells {
			n[a.Endpoint][i]++
		}
	}
	return n
}

// strip draws the cells that are decided at time now: those whose requests are
// all answered or too late. The height of a cell is the share of requests
// served in time, of those that arrived or of those that the slow endpoint's
// places had room for, whichever is less.
func (s *screen) strip(samples []Sample, now time.Duration) [2]string {
	var served [2][stripCells]int
	for _, sample := range samples {
		if i := s.cell(sample.At); sample.At >= 0 && i < stripCells && sample.Outcome == Served {
			served[sample.Endpoint][i]++
		}
	}
	width := s.script.length() / stripCells
	var strips [2]string
	for e := range strips {
		var b strings.Builder
		phase := Calm
		for i := range stripCells {
			from := time.Duration(i) * width
			if from+width+deadline > now {
				break
			}
			if p := s.script.at(from + width/2); p != phase {
				phase = p
				b.WriteString(s.paint.dim("│"))
			}
			possible := float64(s.arrivals[e][i])
			if Endpoint(e) == Slow {
				room := s.script.Phases[phase].Behaviour.capacity(slowPlaces) * width.Seconds()
				possible = min(possible, room)
			}
			b.WriteString(s.bar(float64(served[e][i]), possible))
		}
		strips[e] = b.String()
	}
	return strips
}

// bar draws one cell; a dot says that nothing could be served.
func (s *screen) bar(served, possible float64) string {
	if possible <= 0 {
		return s.paint.dim("·")
	}
	levels := []rune("▁▂▃▄▅▆▇█")
	share := min(1, served/possible)
	return s.paint.byShare(share, string(levels[int(share*float64(len(levels)-1)+0.5)]))
}
