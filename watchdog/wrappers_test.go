package watchdog_test

import (
	"testing"

	"github.com/spillway-go/spillway/watchdog"
)

type server struct{ *stage }

func (s server) handle(work func()) { scoped(s.Ledger, work) }

//go:noinline
func (s server) direct(work func()) {
	p := s.EnterScoped(key)
	defer p.Exit()
	work()
}

type handler interface{ direct(work func()) }

type wrapping struct{ server }

// Between the function that entered and its caller may be the compiler's wrappers, which no profile shows.
func TestW1PassThroughWrappers(t *testing.T) {
	for name, call := range map[string]func(s *stage){
		"method value":    func(s *stage) { call(server{s}.direct, func() { stuck(s.leave) }) },
		"interface":       func(s *stage) { callHandler(&server{s}, func() { stuck(s.leave) }) },
		"promoted method": func(s *stage) { callHandler(wrapping{server{s}}, func() { stuck(s.leave) }) },
		"inlined":         func(s *stage) { server{s}.handle(func() { stuck(s.leave) }) },
		"generic":         func(s *stage) { generic(s.Ledger, 1, func() { stuck(s.leave) }) },
	} {
		t.Run(name, func(t *testing.T) {
			scene(t, func(t *testing.T, s *stage) {
				go call(s)
				wantStuck(t, only(t, s.slow()))
			})
		})
	}
	scene(t, func(t *testing.T, s *stage) {
		go server{s}.direct(func() { stuck(s.leave) })
		wantStuck(t, only(t, s.slow()))
	})
}

//go:noinline
func call(f func(func()), work func()) { f(work) }

//go:noinline
func callHandler(h handler, work func()) { h.direct(work) }

func generic[T any](l *watchdog.Ledger, _ T, work func()) {
	p := l.EnterScoped(key)
	defer p.Exit()
	work()
}
