package main

import (
	"github.com/spillway-go/spillway/bench/internal/machine"
	"github.com/spillway-go/spillway/bench/internal/paired"
)

// report is all that a run found; its JSON form is what -json prints.
type report struct {
	Machine machine.Machine `json:"machine"`
	Rounds  int             `json:"rounds"`
	Rows    []row           `json:"rows"`
	Targets []verdict       `json:"targets"`

	direct map[string]paired.Summary // ratios of pairs without the channel, by target
}

// row is one contender.
type row struct {
	Name    string   `json:"name"`
	Module  string   `json:"module,omitempty"`
	Does    string   `json:"does"`
	Refuses bool     `json:"refuses"`
	Allocs  float64  `json:"allocs_per_call"`
	Bytes   float64  `json:"bytes_per_call"`
	Runs    []result `json:"runs"` // as goroutines has them
}

// result is a row with one number of goroutines.
type result struct {
	Goroutines  int            `json:"goroutines"`
	Nanoseconds paired.Summary `json:"nanoseconds"`
	Ratio       paired.Summary `json:"ratio_to_channel"`
}

func (r *report) find(name string) *row {
	for i := range r.Rows {
		if r.Rows[i].Name == name {
			return &r.Rows[i]
		}
	}
	return nil
}
