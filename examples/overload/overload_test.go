package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/internal/quiet"
)

// build makes the program, as "go run" does.
func build(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes and plays for a while")
	}
	exe := filepath.Join(t.TempDir(), "overload")
	if runtime.GOOS == "windows" {
		exe += ".exe"
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", exe, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return exe
}

// TestOverload plays a shortened script on both sides, in processes of their
// own, and holds the figures against what the README says of them.
func TestOverload(t *testing.T) {
	r := playBoth(t)
	t.Run("calm", r.calm)
	t.Run("burst", r.burst)
	for _, i := range []int{Slowed, Hang} {
		t.Run(r.g.Phases[i].Name, func(t *testing.T) { r.neighbour(t, i) })
	}
	t.Run("bound", r.bound)
	t.Run("recovery", r.recovery)
	t.Run("story", r.story)
	if t.Failed() {
		var text bytes.Buffer
		_ = r.writeText(&text, paint{})
		t.Logf("\n%s", text.String())
	}
}

// bothSides is a report with its sides at hand.
type bothSides struct {
	*Report
	g, u *SideReport
}

func playBoth(t *testing.T) bothSides {
	t.Helper()
	exe := build(t)
	quiet.Wait(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, exe, "-json", "-duration", "10s", "-quick", "250")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	r := bothSides{Report: new(Report)}
	if err := json.Unmarshal(stdout.Bytes(), r.Report); err != nil {
		t.Fatalf("reading the report: %v\n%s", err, stdout.String())
	}
	r.g, r.u = r.side(Guarded), r.side(Unguarded)
	if r.g == nil || r.u == nil || len(r.g.Phases) != 5 || len(r.u.Phases) != 5 {
		t.Fatalf("want five phases of both sides:\n%s", stdout.String())
	}
	return r
}

// calm: as long as there is room the two sides do not differ.
func (r bothSides) calm(t *testing.T) {
	for _, side := range r.Sides {
		calm := &side.Phases[Calm]
		t.Logf("%s: /quick serves %.4f, p99 %v ms; /slow %.4f", side.Side, calm.Quick.Success, calm.Quick.P99MS, calm.Slow.Success)
		if min(calm.Quick.Success, calm.Slow.Success) < 0.95 {
			t.Errorf("%s: /quick serves %.3f, /slow %.3f of what arrives, want nearly all", side.Side, calm.Quick.Success, calm.Slow.Success)
		}
	}
}

// burst: the slow endpoint serves what it can, against collapse.
func (r bothSides) burst(t *testing.T) {
	g, u := &r.g.Phases[Burst].Slow, &r.u.Phases[Burst].Slow
	// On a busy machine a call takes longer than the dependency says, for want
	// of a CPU on the way; the capacity is what it is then.
	call := fromMS(g.CallMS)
	capacity := min(r.Capacity, Behaviour{Delay: call}.capacity(r.SlowPlaces))
	t.Logf("unguarded /slow serves %.0f/s with at most %d inside; guarded %.0f/s with %d", u.Goodput, u.Running, g.Goodput, g.Running)
	t.Logf("capacity %.0f/s; by a call's time of %v here and now %.0f/s", r.Capacity, call, capacity)
	if g.Goodput < 0.9*capacity {
		t.Errorf("guarded /slow serves %.0f/s, want at least 90 %% of its capacity of %.0f/s", g.Goodput, capacity)
	}
	if u.Goodput > 0.5*r.Capacity {
		t.Errorf("unguarded /slow serves %.0f/s, want collapse: the example shows nothing", u.Goodput)
	}
	if g.Refused == 0 || u.Refused != 0 {
		t.Errorf("refused with 503 and Retry-After: %d guarded, %d unguarded, want some and none", g.Refused, u.Refused)
	}
}

// neighbour: while the dependency slows and hangs, the quick endpoint does not
// notice, against starvation on the shared pool.
func (r bothSides) neighbour(t *testing.T, i int) {
	t.Helper()
	calm, g, u := &r.g.Phases[Calm], &r.g.Phases[i], &r.u.Phases[i]
	t.Logf("unguarded /quick serves %.4f, p99 %v ms; guarded %.4f, p99 %v ms", u.Quick.Success, u.Quick.P99MS, g.Quick.Success, g.Quick.P99MS)
	if g.Quick.Success < 0.99 {
		t.Errorf("guarded /quick serves %.4f, want at least 0.99", g.Quick.Success)
	}
	if u.Quick.Success > 0.6 {
		t.Errorf("unguarded /quick serves %.3f, want starvation: the example shows nothing", u.Quick.Success)
	}
	// Three processes wait for a CPU on the way of a request. When the sender,
	// which does nothing but wait for its time, was later than in the calm
	// phase, the machine is to blame for as much in each.
	noise := fromMS(3 * max(0, g.LatenessMS-calm.LatenessMS))
	if p99, most := fromMS(g.Quick.P99MS), allowedP99(fromMS(calm.Quick.P99MS)); p99 > most+noise {
		t.Errorf("guarded /quick has a p99 of %v, want at most %v (+ %v of noise)", p99, most, noise)
	}
}

// bound: never more inside the guards than they have places and waiting room.
func (r bothSides) bound(t *testing.T) {
	check := func(phase, name string, got EndpointReport, places, room int) {
		if got.Running > places {
			t.Errorf("%s: %d requests at one time inside the handler of %s, which has %d places", phase, got.Running, name, places)
		}
		if got.Inside > places+room {
			t.Errorf("%s: %d calls at one time inside the guard of %s, which has %d places and room for %d", phase, got.Inside, name, places, room)
		}
		if got.Inside == 0 {
			t.Errorf("%s: the guard of %s saw nobody", phase, name)
		}
	}
	most := 0
	for _, phase := range r.g.Phases {
		check(phase.Name, "/quick", phase.Quick, r.QuickPlaces, r.QuickRoom)
		check(phase.Name, "/slow", phase.Slow, r.SlowPlaces, r.SlowRoom)
		most = max(most, phase.Slow.Inside)
	}
	t.Logf("at most %d calls inside the guard of /slow, %d places and room for %d", most, r.SlowPlaces, r.SlowRoom)
}

func (r bothSides) recovery(t *testing.T) {
	t.Logf("unguarded %v ms, guarded %v ms", r.u.RecoveryMS, r.g.RecoveryMS)
	if r.g.RecoveryMS < 0 || fromMS(r.g.RecoveryMS) > 2*time.Second {
		t.Errorf("recovery took %v ms (-1: did not happen), want at most 2 s", r.g.RecoveryMS)
	}
}

// story: the bound grew, or the machine forbade it and that was told; the calls that hung were told with their stack, and gave no reason to grow.
func (r bothSides) story(t *testing.T) {
	if r.Grow == nil || r.Hang == nil || len(r.Grow.Bound) == 0 || len(r.Hang.Bound) == 0 {
		t.Fatalf("nothing was told: %+v, %+v", r.Grow, r.Hang)
	}
	t.Logf("grow: %q; hang: %q", r.Grow.Bound, r.Hang.Bound)
	for _, says := range r.Hang.Bound {
		if !strings.HasPrefix(says, "bound stays at 4: ") {
			t.Errorf("while the calls hung: %s", says)
		}
	}
	if !strings.Contains(strings.Join(r.Hang.Stack, "\n"), "main.(*service).call ") {
		t.Errorf("the stack of the call that hung is %q", r.Hang.Stack)
	}
}

// TestNobodyStaysBehind ends the parent in the middle of the play. The
// children hold its standard error open as long as they live.
func TestNobodyStaysBehind(t *testing.T) {
	exe := build(t)
	for _, how := range []struct {
		name   string
		signal os.Signal
		code   int // -1: killed
	}{{"Ctrl-C", os.Interrupt, 130}, {"killed", os.Kill, -1}} {
		t.Run(how.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && how.signal == os.Interrupt {
				t.Skip("Windows cannot send an interrupt to one process")
			}
			cmd := exec.Command(exe)
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cmd.Process.Kill() }() // gone already is what we hope for
			// The first line of figures says that everybody is at work.
			var seen strings.Builder
			for buf := make([]byte, 256); !strings.Contains(seen.String(), " calm "); {
				n, err := stdout.Read(buf)
				seen.Write(buf[:n])
				if err != nil {
					t.Fatalf("%v after:\n%s", err, seen.String())
				}
			}
			if err := cmd.Process.Signal(how.signal); err != nil {
				t.Fatal(err)
			}
			closed := make(chan struct{})
			go func() {
				defer close(closed)
				_, _ = io.Copy(io.Discard, stdout)
				_, _ = io.Copy(io.Discard, stderr)
			}()
			select {
			case <-closed:
			case <-time.After(20 * time.Second):
				t.Fatal("a child is still there 20 s after its parent's end")
			}
			_ = cmd.Wait() // an error says how it ended, which follows
			if code := cmd.ProcessState.ExitCode(); code != how.code {
				t.Errorf("exit code %d, want %d", code, how.code)
			}
		})
	}
}
