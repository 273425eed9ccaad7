package pressure

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// stall reads pressure stall information of the process's own cgroup. It takes the growth of the total: avg10 needs seconds
// to move.
type stall struct {
	file  kernelFile
	total ring // seconds
}

// findStall is given the process's place in cgroup v2. The root's figures are the whole host's, where neighbours
// always raise an alarm.
func (c *cgroups) findStall(h hierarchy) {
	groups := h.groups()
	c.noStall = ""
	if len(groups) == 0 {
		c.noStall = "there is no cgroup v2 here"
		return
	}
	dir := groups[0].dir
	if _, err := os.Stat(filepath.Join(dir, "cgroup.events")); missing(err) {
		c.noStall = "the process is in the root cgroup, where the figures are the whole host's"
		return
	}
	for _, s := range []struct {
		stall *stall
		name  string
	}{{&c.stallCPU, "cpu.pressure"}, {&c.stallMemory, "memory.pressure"}} {
		if p := filepath.Join(dir, s.name); p != s.stall.file.path {
			*s.stall = stall{file: kernelFile{path: p}, total: newRing(stallSpan, c.period)}
		}
	}
}

func (m *machine) readStall() {
	const from = "cgroup v2"
	for _, signal := range [2]Signal{PressureCPU, PressureMemory} {
		c := m.cgroups
		if c == nil {
			m.absent(signal, Unsupported, from, "only Linux tells")
			continue
		}
		switch {
		case c.state != Known:
			m.absent(signal, c.state, from, c.why)
			continue
		case c.noStall != "":
			m.absent(signal, Unsupported, from, c.noStall)
			continue
		}
		s := &c.stallCPU
		if signal == PressureMemory {
			s = &c.stallMemory
		}
		s.read(m, signal, from)
	}
}

func (s *stall) read(m *machine, signal Signal, from string) {
	b, err := s.file.read(m.cgroups.buf)
	switch {
	case missing(err) || errors.Is(err, syscall.EOPNOTSUPP):
		m.absent(signal, Unsupported, from, "this kernel keeps no pressure stall information")
		return
	case err != nil:
		m.absent(signal, Unknown, from, err.Error())
		return
	}
	us, ok := parseStall(b)
	if !ok {
		m.absent(signal, Unknown, from, malformed(s.file.path, b).Error())
		return
	}
	s.total.add(m.now, float64(us)/1e6)
	by, over, ok := s.total.growth()
	if !ok {
		m.absent(signal, Pending, from, needsASecond)
		return
	}
	m.known(signal, percent(by, over.Seconds()), from)
}
