package watchdog_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/watchdog"
)

const key = "shop/store.Store.Get"

// pen keeps what a watchdog writes.
type pen struct {
	mu   sync.Mutex
	list []watchdog.Report
}

func (p *pen) write(r watchdog.Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, r)
}

// take returns what was written since the last time.
func (p *pen) take() []watchdog.Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.list
	p.list = nil
	return list
}

// watch starts a watchdog over a source, which ends with the test.
func watch(t testing.TB, cfg watchdog.Config) (*watchdog.Watchdog, *pen) {
	t.Helper()
	p := &pen{}
	if cfg.Log == nil {
		cfg.Log = p.write
	}
	w, err := watchdog.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.Start()
	t.Cleanup(w.Close)
	return w, p
}

// elapse lets time pass, and everything that is due happen; only inside a bubble.
func elapse(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// only returns the one report there is.
func only(t testing.TB, list []watchdog.Report) watchdog.Report {
	t.Helper()
	if len(list) != 1 {
		t.Fatalf("%d reports, want one: %v", len(list), list)
	}
	return list[0]
}

// wantStuck checks that a report shows a stack whose innermost function of this package is stuck, that of the calls that are to be shown.
func wantStuck(t testing.TB, r watchdog.Report) {
	t.Helper()
	for _, line := range r.Stack {
		if rest, ok := strings.CutPrefix(line, "github.com/spillway-go/spillway/watchdog_test."); ok {
			if !strings.HasPrefix(rest, "stuck ") {
				t.Errorf("the stack is that of another function:\n%s", strings.Join(r.Stack, "\n"))
			}
			return
		}
	}
	t.Errorf("no stack (%s): %q", r.NoStack, r.Stack)
}

// wantNone checks that a report shows no stack, for the given reason.
func wantNone(t testing.TB, r watchdog.Report, why watchdog.NoStack) {
	t.Helper()
	if len(r.Stack) > 0 || r.NoStack != why {
		t.Errorf("got %q with stack\n%s\nwant no stack: %s", r.NoStack, strings.Join(r.Stack, "\n"), why)
	}
}

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }
