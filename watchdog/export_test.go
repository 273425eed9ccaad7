package watchdog

import (
	"runtime"
	"testing"

	"github.com/spillway-go/spillway/internal/clock"
)

// Dumper takes dumps without a watchdog's schedule.
type Dumper struct {
	source Source
	cfg    Config
	probe  *Mark
}

// NewDumper returns a dumper for the calls of a source.
func NewDumper(s Source) *Dumper {
	cfg := Config{}.withDefaults()
	cfg.MaxFrames = 200
	return &Dumper{s, cfg, NewMark()}
}

// Shown is what a dump says of a call.
type Shown struct {
	Call

	Stack   []string
	NoStack NoStack
}

// Dump takes a profile for the late calls and returns what it shows of those that are not over.
func (d *Dumper) Dump() (list []Shown) {
	var calls []*watched
	d.source.Late(clock.Now(), func(c Call) { calls = append(calls, &watched{Call: c}) })
	takeDump(calls, d.probe, &d.cfg, func(p *dump) {
		for _, c := range calls {
			i, no := p.stackOf(&c.Call)
			if c.Place.Holds(c.Identity) {
				list = append(list, Shown{c.Call, p.stacks.at(i), no})
			}
		}
	})
	return list
}

// Steps takes a dump of a source's late calls with a pause before and after its profile.
func (d *Dumper) Steps(before, after func()) (list []Shown) {
	var calls []*watched
	d.source.Late(clock.Now(), func(c Call) { calls = append(calls, &watched{Call: c}) })
	p := &dump{stacks: stacks{maxFrames: d.cfg.MaxFrames, maxBytes: d.cfg.MaxBytes}}
	dumping.Lock()
	defer dumping.Unlock()
	p.choose(calls, d.probe)
	before()
	p.profile(d.probe)
	after()
	p.count()
	for _, c := range calls {
		i, no := p.stackOf(&c.Call)
		list = append(list, Shown{c.Call, p.stacks.at(i), no})
	}
	return list
}

// NeedsMarks fails a test in a build whose goroutines cannot be marked.
func NeedsMarks(t testing.TB) {
	t.Helper()
	if !usable() {
		t.Error("goroutines of this build cannot be marked")
	}
}

// Marks is how many marks are known.
func Marks() int {
	marks.mu.Lock()
	defer marks.mu.Unlock()
	return len(marks.byID)
}

// Parts are the first two addresses of a Site.
func Parts(s Site) [2]uintptr { return [2]uintptr{s.pc, s.outer} }

func entryName(pc uint64) string {
	if f := runtime.FuncForPC(uintptr(pc) - 1); f != nil {
		return f.Name()
	}
	return ""
}
