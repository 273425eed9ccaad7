package breaker

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sony/gobreaker/v2"
)

// memoryStore is a store of gobreaker's in memory.
type memoryStore struct {
	mu     sync.Mutex
	held   map[string]bool
	data   map[string][]byte
	onLock func()
}

func newMemoryStore() *memoryStore {
	return &memoryStore{held: map[string]bool{}, data: map[string][]byte{}}
}

var errHeld = errors.New("the lock is held")

func (s *memoryStore) Lock(name string) error {
	if hook := s.onLock; hook != nil {
		s.onLock = nil
		hook()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[name] {
		return errHeld
	}
	s.held[name] = true
	return nil
}

func (s *memoryStore) Unlock(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, name)
	return nil
}

func (s *memoryStore) GetData(name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data[name], nil
}

func (s *memoryStore) SetData(name string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data[name] = data
	return nil
}

// Why the state is not shared through gobreaker's store: it reads the state before it takes the lock, so that of two
// failures at once one is lost, and a call waits for a lock that somebody else holds, for five seconds.
func TestGobreakersSharedStoreIsNotSafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemoryStore()
		member := func() *gobreaker.DistributedCircuitBreaker[struct{}] {
			cb, err := gobreaker.NewDistributedCircuitBreaker[struct{}](store, gobreaker.Settings{
				ReadyToTrip: func(c gobreaker.Counts) bool { return c.TotalFailures >= 2 },
			})
			if err != nil {
				t.Fatal(err)
			}
			return cb
		}
		first, second := member(), member()
		store.onLock = func() { _, _ = second.Execute(failed) } // after first has read the state
		_, _ = first.Execute(failed)
		if s, err := first.State(); err != nil || s != gobreaker.StateClosed {
			t.Errorf("gobreaker counts both failures by now: %v, %v", s, err)
		}

		if err := store.Lock("gobreaker:mutex:"); err != nil { // by a process that has stopped
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := first.Execute(succeeded); !errors.Is(err, errHeld) {
			t.Errorf("gobreaker no longer needs the lock: %v", err)
		}
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("a call waited %v for the lock, no longer five seconds", took)
		}
	})
}
