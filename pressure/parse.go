package pressure

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Parsers of kernel files. Those for files that are read every period allocate nothing.

func trim(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] == '\n' || b[len(b)-1] == ' ') {
		b = b[:len(b)-1]
	}
	for len(b) > 0 && b[0] == ' ' {
		b = b[1:]
	}
	return b
}

// parseUint accepts decimal digits only, no sign, and nothing above 1<<64-1.
func parseUint(b []byte) (v uint64, ok bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		d := uint64(c - '0')
		if v > (1<<64-1-d)/10 {
			return 0, false
		}
		v = v*10 + d
	}
	return v, true
}

// parseField finds "name value" among lines of that form.
func parseField(b []byte, name string) (v uint64, ok bool) {
	for len(b) > 0 {
		line := b
		if end := bytes.IndexByte(b, '\n'); end >= 0 {
			line, b = b[:end], b[end+1:]
		} else {
			b = nil
		}
		if len(line) > len(name) && line[len(name)] == ' ' && string(line[:len(name)]) == name {
			return parseUint(trim(line[len(name):]))
		}
	}
	return 0, false
}

// parseCPUMax reads cgroup v2's cpu.max, "max 100000" or "50000 100000", both in microseconds. A quota or a period of 0 makes no sense.
func parseCPUMax(b []byte) (quota, period uint64, limited, ok bool) {
	b = trim(b)
	space := bytes.IndexByte(b, ' ')
	if space < 0 {
		return 0, 0, false, false
	}
	period, ok = parseUint(trim(b[space:]))
	if string(b[:space]) == "max" {
		return 0, period, false, ok
	}
	quota, isNumber := parseUint(b[:space])
	return quota, period, true, ok && isNumber && quota > 0 && period > 0
}

// parseStall reads the total of a pressure file's "some" line, in microseconds.
func parseStall(b []byte) (us uint64, ok bool) {
	if len(b) < 5 || string(b[:5]) != "some " {
		return 0, false
	}
	if end := bytes.IndexByte(b, '\n'); end >= 0 {
		b = b[:end]
	}
	i := bytes.LastIndex(b, []byte(" total="))
	if i < 0 {
		return 0, false
	}
	return parseUint(trim(b[i+len(" total="):]))
}

// membership is one line of /proc/self/cgroup.
type membership struct {
	controllers []string // nil for cgroup v2
	path        string
}

func parseMemberships(b []byte) ([]membership, error) {
	var list []membership
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			continue
		}
		fields := strings.SplitN(line, ":", 3)
		if len(fields) != 3 || !strings.HasPrefix(fields[2], "/") {
			return nil, fmt.Errorf("a line makes no sense: %q", line[:min(len(line), 80)])
		}
		m := membership{path: fields[2]}
		if fields[1] != "" {
			m.controllers = strings.Split(fields[1], ",")
		} else if fields[0] != "0" {
			continue // a v1 hierarchy without a controller and without a name
		}
		list = append(list, m)
	}
	if len(list) == 0 {
		return nil, errors.New("there is no line in it")
	}
	return list, nil
}

// mount is a cgroup file system, one line of /proc/self/mountinfo.
type mount struct {
	root    string // the cgroup that stands at the mount point
	point   string
	v2      bool
	options []string // with v1 the controllers are among them
}

// parseMounts takes what it knows and leaves out lines that it does not understand: other file systems may look like anything.
func parseMounts(b []byte) []mount {
	var list []mount
	for line := range strings.Lines(string(b)) {
		left, right, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		if !ok {
			continue
		}
		l, r := strings.Fields(left), strings.Fields(right)
		if len(l) < 6 || len(r) < 3 || r[0] != "cgroup" && r[0] != "cgroup2" {
			continue
		}
		list = append(list, mount{
			root:    unescape(l[3]),
			point:   unescape(l[4]),
			v2:      r[0] == "cgroup2",
			options: strings.Split(r[2], ","),
		})
	}
	return list
}

// unescape undoes \040 and the like, which stand for space, tab, newline and backslash.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(v))
				i += 3
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}
