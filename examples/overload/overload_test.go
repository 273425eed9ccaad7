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
	exe := build(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, exe, "-json", "-duration", "10s", "-quick", "250")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var r Report
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatalf("reading the report: %v\n%s", err, stdout.String())
	}
	g, u := r.side(Guarded), r.side(Unguarded)
	if g == nil || u == nil || len(g.Phases) != 5 || len(u.Phases) != 5 {
		t.Fatalf("want five phases of both sides:\n%s", stdout.String())
	}
	defer func() {
		if t.Failed() {
			var text bytes.Buffer
			_ = r.writeText(&text, paint{})
			t.Logf("\n%s", text.String())
		}
	}()
	logged := func(name string, u, g any) { t.Logf("%-34s unguarded %8.4v   guarded %8.4v", name, u, g) }

	// As long as there is room the two do not differ.
	for _, side := range []*SideReport{u, g} {
		if calm := side.Phases[Calm]; calm.Quick.Success < 0.99 || calm.Slow.Success < 0.99 {
			t.Errorf("%s, calm: /quick serves %.3f, /slow %.3f of what arrives, want all", side.Side, calm.Quick.Success, calm.Slow.Success)
		}
	}

	// Burst: the slow endpoint serves what it can, against collapse.
	share := func(s *SideReport) float64 { return s.Phases[Burst].Slow.Goodput / r.Capacity }
	logged("burst: /slow, share of capacity", share(u), share(g))
	// On a busy machine a call takes longer than the dependency says, for want
	// of a CPU on the way; the capacity is what it is then.
	call := fromMS(g.Phases[Burst].Slow.CallMS)
	capacity := min(r.Capacity, Behaviour{Delay: call}.capacity(r.SlowPlaces))
	t.Logf("burst: a call takes %v, so that %d places serve %.0f/s; %.0f/s on a machine without noise", call, r.SlowPlaces, capacity, r.Capacity)
	if served := g.Phases[Burst].Slow.Goodput; served < 0.9*capacity {
		t.Errorf("burst: guarded /slow serves %.0f/s, want at least 90 %% of its capacity of %.0f/s", served, capacity)
	}
	if share(u) > 0.5 {
		t.Errorf("burst: unguarded /slow serves %.3f of the capacity, want collapse: the example shows nothing", share(u))
	}
	if refused := g.Phases[Burst].Slow.Refused; refused == 0 {
		t.Error("burst: nothing was refused with 503 and Retry-After")
	}

	// The dependency slows and hangs: the quick endpoint does not notice,
	// against starvation on the shared pool.
	calm := g.Phases[Calm]
	for _, i := range []int{Slowed, Hang} {
		phase, other := g.Phases[i], u.Phases[i]
		logged(phase.Name+": /quick, success", other.Quick.Success, phase.Quick.Success)
		logged(phase.Name+": /quick, p99 in ms", other.Quick.P99MS, phase.Quick.P99MS)
		if phase.Quick.Success < 0.99 {
			t.Errorf("%s: guarded /quick serves %.4f, want at least 0.99", phase.Name, phase.Quick.Success)
		}
		if other.Quick.Success > 0.6 {
			t.Errorf("%s: unguarded /quick serves %.3f, want starvation: the example shows nothing", other.Name, other.Quick.Success)
		}
		// Three processes wait for a CPU on the way of a request. When the
		// sender, which does nothing but wait for its time, was later than in
		// the calm phase, the machine is to blame for as much in each.
		noise := fromMS(3 * max(0, phase.LatenessMS-calm.LatenessMS))
		if p99, most := fromMS(phase.Quick.P99MS), allowedP99(fromMS(calm.Quick.P99MS)); p99 > most+noise {
			t.Errorf("%s: guarded /quick has a p99 of %v, want at most %v (+ %v of noise)", phase.Name, p99, most, noise)
		}
	}

	// Never more inside the guards than they have places and waiting room.
	for _, phase := range g.Phases {
		for _, e := range []struct {
			name         string
			got          EndpointReport
			places, room int
		}{{"/quick", phase.Quick, r.QuickPlaces, r.QuickRoom}, {"/slow", phase.Slow, r.SlowPlaces, r.SlowRoom}} {
			if e.got.Running > e.places {
				t.Errorf("%s: %d requests at one time inside the handler of %s, which has %d places", phase.Name, e.got.Running, e.name, e.places)
			}
			if e.got.Inside > e.places+e.room {
				t.Errorf("%s: %d calls at one time inside the guard of %s, which has %d places and room for %d",
					phase.Name, e.got.Inside, e.name, e.places, e.room)
			}
			if e.got.Inside == 0 {
				t.Errorf("%s: the guard of %s saw nobody", phase.Name, e.name)
			}
		}
	}
	logged("burst: /slow, most in the handler", u.Phases[Burst].Slow.Running, g.Phases[Burst].Slow.Running)

	// Recovery.
	logged("recovery in ms", u.RecoveryMS, g.RecoveryMS)
	if g.RecoveryMS < 0 || fromMS(g.RecoveryMS) > 2*time.Second {
		t.Errorf("recovery took %v ms (-1: did not happen), want at most 2 s", g.RecoveryMS)
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
			defer cmd.Process.Kill()
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
