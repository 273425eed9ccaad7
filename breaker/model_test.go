package breaker

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sony/gobreaker/v2"
	"pgregory.net/rapid"

	"github.com/spillway-go/spillway/internal/clock"
)

// The reference is written down plainly: a list of every call with its time, and the three states.
type reference struct {
	cfg    Config
	state  State
	since  time.Time // of the state
	ended  []ended   // while closed
	row    int
	probes []*refProbe
	passed int // probes that succeeded in a row
}

type ended struct {
	at     time.Time
	failed bool
}

type refProbe struct {
	end  time.Time
	over bool
}

func (r *reference) become(s State) {
	r.state, r.since = s, time.Now()
	r.ended, r.probes, r.row, r.passed = nil, nil, 0, 0
}

// pass reports whether a call may begin, and as which probe.
func (r *reference) pass() (bool, *refProbe) {
	now := time.Now()
	if r.state == Open && now.Sub(r.since) > r.cfg.Open {
		r.become(HalfOpen)
	}
	if r.state == HalfOpen {
		r.expire()
	}
	if r.state != HalfOpen {
		return r.state == Closed, nil
	}
	running := 0
	for _, p := range r.probes {
		if !p.over {
			running++
		}
	}
	if running+r.passed >= r.cfg.Probes {
		return false, nil
	}
	p := &refProbe{end: now.Add(r.cfg.Lease)}
	r.probes = append(r.probes, p)
	return true, p
}

func (r *reference) expire() {
	for _, p := range r.probes {
		if !p.over && !time.Now().Before(p.end) {
			r.become(Open)
			return
		}
	}
}

// end is a call's end; begun is the moment of the state that it began in.
func (r *reference) end(p *refProbe, begun time.Time, state State, out Outcome) {
	switch {
	case p != nil:
		if p.over || r.state != HalfOpen || !begun.Equal(r.since) {
			return
		}
		if r.expire(); r.state != HalfOpen {
			return
		}
		p.over = true
		if out == Failure {
			r.become(Open)
		}
		if out == Success {
			r.passed++
		}
		if r.passed >= r.cfg.Probes {
			r.become(Closed)
		}
	case out == Ignored || r.state != Closed || state != Closed || !begun.Equal(r.since):
	default:
		r.ended = append(r.ended, ended{time.Now(), out == Failure})
		if r.row++; out == Success {
			r.row = 0
			return
		}
		calls, failures := r.window()
		if r.cfg.Consecutive > 0 && r.row >= r.cfg.Consecutive || calls >= r.cfg.Min && float64(failures) >= r.cfg.Ratio*float64(calls) {
			r.become(Open)
		}
	}
}

// window are the calls of the present step, counted from the beginning of the state, and the nine before.
func (r *reference) window() (calls, failures int) {
	length := r.cfg.Window / steps
	step := func(at time.Time) int { return int(at.Sub(r.since) / length) }
	for _, e := range r.ended {
		if step(e.at) > step(time.Now())-steps {
			calls++
			if e.failed {
				failures++
			}
		}
	}
	return calls, failures
}

// Random calls, one inside another or one after another, as time goes by: the breaker is where the reference is.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Config{
			Ratio: rapid.SampledFrom([]float64{0.1, 0.5, 1}).Draw(rt, "ratio"), Min: rapid.IntRange(1, 6).Draw(rt, "min"),
			Consecutive: rapid.SampledFrom([]int{0, 0, 3}).Draw(rt, "consecutive"),
			Window:      time.Second, Open: 300 * time.Millisecond, Probes: rapid.IntRange(1, 3).Draw(rt, "probes"), Lease: 200 * time.Millisecond,
		}
		type op struct{ kind, which, wait int }
		program := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) op {
			return op{rapid.IntRange(0, 6).Draw(rt, "kind"), rapid.IntRange(0, 9).Draw(rt, "which"), rapid.SampledFrom([]int{1, 7, 50, 130, 301, 1200}).Draw(rt, "wait")}
		}), 1, 120).Draw(rt, "program")
		problem := ""
		synctest.Test(t, func(*testing.T) {
			b, err := New(cfg)
			if err != nil {
				problem = err.Error()
				return
			}
			r := &reference{cfg: b.cfg}
			r.become(Closed)
			type call struct {
				ticket Ticket
				probe  *refProbe
				begun  time.Time
				state  State
			}
			var calls []*call
			for i, o := range program {
				switch {
				case o.kind <= 2 || len(calls) == 0:
					want, probe := r.pass()
					if ready := b.Left() == 0; ready != want {
						problem = fmt.Sprintf("step %d: ready %v, want %v", i, ready, want)
						return
					}
					ticket, err := b.Enter()
					if (err == nil) != want {
						problem = fmt.Sprintf("step %d: Enter says %v, want a call: %v", i, err, want)
						return
					}
					if want {
						calls = append(calls, &call{ticket, probe, r.since, r.state})
					}
				case o.kind <= 5:
					n := o.which % len(calls)
					c, out := calls[n], Outcome(o.kind-3)
					calls = append(calls[:n], calls[n+1:]...)
					r.end(c.probe, c.begun, c.state, out)
					b.Report(&c.ticket, out)
				default:
					<-time.After(time.Duration(o.wait) * time.Millisecond)
				}
				s := b.Snapshot()
				if s.State != r.state {
					problem = fmt.Sprintf("step %d: %v, want %v", i, s.State, r.state)
					return
				}
				if n, failures := r.window(); s.State == Closed && (int(s.Calls) != n || int(s.Failures) != failures) {
					problem = fmt.Sprintf("step %d: %d of %d calls failed, want %d of %d", i, s.Failures, s.Calls, failures, n)
					return
				}
			}
		})
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}

// Calls that end before the next begins: gobreaker with a window of ten buckets, which is asked about each, decides the same at every step. So
// does the breaker of a caller who counts the calls by himself and moves the window on as time goes by.
func TestEqualsGobreakerCallByCall(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		minimum := rapid.IntRange(1, 10).Draw(rt, "min")
		ratio := rapid.SampledFrom([]float64{0.1, 0.3, 0.5, 1}).Draw(rt, "ratio")
		probes := rapid.IntRange(1, 4).Draw(rt, "probes")
		program := rapid.SliceOfN(rapid.IntRange(0, 40), 1, 400).Draw(rt, "program")
		problem := ""
		synctest.Test(t, func(*testing.T) {
			cb := gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
				MaxRequests: uint32(probes), Interval: time.Second, BucketPeriod: 100 * time.Millisecond, Timeout: 500 * time.Millisecond,
				ReadyToTrip: func(c gobreaker.Counts) bool {
					return c.Requests >= uint32(minimum) && float64(c.TotalFailures) >= ratio*float64(c.Requests)
				},
			})
			cfg := Config{Ratio: ratio, Min: minimum, Window: time.Second, Open: 500 * time.Millisecond, Probes: probes}
			b, err := New(cfg)
			if err != nil {
				problem = err.Error()
				return
			}
			var total uint64
			cfg.Total = func() uint64 { return total }
			driven, err := New(cfg)
			if err != nil {
				problem = err.Error()
				return
			}
			for i, n := range program {
				if n >= 30 { // time goes by, an odd amount, so that nothing falls on the border of two steps
					for range n - 29 {
						<-time.After(37*time.Millisecond + 13*time.Microsecond)
						driven.Tick()
					}
					continue
				}
				call := func() error {
					if n < 12 {
						return errWork
					}
					return nil
				}
				_, want := cb.Execute(func() (struct{}, error) { return struct{}{}, call() })
				got := b.Do(call)
				if refusedBy(want) != refusedBy(got) {
					problem = fmt.Sprintf("step %d: gobreaker says %v, we %v", i, want, got)
					return
				}
				if ticket, err := driven.Enter(); refusedBy(err) != refusedBy(want) {
					problem = fmt.Sprintf("step %d: gobreaker says %v, the driven one %v", i, want, err)
					return
				} else if err == nil {
					total++
					if err := call(); err != nil && !ticket.Probing() {
						driven.Failed(clock.Now())
					} else {
						driven.Exit(&ticket, err)
					}
				}
				for name, x := range map[string]*Breaker{"our": b, "the driven one's": driven} {
					if s := stateOf(cb.State()); s != x.Snapshot().State {
						problem = fmt.Sprintf("step %d: gobreaker is %v, %s state is %v", i, s, name, x.Snapshot().State)
						return
					}
				}
			}
		})
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}

func refusedBy(err error) bool { return err != nil && err != errWork } //nolint:errorlint // it is that one itself
