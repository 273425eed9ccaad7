package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spillway-go/spillway/bench/internal/machine"
)

// What is promised, in bytes, and the number of keys a Runtime keeps by default.
const (
	maxIdle   = 4 << 10
	maxActive = 6 << 10
	inFlight  = 20 // calls in flight of an active key, and its limit
	keptKeys  = 10_000
)

type report struct {
	Machine  machine.Machine `json:"machine"`
	Idle     float64         `json:"idle_bytes"`   // a key after one call
	Active   float64         `json:"active_bytes"` // a key with inFlight calls in flight
	After    float64         `json:"after_bytes"`  // the same key, idle again
	Flood    flood           `json:"flood"`
	Verdicts []verdict       `json:"targets"`
}

type verdict struct {
	What     string  `json:"what"`
	Measured float64 `json:"measured"`
	Max      float64 `json:"max"`
	Met      bool    `json:"met"`
}

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1)
	}
}

func run(args []string, out, errw io.Writer) error {
	fs := flag.NewFlagSet("memory", flag.ContinueOnError)
	fs.SetOutput(errw)
	keys := fs.Int("keys", 500, "how many keys to take the mean of")
	distinct := fs.Int("flood", 1_000_000, "how many distinct undeclared keys to call")
	asJSON := fs.Bool("json", false, "print JSON instead of Markdown")
	check := fs.Bool("check", false, "exit with status 1 when a target is missed")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 || *keys < 1 || *distinct < 1 {
		return errors.New("there are only flags, and -keys and -flood must be at least 1")
	}
	r := report{Machine: machine.Describe(nil)}
	var err error
	if r.Idle, r.Active, r.After, err = perKey(*keys); err != nil {
		return err
	}
	if r.Flood, err = undeclared(*distinct); err != nil {
		return err
	}
	r.judge()
	if *asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		err = enc.Encode(r)
	} else {
		err = r.markdown(out)
	}
	if err != nil || !*check {
		return err
	}
	for _, v := range r.Verdicts {
		if !v.Met {
			err = errors.Join(err, fmt.Errorf("missed: %s is %.0f, must be at most %.0f", v.What, v.Measured, v.Max))
		}
	}
	return err
}

func (r *report) judge() {
	add := func(what string, measured, limit float64) {
		r.Verdicts = append(r.Verdicts, verdict{what, measured, limit, measured <= limit})
	}
	add("idle key, bytes", r.Idle, maxIdle)
	add(fmt.Sprintf("active key of N = %d, bytes", inFlight), r.Active, maxActive)
	add(fmt.Sprintf("after %d distinct keys, keys kept", r.Flood.Keys), float64(r.Flood.Kept), keptKeys)
	// The bound's memory is that of as many idle keys as the table may keep.
	add(fmt.Sprintf("after %d distinct keys, bytes", r.Flood.Keys), r.Flood.After, keptKeys*maxIdle)
	add("most while they come, bytes", r.Flood.Greatest, keptKeys*maxIdle)
}

func (r *report) markdown(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s\n\nBytes of live heap objects after a collection.\n\n| memory | measured | at most | |\n|---|--:|--:|---|\n", r.Machine)
	for _, v := range r.Verdicts {
		met := "met"
		if !v.Met {
			met = "**missed**"
		}
		if err == nil {
			_, err = fmt.Fprintf(w, "| %s | %.0f | %.0f | %s |\n", v.What, v.Measured, v.Max, met)
		}
	}
	if err == nil {
		_, err = fmt.Fprintf(w, "\nAn active key that is idle again keeps %.0f bytes. %d calls of distinct keys took %s, %s a call.\n",
			r.After, r.Flood.Keys, r.Flood.Took.Round(1e6), (r.Flood.Took / max(1, time.Duration(r.Flood.Keys))).Round(10))
	}
	return err
}
