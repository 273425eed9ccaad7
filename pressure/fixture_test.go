package pressure

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	debug.SetMemoryLimit(math.MaxInt64) // whatever the environment says: it is one of the limits that are read
	goleak.VerifyTestMain(m)
}

// fixture is a machine over a tree of kernel files that a test may change as it goes. A tree stands in one file in testdata:
// "-- path --" and the content, or "-- path/ --" for a folder.
type fixture struct {
	t    *testing.T
	root string
	m    *machine
	now  time.Duration
	own  time.Duration // CPU time of the process
	r    Readings
}

func open(t *testing.T, tree string) *fixture {
	t.Helper()
	f := &fixture{t: t, root: t.TempDir()}
	b, err := os.ReadFile(filepath.Join("testdata", tree+".tree"))
	if err != nil {
		t.Fatal(err)
	}
	var name string
	var content strings.Builder
	flush := func() {
		if name != "" {
			f.write(name, content.String())
		}
		content.Reset()
	}
	for line := range strings.Lines(string(b)) {
		if inner, ok := strings.CutPrefix(strings.TrimSpace(line), "-- "); ok {
			flush()
			name = strings.TrimSuffix(inner, " --")
			continue
		}
		content.WriteString(line)
	}
	flush()

	f.m = newMachine(machineConfig{period: DefaultPeriod, root: f.root})
	f.m.cgroups = newCgroups(f.root, DefaultPeriod) // on every platform
	f.m.process.times = func() (time.Duration, bool) { return f.own, true }
	f.m.process.cpus = func() int { return 4 }
	t.Cleanup(func() { _ = f.m.Close() })
	return f
}

// ownMachine reads the machine that the test runs on.
func ownMachine(tb testing.TB) *machine {
	tb.Helper()
	m := newMachine(machineConfig{period: DefaultPeriod})
	tb.Cleanup(func() { _ = m.Close() })
	return m
}

func (f *fixture) path(name string) string { return filepath.Join(f.root, filepath.FromSlash(name)) }

func (f *fixture) write(name, content string) {
	f.t.Helper()
	p := f.path(name)
	if strings.HasSuffix(name, "/") {
		f.must(os.MkdirAll(p, 0o755))
		return
	}
	f.must(os.MkdirAll(filepath.Dir(p), 0o755))
	f.must(os.WriteFile(p, []byte(content), 0o600))
}

// folder puts a folder in the place of a file: it can be opened and not read, by anybody.
func (f *fixture) folder(name string) {
	f.t.Helper()
	f.remove(name)
	f.must(os.Mkdir(f.path(name), 0o755))
}

func (f *fixture) remove(name string) {
	f.t.Helper()
	f.must(os.RemoveAll(f.path(name)))
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// run takes samples for a time. change, if any, is called before each with the time since the beginning of the run.
func (f *fixture) run(d time.Duration, change func(at time.Duration)) {
	begin := f.now
	for {
		if change != nil {
			change(f.now - begin)
		}
		f.m.Read(f.now, &f.r)
		if f.now-begin >= d {
			return
		}
		f.now += DefaultPeriod
	}
}

// use lets counters of used CPU time grow: files of cgroup v2 in usec within their cpu.stat, of v1 in ns alone.
func (f *fixture) useV2(file string, cpus float64, begin, throttled int) func(time.Duration) {
	return func(at time.Duration) {
		f.write(file, fmt.Sprintf("usage_usec %d\nnr_periods %d\nnr_throttled %d\n",
			begin+int(cpus*float64(at.Microseconds())), 100+at/DefaultPeriod, throttled*int(at/DefaultPeriod)/10))
	}
}

func (f *fixture) want(s Signal, value float64, of, from string) {
	f.t.Helper()
	r := f.r[s]
	if r.State != Known || math.Abs(r.Value-value) > 0.5 || r.Of != of || r.From != from {
		f.t.Errorf("%v is %v %.2f of %q from %q (%s), want %.2f of %q from %q", s, r.State, r.Value, r.Of, r.From, r.Why, value, of, from)
	}
	if r.Why != "" {
		f.t.Errorf("%v is known, and says %q", s, r.Why)
	}
}

func (f *fixture) wantAbsent(s Signal, state State, why string) {
	f.t.Helper()
	r := f.r[s]
	if r.State != state || r.Value != 0 || !strings.Contains(r.Why, why) {
		f.t.Errorf("%v is %v %v (%s), want %v because of %q", s, r.State, r.Value, r.Why, state, why)
	}
}

func (f *fixture) read(name string) []byte {
	f.t.Helper()
	b, err := os.ReadFile(f.path(name))
	f.must(err)
	return b
}
