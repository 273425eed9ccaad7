package contender

import "slices"

// limit is the bound of every contender that admits: far above the goroutines of any run, so that nobody is refused.
// full is the bound of every contender that refuses: all of it is taken before the run and given back after it.
const (
	limit = 1000
	full  = 20
)

// Loop makes n calls of body one after another and says how many of them were admitted. It may be used by several
// goroutines at once.
type Loop func(n int, body func() error) (admitted int)

// Contender is one way to guard a call, and one row of the table.
type Contender struct {
	Name   string // its row; unique
	Module string // module whose version is named with it; "" for the language's own means
	Does   string // what exactly one operation does, for the notes below the table
	// Pair marks a bare pair of taking a place and giving it back, with no call between: body is not run.
	Pair bool
	// Refuses marks a contender whose every call is refused: body is not run.
	Refuses bool
	// Setup prepares the contender and returns its loop. What must be undone after the last call is handed to cleanup,
	// as to testing.T.Cleanup.
	Setup func(cleanup func(func())) Loop
}

// Admits returns how many of n calls the contender lets through when it does what it says.
func (c Contender) Admits(n int) int {
	if c.Refuses {
		return 0
	}
	return n
}

// All returns every contender, in the order of the table: admitting ones first.
func All() []Contender {
	all := slices.Concat(baseline, spillway, semaphores, failsafes, gobreakers, aegises, gozeros, hystrixes)
	slices.SortStableFunc(all, func(a, b Contender) int {
		switch {
		case a.Refuses == b.Refuses:
			return 0
		case b.Refuses:
			return -1
		default:
			return 1
		}
	})
	return all
}

// Names of the contenders that a target speaks of.
const (
	Channel       = "buffered channel, pair"
	ChannelAgain  = "the same again (A against A)"
	HandleDo      = "spillway: g.Do"
	KeyDo         = "spillway: guard.Do by key"
	HandleRefused = "spillway: g.Do, full"
	KeyRefused    = "spillway: guard.Do by key, full"
	FailsafeRun   = "failsafe-go: With(bulkhead).Run"
	FailsafeThree = "failsafe-go: With(throttler, breaker, bulkhead).Run"
)
