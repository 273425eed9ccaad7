package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spillway-go/spillway/bench/internal/machine"
)

type report struct {
	Machine  machine.Machine `json:"machine"`
	Rows     []row           `json:"rows"`
	Allocs   float64         `json:"allocations"`
	Space    space           `json:"space"`
	Faults   []fault         `json:"faults"`
	Verdicts []verdict       `json:"targets"`
}

type verdict struct {
	What     string  `json:"what"`
	Measured float64 `json:"measured"`
	Most     float64 `json:"most"`
	Met      bool    `json:"met"`
}

func (r *report) judge() {
	most := func(what string, measured, limit float64) {
		r.Verdicts = append(r.Verdicts, verdict{what, measured, limit, measured <= limit})
	}
	for _, w := range r.Rows {
		if w.Most > 0 {
			most(fmt.Sprintf("%s / %s, %s", w.Name, w.Beside, on(w.Goroutines)), w.Ratio.Median, w.Most)
		}
	}
	most("allocations of a decision", r.Allocs, 0)
	most("bytes of a key", r.Space.Key, maxKey)
	most("bytes of a key in a sliding window of 10 segments", r.Space.Sliding, maxKey+11*maxSegment)
	most(fmt.Sprintf("bytes, after %d distinct keys, for each of Config.Keys", r.Space.Flood.Keys), r.Space.Flood.Greatest/float64(r.Space.Flood.Bound), maxKey)
	most("fresh starts that they gave to one who had used up its limit", float64(r.Space.Flood.Fresh), 0)
	wrong := 0
	for _, f := range r.Faults {
		if !f.OK {
			wrong++
		}
	}
	most("faults below that are ours, too", float64(wrong), 0)
}

func (r *report) missed() (err error) {
	for _, v := range r.Verdicts {
		if !v.Met {
			err = errors.Join(err, fmt.Errorf("missed: %s is %.4g, at most %.4g is promised", v.What, v.Measured, v.Most))
		}
	}
	return err
}

func on(goroutines int) string {
	if goroutines == 1 {
		return "serial"
	}
	return fmt.Sprintf("%d goroutines", goroutines)
}

func (r *report) markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%v\n\n| | beside | | ns | beside, ns | ratio | 95 %% interval | promised |\n|---|---|---|--:|--:|--:|--:|--:|\n", r.Machine)
	for _, w := range r.Rows {
		promised := ""
		if w.Most > 0 {
			promised = fmt.Sprintf("<= %.2g", w.Most)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %.0f | %.0f | %.3f | %.3f to %.3f | %s |\n",
			w.Name, w.Beside, on(w.Goroutines), w.Ns, w.BesideNs, w.Ratio.Median, w.Ratio.Low, w.Ratio.High, promised)
	}
	fl := r.Space.Flood
	fmt.Fprintf(&b, "\nBy key: %d keys in an order that no cache knows. A key takes %.1f bytes, %.1f in a sliding window of 10 segments.\n",
		manyKeys, r.Space.Key, r.Space.Sliding)
	fmt.Fprintf(&b, "%d distinct keys in %v to a limiter with Keys = %d: %d kept, never more than %.1f MB.\n",
		fl.Keys, fl.Took.Round(10*time.Millisecond), fl.Bound, fl.Kept, fl.Greatest/1e6)
	fmt.Fprint(&b, "\n| fault | seen in | there | here | right |\n|---|---|--:|--:|--:|\n")
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", f.What, f.Peer, f.Seen, f.Ours, f.Right)
	}
	fmt.Fprint(&b, "\n| target | measured | at most | |\n|---|--:|--:|---|\n")
	for _, v := range r.Verdicts {
		word := "met"
		if !v.Met {
			word = "**missed**"
		}
		fmt.Fprintf(&b, "| %s | %.3g | %.3g | %s |\n", v.What, v.Measured, v.Most, word)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
