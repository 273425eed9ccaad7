package breaker

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/spillway-go/spillway/internal/clock"
)

// Breaker is a circuit breaker. Its methods are safe for concurrent use. Create it with New.
type Breaker struct {
	cfg Config

	// word mirrors the state for those who do not take the lock: generation | mode 2 | state 2. The generation counts changes of state.
	word  atomic.Uint64
	until atomic.Int64 // the end of open
	since atomic.Int64 // the beginning of the state
	roll  atomic.Int64 // the beginning of the window's next step
	calls atomic.Uint64
	run   atomic.Int64 // failures in a row

	mu       sync.Mutex // guards the rest, and every use of machine. No function of the user's runs under it, but Total
	machine  *gobreaker.CircuitBreaker[struct{}]
	window   window
	failures uint64
	tripping bool   // machine is to open
	why      string // of the next change
	probes   map[uint64]int64
	probe    uint64 // the last one's number
	changes  []Change
	telling  bool // somebody calls OnChange, and will for what is added
}

const (
	stateMask = 3
	modeShift = 2
	modeMask  = 3 << modeShift
	genShift  = 4
	plain     = stateMask | modeMask // both 0: closed, and no mode
)

// New returns a closed breaker. The error lists everything that is wrong with cfg.
func New(cfg Config) (*Breaker, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	b := &Breaker{cfg: cfg, probes: map[uint64]int64{}}
	b.machine = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests:   uint32(cfg.Probes),
		Timeout:       cfg.Open,
		ReadyToTrip:   func(gobreaker.Counts) bool { return b.tripping },
		OnStateChange: b.change,
	})
	now := clock.Now()
	b.since.Store(now)
	b.restart(now)
	return b, nil
}

// Ticket is a call's leave to pass. It must be given to Exit or Report once, in whatever way the call ends; more change nothing. The zero
// Ticket, which comes with an error, may be given too. Do not copy it.
type Ticket struct {
	state ticketState
	mark  uint64 // the generation, or the probe's number
	start int64
}

type ticketState uint8

const (
	spent ticketState = iota
	counted
	probing
)

// Probing reports whether the call is a probe of half-open.
func (t *Ticket) Probing() bool { return t.state == probing }

// Do runs fn if the breaker lets it pass, and returns fn's error untouched; else an *OpenError. A panic or Goexit of fn goes on up and counts as
// a failure.
func (b *Breaker) Do(fn func() error) error {
	t, err := b.Enter()
	if err != nil {
		return err
	}
	out := Failure
	defer func() { b.Report(&t, out) }()
	err = fn()
	out = b.cfg.Judge(err)
	return err
}

// Enter lets a call pass or returns an *OpenError. In half-open the call is a probe: until it ends, or its lease does, it holds one of the
// few places.
func (b *Breaker) Enter() (Ticket, error) {
	if w := b.word.Load(); w&plain == 0 {
		return b.ticket(w), nil
	}
	return b.enter()
}

// ticket is that of a call that is counted in the generation of w.
func (b *Breaker) ticket(w uint64) Ticket {
	t := Ticket{state: counted, mark: w >> genShift}
	if b.cfg.Slow > 0 {
		t.start = clock.Now()
	}
	return t
}

//go:noinline
func (b *Breaker) enter() (Ticket, error) {
	w := b.word.Load()
	now := clock.Now()
	switch mode, state := Mode(w&modeMask>>modeShift), State(w&stateMask); {
	case mode == ForceOpen:
		return Ticket{}, b.refusal(b.cfg.Open)
	case state == Closed:
		return b.ticket(w), nil
	case mode == ForceClosed:
		return Ticket{}, nil
	case state == Open && now <= b.until.Load():
		return Ticket{}, b.refusal(time.Duration(b.until.Load() - now))
	}
	b.mu.Lock()
	defer b.unlock()
	switch left := b.vacancy(now); {
	case b.state() == Closed: // meanwhile
		return b.ticket(b.word.Load()), nil
	case left > 0:
		return Ticket{}, b.refusal(left)
	}
	b.probe++
	b.probes[b.probe] = now + int64(b.cfg.Lease)
	return Ticket{state: probing, mark: b.probe, start: now}, nil
}

// Left is 0 if Enter would let a call pass now, and otherwise for how long it will let none pass.
func (b *Breaker) Left() time.Duration {
	w := b.word.Load()
	if w&plain == 0 {
		return 0
	}
	switch Mode(w & modeMask >> modeShift) {
	case ForceOpen:
		return b.cfg.Open
	case ForceClosed:
		return 0
	default:
	}
	now := clock.Now()
	if until := b.until.Load(); State(w&stateMask) == Open && now <= until {
		return time.Duration(max(1, until-now))
	}
	b.mu.Lock()
	defer b.unlock()
	return b.vacancy(now)
}

// vacancy lets machine go on to half-open if it is time, and returns 0 if a probe may pass now, else for how long none may. Under mu.
func (b *Breaker) vacancy(now int64) time.Duration {
	b.why = "it was open for " + b.cfg.Open.String()
	b.machine.State()
	if b.state() == HalfOpen {
		b.expire(now)
	}
	if s := b.state(); s == Open {
		return time.Duration(max(1, b.until.Load()-now))
	} else if s == Closed {
		return 0
	}
	if len(b.probes)+int(b.machine.Counts().ConsecutiveSuccesses) < b.cfg.Probes {
		return 0
	}
	next := now + int64(b.cfg.Lease)
	for _, end := range b.probes {
		next = min(next, end)
	}
	return time.Duration(max(1, next-now))
}

func (b *Breaker) state() State { return State(b.word.Load() & stateMask) }

func (b *Breaker) refusal(after time.Duration) error {
	return &OpenError{Name: b.cfg.Name, RetryAfter: after}
}

// Exit ends a call that returned err, whose meaning Config.Judge says.
func (b *Breaker) Exit(t *Ticket, err error) { b.Report(t, b.cfg.Judge(err)) }

// Report ends a call. What it says does not count if the state has changed since it began, but for a probe whose lease still runs.
func (b *Breaker) Report(t *Ticket, out Outcome) {
	x := *t
	*t = Ticket{}
	if x.state == spent {
		return
	}
	now := int64(0)
	if out == Success && b.cfg.Slow > 0 {
		if now = clock.Now(); now-x.start > int64(b.cfg.Slow) {
			out = Failure
		}
	}
	switch {
	case x.state == probing:
		b.endProbe(x.mark, out)
	case out == Failure:
		b.fail(x.mark)
	case out == Success && b.word.Load()>>genShift == x.mark:
		b.succeed(now)
	}
}

func (b *Breaker) succeed(now int64) {
	if b.run.Load() != 0 {
		b.run.Store(0)
	}
	if b.cfg.Total != nil {
		return
	}
	if now == 0 {
		now = clock.Now()
	}
	if now >= b.roll.Load() {
		b.Tick()
	}
	b.calls.Add(1)
}

// Failed is for the caller with a Total of its own: a call failed that began at a reading of package clock. It does not count if the state has
// changed since. It does not look at the clock, so that Tick must be called.
func (b *Breaker) Failed(start int64) {
	if b.state() != Closed {
		return
	}
	b.mu.Lock()
	if b.state() == Closed && start >= b.since.Load() {
		b.failure(start)
	}
	b.unlock()
}

// fail counts a failure of the generation that it began in.
func (b *Breaker) fail(generation uint64) {
	b.mu.Lock()
	defer b.unlock()
	if w := b.word.Load(); State(w&stateMask) == Closed && w>>genShift == generation {
		b.failure(clock.Now())
	}
}

// failure counts one and opens the breaker if it is one too many. Under mu, in closed.
func (b *Breaker) failure(now int64) {
	b.step(now)
	b.failures++
	run := int64(0)
	if b.cfg.Total == nil { // else neither is anybody's to ask
		b.calls.Add(1)
		run = b.run.Add(1)
	}
	calls, failures := b.inWindow()
	switch {
	case b.cfg.Consecutive > 0 && run >= int64(b.cfg.Consecutive):
		b.why = counts(uint64(run)) + " in a row"
	case calls >= uint64(b.cfg.Min) && float64(failures) >= b.cfg.Ratio*float64(calls):
		b.why = share(failures, calls, b.cfg.Window)
	default:
		return
	}
	b.tripping = true
	_, _ = b.machine.Execute(failed) // its error is ours
	b.tripping = false
}

// endProbe tells machine of a probe, the first time and while its lease runs.
func (b *Breaker) endProbe(number uint64, out Outcome) {
	b.mu.Lock()
	defer b.unlock()
	if _, ok := b.probes[number]; !ok {
		return
	}
	if b.expire(clock.Now()); b.state() != HalfOpen {
		return
	}
	delete(b.probes, number)
	switch out {
	case Success:
		b.why = counts(uint64(b.cfg.Probes)) + " probes succeeded"
		_, _ = b.machine.Execute(succeeded)
	case Failure:
		b.why = "a probe failed"
		_, _ = b.machine.Execute(failed)
	default: // its place is free for another
	}
}

// expire fails the probes whose lease has ended. Under mu, in half-open.
func (b *Breaker) expire(now int64) {
	for number, end := range b.probes {
		if end > now {
			continue
		}
		delete(b.probes, number)
		b.why = "a probe did not end within " + b.cfg.Lease.String()
		_, _ = b.machine.Execute(failed)
		return // it is open, and the other probes do not count
	}
}

// What machine is told: it runs nothing else.
func succeeded() (struct{}, error) { return struct{}{}, nil }
func failed() (struct{}, error)    { return struct{}{}, errFailed }
