package guardtest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeTB is a test that may fail.
type fakeTB struct {
	testing.TB // nil: what is not here must not be called

	mu       sync.Mutex // guards the rest
	errors   []string
	fatal    bool
	cleanups []func()
}

func (f *fakeTB) Helper() {}

func (f *fakeTB) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

func (f *fakeTB) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	f.fatal = true
}

func (f *fakeTB) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }

// end runs the cleanups, last first.
func (f *fakeTB) end() {
	for _, c := range slices.Backward(f.cleanups) {
		c()
	}
}

// take returns what was reported since the last time.
func (f *fakeTB) take() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := strings.Join(f.errors, "\n")
	f.errors = nil
	return s
}

// wantError fails the true test unless the fake one failed with all of the words.
func wantError(t *testing.T, f *fakeTB, words ...string) {
	t.Helper()
	got := f.take()
	if got == "" {
		t.Errorf("the assertion did not fail, want %q", words)
	}
	for _, w := range words {
		if !strings.Contains(got, w) {
			t.Errorf("the assertion says\n%s\nwhich lacks %q", got, w)
		}
	}
}

// newFake returns a runtime whose assertions may fail.
func newFake(t *testing.T) (*Runtime, *fakeTB) {
	t.Helper()
	f := &fakeTB{}
	rt := New(f)
	t.Cleanup(func() {
		f.end()
		if s := f.take(); s != "" {
			t.Errorf("not expected: %s", s)
		}
	})
	return rt, f
}
