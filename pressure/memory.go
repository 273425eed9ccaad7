package pressure

import (
	"fmt"
	"path/filepath"
)

// memoryLevel is one cgroup that may have a memory limit.
type memoryLevel struct {
	v2        bool
	dir, from string

	max   kernelFile
	high  kernelFile // v2: above it the kernel slows the group down and takes its memory away
	usage kernelFile
	stat  kernelFile

	limit float64 // bytes; 0: none
	of    string
	err   error // of the limit
}

// unlimited is what cgroup v1 writes for no limit, or a page less: the greatest number of pages in bytes.
const unlimited = 1 << 62

func newMemoryLevel(v2 bool, g group) *memoryLevel {
	file := func(name string) kernelFile { return kernelFile{path: filepath.Join(g.dir, name)} }
	if v2 {
		return &memoryLevel{v2: true, dir: g.dir, from: "cgroup v2 " + g.path,
			max: file("memory.max"), high: file("memory.high"), usage: file("memory.current"), stat: file("memory.stat")}
	}
	return &memoryLevel{dir: g.dir, from: "cgroup v1 " + g.path,
		max: file("memory.limit_in_bytes"), usage: file("memory.usage_in_bytes"), stat: file("memory.stat")}
}

func (l *memoryLevel) close() {
	for _, f := range []*kernelFile{&l.max, &l.high, &l.usage, &l.stat} {
		f.close()
	}
}

// readLimit keeps the limit. A group without the file has none: it is the root, or the controller is not switched on for it.
func (l *memoryLevel) readLimit(c *cgroups) {
	limit := 0.0
	l.err = nil
	files := []*kernelFile{&l.max, &l.high}
	if !l.v2 {
		files = files[:1]
	}
	for _, f := range files {
		v, limited, err := f.number(c.buf, "max")
		if missing(err) {
			continue
		}
		if err == nil && limited && v == 0 {
			err = fmt.Errorf("%s: a limit of 0 bytes makes no sense", f.path)
		}
		if err != nil {
			l.err, c.broken = err, true
			return
		}
		if limited && v < unlimited && (limit == 0 || float64(v) < limit) {
			limit = float64(v)
		}
	}
	if limit != l.limit {
		l.limit, l.of = limit, "the cgroup's "+bytesText(limit)
	}
}

// readUse returns what is in use. File cache that was not used lately goes as soon as somebody needs the memory; swap is not in
// these figures at all.
func (l *memoryLevel) readUse(buf []byte) (float64, error) {
	usage, _, err := l.usage.number(buf, "")
	if err != nil {
		return 0, err
	}
	b, err := l.stat.read(buf)
	if err != nil {
		return 0, err
	}
	name := "total_inactive_file"
	if l.v2 {
		name = "inactive_file"
	}
	cache, ok := parseField(b, name)
	if !ok {
		return 0, malformed(l.stat.path, b)
	}
	return max(0, float64(usage)-float64(cache)), nil
}

// readMemory finds the fullest of the process's limits.
func (m *machine) readMemory() {
	memory := fullest{}
	limit, floor, garbage := m.heap.readMemory()
	if limit > 0 {
		if limit != m.goLimit {
			m.goLimit, m.ofGoLimit = limit, "GOMEMLIMIT of "+bytesText(limit)
		}
		memory.put(floor, limit, m.ofGoLimit, fromRuntime)
	}
	if m.hostIs == Unknown && m.hostWhy == "" { // a limit above the host's memory is none
		m.virtual.due(m.now)
		m.lookAtHost()
	}
	limited := false
	if c := m.cgroups; c != nil {
		if c.state == Unknown {
			memory.fail(c.why)
		}
		for _, l := range c.memory {
			if l.err != nil {
				memory.fail(l.err.Error())
				continue
			}
			if l.limit == 0 || m.hostMemory > 0 && l.limit > m.hostMemory {
				continue
			}
			limited = true
			used, err := l.readUse(c.buf)
			if err != nil {
				c.broken = true
				memory.fail(err.Error())
				continue
			}
			// The runtime collects its garbage before it goes beyond GOMEMLIMIT, so below a higher limit it is as good as free.
			if limit > 0 && limit < l.limit {
				used = max(0, used-garbage)
			}
			memory.put(used, l.limit, l.of, l.from)
		}
	}
	if !limited && memory.why == "" {
		m.readHostMemory(&memory)
	}
	m.set(Memory, memory.reading())
}

func (m *machine) readHostMemory(memory *fullest) {
	if m.virtual.due(m.now) {
		m.lookAtHost()
	}
	switch m.hostIs {
	case Known:
		memory.put(m.hostUsed, m.hostMemory, m.ofHostMemory, fromHost)
	case Unsupported:
		memory.absent = m.hostWhy
	default:
		memory.fail(m.hostWhy)
	}
}

func (m *machine) lookAtHost() {
	var total float64
	m.hostUsed, total, m.hostIs, m.hostWhy = m.host.readMemory()
	if m.hostIs == Known && total != m.hostMemory {
		m.hostMemory, m.ofHostMemory = total, "the host's "+bytesText(total)
	}
}

func bytesText(v float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if v >= u.size {
			return fmt.Sprintf("%.3g %s", v/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.0f bytes", v)
}
