package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// markdown prints the report for a page.
func (r *report) markdown(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s\n\n", r.Machine)
	fmt.Fprintf(b, "`x channel` is the cost of one call divided by that of a buffered channel's send and receive: median of %d paired\n", r.Rounds)
	fmt.Fprint(b, "rounds (rows that allocate: a tenth of them, longer), with the 95 % interval of that median; with 2 and 64 goroutines\n")
	fmt.Fprint(b, "it stands in brackets. Times are wall clock per call, the median of this run: compare ratios between machines, never times.\n\n")

	fmt.Fprintln(b, "| admitted | x channel | 95 % | ns | ns, 2 goroutines | ns, 64 | allocs | bytes |")
	fmt.Fprintln(b, "|---|--:|:-:|--:|--:|--:|--:|--:|")
	r.lines(b, false)
	fmt.Fprintln(b, "\n| refused | x channel | 95 % | ns | ns, 2 goroutines | ns, 64 | allocs | bytes |")
	fmt.Fprintln(b, "|---|--:|:-:|--:|--:|--:|--:|--:|")
	r.lines(b, true)

	if len(r.Targets) > 0 {
		fmt.Fprintln(b)
		targetTable(b, r.Targets)
	}
	fmt.Fprintln(b, "\nWhat one call is:")
	fmt.Fprintln(b)
	for _, row := range r.Rows {
		fmt.Fprintf(b, "- %s: %s\n", row.Name, row.Does)
	}
	if versions := r.versions(); versions != "" {
		fmt.Fprintf(b, "\nVersions: %s.\n", versions)
	}
	return b.Flush()
}

func targetTable(w io.Writer, vs []verdict) {
	fmt.Fprintln(w, "| target | measured | 95 % | at most | |")
	fmt.Fprintln(w, "|---|--:|:-:|--:|---|")
	for _, v := range vs {
		met := "met"
		if !v.Met {
			met = "**missed**"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", v.What, number(v.Measured), interval(v.Low, v.High), number(v.Max), met)
	}
}

func (r *report) lines(w io.Writer, refused bool) {
	for _, row := range r.Rows {
		if row.Refuses != refused {
			continue
		}
		name := row.Name
		if strings.HasPrefix(name, "spillway") {
			name = "**" + name + "**"
		}
		serial := row.Runs[0]
		fmt.Fprintf(w, "| %s | %s | %s ", name, number(serial.Ratio.Median), interval(serial.Ratio.Low, serial.Ratio.High))
		fmt.Fprintf(w, "| %s ", number(serial.Nanoseconds.Median))
		for _, run := range row.Runs[1:] {
			fmt.Fprintf(w, "| %s (%s) ", number(run.Nanoseconds.Median), number(run.Ratio.Median))
		}
		fmt.Fprintf(w, "| %s | %s |\n", count(row.Allocs), count(row.Bytes))
	}
}

// versions names the measured modules with their versions, in order.
func (r *report) versions() string {
	var out []string
	for path, version := range r.Machine.Versions {
		out = append(out, path+" "+version)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// number prints three significant digits, more of which would be noise, and whole numbers whole.
func number(x float64) string {
	if x == 0 {
		return "0"
	}
	// Rounded first: 0.9996 is 1.00, like its neighbours above.
	magnitude := math.Floor(math.Log10(math.Abs(x)))
	if math.Round(math.Abs(x)/math.Pow(10, magnitude-2)) >= 1000 {
		magnitude++
	}
	return strconv.FormatFloat(x, 'f', int(min(max(2-magnitude, 0), 3)), 64)
}

func interval(low, high float64) string {
	if number(low) == number(high) {
		return number(low)
	}
	return number(low) + " .. " + number(high)
}

// count prints a number of allocations or bytes per call: whole, as they are, but for the little that the runtime does
// meanwhile.
func count(x float64) string { return fmt.Sprintf("%.0f", x) }
