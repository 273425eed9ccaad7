package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// quotaGroup is a cgroup with a CPU quota, for one process at a time.
type quotaGroup struct{ dirs []string }

// newQuotaGroup makes one below the root of cgroup v2, or below its own place in v1's cpu and cpuacct. It takes root, and a system that is not
// a container; the error says what was missing.
func newQuotaGroup(cpus float64) (*quotaGroup, error) {
	const base = "/sys/fs/cgroup"
	name := "spillway-bench-" + strconv.Itoa(os.Getpid())
	const period = 100_000
	quota := strconv.Itoa(int(cpus * period))
	if b, err := os.ReadFile(filepath.Join(base, "cgroup.subtree_control")); err == nil {
		if !strings.Contains(" "+string(b), " cpu ") && !strings.HasSuffix(strings.TrimSpace(string(b)), "cpu") {
			return nil, errors.New("the cpu controller of cgroup v2 is not switched on below the root")
		}
		g := &quotaGroup{dirs: []string{filepath.Join(base, name)}}
		return g, g.make("cpu.max", quota+" "+strconv.Itoa(period))
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	cpu := filepath.Join(base, "cpu", ownGroup(string(own), "cpu"))
	if _, err := os.Stat(filepath.Join(cpu, "cpu.cfs_quota_us")); err != nil {
		return nil, errors.New("there is no cpu controller of cgroup v1 or v2 under " + base)
	}
	g := &quotaGroup{dirs: []string{filepath.Join(cpu, name)}}
	if account := filepath.Join(base, "cpuacct", ownGroup(string(own), "cpuacct")); !same(cpu, account) {
		g.dirs = append(g.dirs, filepath.Join(account, name))
	}
	// A hybrid system has v2 beside these. There is no quota in it, but it knows of pressure.
	if unified := filepath.Join(base, "unified"); isDir(unified) {
		g.dirs = append(g.dirs, filepath.Join(unified, name))
	}
	return g, g.make("cpu.cfs_quota_us", quota)
}

// ownGroup is this process's place in a hierarchy of cgroup v1, as /proc/self/cgroup has it.
func ownGroup(file, controller string) string {
	for line := range strings.Lines(file) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) == 3 && slices.Contains(strings.Split(fields[1], ","), controller) {
			return fields[2]
		}
	}
	return "/"
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func same(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

func (g *quotaGroup) make(file, quota string) error {
	for i, dir := range g.dirs {
		err := os.Mkdir(dir, 0o755)
		if err == nil && i == 0 {
			err = os.WriteFile(filepath.Join(dir, file), []byte(quota), 0o644)
		}
		if err != nil {
			g.remove()
			return fmt.Errorf("a cgroup with a quota cannot be made: %w", err)
		}
	}
	return nil
}

// add moves a process into the group.
func (g *quotaGroup) add(pid int) error {
	for _, dir := range g.dirs {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// remove works once the processes are gone.
func (g *quotaGroup) remove() {
	for _, dir := range g.dirs {
		_ = os.Remove(dir)
	}
}
