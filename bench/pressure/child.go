package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/pressure"
)

// childRole is set in the environment of the processes that are loaded.
const childRole = "SPILLWAY_BENCH_PRESSURE"

// The kinds of load.
const (
	loadSpin   = "8 busy goroutines"
	loadOpen   = "130 % open load"
	loadSteady = "85 % steady load"
)

const (
	jobTime  = 2 * time.Millisecond // of CPU
	spinners = 8
)

// job is what a loaded process is told.
type job struct {
	Load   string        `json:"load"`
	Quota  float64       `json:"quota"` // CPUs; 0: none
	Random bool          `json:"random"`
	Idle   time.Duration `json:"idle"`
	Lasts  time.Duration `json:"lasts"`
}

// trace is what it saw. Times count from the beginning of the load.
type trace struct {
	Job   job     `json:"job"`
	CPUs  float64 `json:"cpus"` // what the process may use
	Used  float64 `json:"used"` // of it, in per cent, over the load
	Looks []look  `json:"looks,omitempty"`
}

// look is what one caller was told.
type look struct {
	At     time.Duration `json:"at"`
	Values []float64     `json:"values"` // by signal
	Alarms uint32        `json:"alarms"` // one bit for each signal
}

// limits switch everything on, so that all can be compared. The first four are the defaults.
func limits() pressure.Limits {
	return pressure.Limits{Latency: 10, HostCPU: 90, Load1: float64(runtime.NumCPU()), PressureCPU: 20}
}

// spawn runs a job in a process of its own.
func spawn(ctx context.Context, j job, group *quotaGroup) (trace, error) {
	var t trace
	self, err := os.Executable()
	if err != nil {
		return t, err
	}
	ctx, cancel := context.WithTimeout(ctx, j.Idle+10*j.Lasts+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), childRole+"=1")
	cmd.Stderr = os.Stderr
	var out bytes.Buffer
	cmd.Stdout = &out
	in, err := cmd.StdinPipe()
	if err != nil {
		return t, err
	}
	if err := cmd.Start(); err != nil {
		return t, err
	}
	// The child waits for its job, so that it is in the group before it begins.
	if group != nil {
		err = group.add(cmd.Process.Pid)
	}
	if err == nil {
		err = json.NewEncoder(in).Encode(j)
	}
	in.Close()
	if err != nil {
		cancel()
	}
	if wait := cmd.Wait(); err == nil {
		err = wait
	}
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &t)
	}
	return t, err
}

func child(in io.Reader, out io.Writer) error {
	var j job
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return err
	}
	// The quota came after the start, when the runtime looked at it. This is what it makes of half a CPU.
	procs := runtime.GOMAXPROCS(0)
	cpus := float64(procs)
	if j.Quota > 0 {
		procs = max(2, int(j.Quota+0.999))
		runtime.GOMAXPROCS(procs)
		cpus = j.Quota
	}
	s, err := pressure.New(pressure.Config{Limits: limits()})
	if err != nil {
		return err
	}
	s.Start()
	r := &recorder{s: s, begin: time.Now().Add(j.Idle)}
	r.next.Store(math.MinInt64)
	for end := r.begin.Add(-20 * time.Millisecond); time.Now().Before(end); {
		r.look()
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(time.Until(r.begin))
	r.begin = time.Now()
	before := processTime()
	end := r.begin.Add(j.Lasts)
	switch j.Load {
	case loadSpin:
		spin(r, end)
	case loadOpen:
		arrive(r, end, 1.3*cpus, false)
	case loadSteady:
		arrive(r, end, 0.85*cpus, j.Random)
	default:
		return fmt.Errorf("unknown load %q", j.Load)
	}
	t := trace{Job: j, CPUs: cpus}
	t.Used = 100 * float64(processTime()-before) / float64(time.Since(r.begin)) / cpus
	r.mu.Lock()
	t.Looks = r.list
	r.mu.Unlock()
	slices.SortFunc(t.Looks, func(a, b look) int { return cmp.Compare(a.At, b.At) })
	s.Close()
	return json.NewEncoder(out).Encode(t)
}

// spin keeps goroutines busy until the end, and returns then.
func spin(r *recorder, end time.Time) {
	done := make(chan struct{})
	for range spinners {
		go func() {
			for time.Now().Before(end) {
				work(time.Millisecond)
				r.look()
			}
			done <- struct{}{}
		}()
	}
	for range spinners {
		<-done
	}
}

// arrive starts jobs until the end at a rate that asks for so many CPUs, what it costs to start them included. It watches the clock
// itself: under overload a timer's goroutine may not run for minutes.
func arrive(r *recorder, end time.Time, cpus float64, random bool) {
	cost := float64(jobTime)
	before, next := processTime(), time.Now()
	var done atomic.Int64
	for {
		// Jobs that are under way cost as much as those that are done: a pile of them does not slow the arrivals down.
		if n := done.Load(); n >= 50 {
			cost = max(float64(jobTime), float64(processTime()-before)/float64(n))
			cost = min(cost, 1.2*float64(jobTime))
		}
		gap := cost / cpus
		if random {
			gap *= rand.ExpFloat64()
		}
		next = next.Add(time.Duration(gap))
		if next.After(end) {
			return
		}
		if d := time.Until(next); d > 0 {
			time.Sleep(d)
		}
		if time.Now().After(end) {
			return
		}
		go func() {
			r.look()
			work(jobTime)
			done.Add(1)
		}()
	}
}

// recorder writes down what callers are told, every 5 ms at most.
type recorder struct {
	s     *pressure.Sampler
	begin time.Time
	next  atomic.Int64
	mu    sync.Mutex // guards list
	list  []look
}

func (r *recorder) look() {
	now := time.Since(r.begin)
	next := r.next.Load()
	if int64(now) < next || !r.next.CompareAndSwap(next, int64(now+5*time.Millisecond)) {
		return
	}
	sample := r.s.Latest()
	l := look{At: now, Values: make([]float64, 0, len(sample.Readings))}
	for _, reading := range sample.Readings {
		v := reading.Value
		if reading.State != pressure.Known {
			v = -1
		}
		l.Values = append(l.Values, v)
	}
	for _, reason := range sample.Reasons() {
		l.Alarms |= 1 << reason.Signal
	}
	r.mu.Lock()
	r.list = append(r.list, l)
	r.mu.Unlock()
}
