package pressure

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// cgroups knows where the process stands in the hierarchies of control groups, and keeps their files open. The limits that
// count are those of its own group and of every group above it that can be seen.
type cgroups struct {
	root   string
	period time.Duration
	buf    []byte

	self   kernelFile
	seen   string // /proc/self/cgroup at the last scan
	next   time.Duration
	broken bool // something could not be read: look around again

	state State // Known: scanned; Unsupported: there are none; Unknown: why
	why   string

	cpu         []*cpuLevel // own group first
	memory      []*memoryLevel
	stallCPU    stall
	stallMemory stall
	noStall     string // why there is no stall information
}

// rescanEvery finds what no failed read tells of: a controller that was switched on, a mount that came.
const rescanEvery = 30 * time.Second

func newCgroups(root string, period time.Duration) *cgroups {
	return &cgroups{
		root:   root,
		period: period,
		buf:    make([]byte, bufferSize),
		self:   kernelFile{path: filepath.Join(root, "/proc/self/cgroup")},
	}
}

// look notices when the process was moved, and reads the limits anew.
func (c *cgroups) look(now time.Duration) {
	again := c.broken || now >= c.next
	if again {
		c.self.close()
	}
	content, err := c.self.read(c.buf)
	switch {
	case err != nil:
		c.close()
		c.seen, c.state, c.why = "", Unknown, err.Error()
		if missing(err) {
			c.state, c.why = Unsupported, "this system has no cgroups"
		}
		c.cpu, c.memory = nil, nil
		return
	case again || string(content) != c.seen:
		c.next = now + rescanEvery
		c.broken = false
		c.seen = string(content)
		c.scan(content)
	}
	for _, l := range c.cpu {
		l.readLimit(c)
	}
	for _, l := range c.memory {
		l.readLimit(c)
	}
}

// scan finds the groups. Levels that are still there keep what they know, but all files are opened anew.
func (c *cgroups) scan(content []byte) {
	c.closeLevels()
	members, err := parseMemberships(content)
	if err != nil {
		c.fail(fmt.Sprintf("%s: %v", c.self.path, err))
		return
	}
	mountinfo, err := os.ReadFile(filepath.Join(c.root, "/proc/self/mountinfo"))
	if err != nil {
		c.fail(err.Error())
		return
	}
	mounts := parseMounts(mountinfo)
	c.state, c.why = Known, ""

	cpu, account := c.find("cpu", members, mounts), c.find("cpuacct", members, mounts)
	levels := c.cpu[:0:0]
	for _, g := range cpu.groups() {
		i := slices.IndexFunc(c.cpu, func(l *cpuLevel) bool { return l.dir == g.dir })
		if i >= 0 {
			levels = append(levels, c.cpu[i])
			continue
		}
		usage := g.dir
		if !cpu.v2 {
			usage = account.dirOf(g.path)
		}
		levels = append(levels, newCPULevel(cpu.v2, g, usage, c.period))
	}
	c.cpu = levels

	memory := c.find("memory", members, mounts)
	limits := c.memory[:0:0]
	for _, g := range memory.groups() {
		i := slices.IndexFunc(c.memory, func(l *memoryLevel) bool { return l.dir == g.dir })
		if i >= 0 {
			limits = append(limits, c.memory[i])
			continue
		}
		limits = append(limits, newMemoryLevel(memory.v2, g))
	}
	c.memory = limits

	c.findStall(c.find("", members, mounts))
}

func (c *cgroups) fail(why string) {
	c.state, c.why, c.broken = Unknown, why, true
	c.cpu, c.memory = nil, nil
}

func (c *cgroups) close() {
	c.self.close()
	c.closeLevels()
}

func (c *cgroups) closeLevels() {
	for _, l := range c.cpu {
		l.close()
	}
	for _, l := range c.memory {
		l.close()
	}
	c.stallCPU.file.close()
	c.stallMemory.file.close()
}

// hierarchy is where one controller's groups can be seen. The zero value: nowhere.
type hierarchy struct {
	v2    bool
	path  string // the process's own group
	mount string // the group at the mount point
	point string // where the mount point is, from the real root of the file system
}

// group is one level.
type group struct{ path, dir string }

// find locates a controller, "" for cgroup v2 itself. On a hybrid host a controller belongs to v1 or to v2, and what
// /proc/self/cgroup lists under v1 is not in v2.
func (c *cgroups) find(controller string, members []membership, mounts []mount) hierarchy {
	var h hierarchy
	found := false
	for _, m := range members {
		if v2 := m.controllers == nil; v2 && !found || !v2 && controller != "" && slices.Contains(m.controllers, controller) {
			h, found = hierarchy{v2: v2, path: m.path}, true
			if !v2 {
				break
			}
		}
	}
	if !found {
		return hierarchy{}
	}
	// Of several mounts the one that shows most of the groups above.
	for _, m := range mounts {
		if m.v2 != h.v2 || !h.v2 && !slices.Contains(m.options, controller) {
			continue
		}
		if h.point == "" || within(h.path, m.root) && (!within(h.path, h.mount) || len(m.root) < len(h.mount)) {
			h.mount, h.point = m.root, filepath.Join(c.root, m.point)
		}
	}
	return h
}

// within reports whether p is the group above or one below it.
func within(p, above string) bool {
	return above == "/" || p == above || strings.HasPrefix(p, above+"/")
}

// dirOf is the folder of a group at or above the process's own, "" when it cannot be seen.
func (h hierarchy) dirOf(group string) string {
	if h.point == "" || !within(h.path, group) || !within(group, h.mount) {
		return ""
	}
	return filepath.Join(h.point, filepath.FromSlash(strings.TrimPrefix(group, strings.TrimSuffix(h.mount, "/"))))
}

// groups lists the process's own group and those above it, up to the mount point. Where the mount does not show the process's own
// group (a container whose /proc tells the host's paths) it begins with the nearest one above that is there; the mount
// point stands for the container then.
func (h hierarchy) groups() []group {
	if h.point == "" {
		return nil
	}
	at := h.path
	if strings.Contains(at, "/..") || !within(at, h.mount) {
		at = h.mount
		h.path = h.mount // so that dirOf accepts it
	}
	var list []group
	for {
		g := group{at, h.dirOf(at)}
		if info, err := os.Stat(g.dir); err == nil && info.IsDir() {
			list = append(list, g)
		}
		if at == h.mount || at == "/" {
			return list
		}
		at = path.Dir(at)
	}
}
