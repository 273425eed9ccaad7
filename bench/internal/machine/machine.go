// Package machine names what a measurement was taken on, as far as figures depend on it: processor, system, Go, the
// versions of what was measured, and how busy the machine was before. It is for the head of a report, not for decisions:
// what cannot be read is left out.
//
//	m := machine.Describe([]string{"golang.org/x/sync"})
//	fmt.Println(m) // Xeon ..., 2 CPUs, linux/amd64, go1.26.0; load average 0.12 before the run
package machine

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// Machine describes this process's machine.
type Machine struct {
	CPU      string            `json:"cpu"` // the processor's own name, or ""
	CPUs     int               `json:"cpus"`
	MaxProcs int               `json:"gomaxprocs"`
	System   string            `json:"system"` // linux/amd64
	Go       string            `json:"go"`
	Load     string            `json:"load_average,omitempty"` // of the last minute, before the run
	Versions map[string]string `json:"versions,omitempty"`     // by module path
}

// Describe reads what there is to know. modules are the module paths whose versions are wanted; a module built from a
// local folder is "this tree".
func Describe(modules []string) Machine {
	m := Machine{
		CPU:      cpuName(),
		CPUs:     runtime.NumCPU(),
		MaxProcs: runtime.GOMAXPROCS(0),
		System:   runtime.GOOS + "/" + runtime.GOARCH,
		Go:       runtime.Version(),
		Load:     firstWord("/proc/loadavg"),
		Versions: map[string]string{},
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return m
	}
	deps := map[string]string{}
	for _, d := range info.Deps {
		version := d.Version
		if d.Replace != nil {
			version = "this tree"
		}
		deps[d.Path] = version
	}
	for _, path := range modules {
		if v := deps[path]; v != "" {
			m.Versions[path] = v
		}
	}
	return m
}

// String is Hardware and how busy it was before the run.
func (m Machine) String() string {
	s := m.Hardware()
	if m.Load != "" {
		s += "; load average " + m.Load + " before the run"
	}
	return s
}

// Hardware names processor, system and Go on one line.
func (m Machine) Hardware() string {
	var parts []string
	if m.CPU != "" {
		parts = append(parts, m.CPU)
	}
	parts = append(parts, fmt.Sprintf("%d CPUs", m.CPUs))
	if m.MaxProcs != m.CPUs {
		parts = append(parts, fmt.Sprintf("GOMAXPROCS %d", m.MaxProcs))
	}
	parts = append(parts, m.System, m.Go)
	return strings.Join(parts, ", ")
}

// cpuName is what Linux says of the first processor; elsewhere nothing.
func cpuName() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) == "model name" {
			return strings.Join(strings.Fields(value), " ")
		}
	}
	return ""
}

func firstWord(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	word, _, _ := strings.Cut(string(b), " ")
	return word
}
