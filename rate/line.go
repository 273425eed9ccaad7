package rate

import (
	"slices"
	"sync"
)

// lines are the calls that wait, in a line for each key. Nobody passes them: while there is a line, Allow and Take
// of the key refuse.
type lines struct {
	mu    sync.Mutex           // guards all below; the last of the locks: no other is taken under it
	byKey map[string][]*waiter // no line is empty
}

// waiter is a call in a line. The first of a line tries; the others wait to become the first.
type waiter struct {
	n int64
	// poke holds one word: you are the first now, or something has changed. Nobody blocks on sending.
	poke chan struct{}
}

func (w *waiter) wake() {
	select {
	case w.poke <- struct{}{}:
	default:
	}
}

func (l *lines) join(key string, n int64) *waiter {
	w := &waiter{n: n, poke: make(chan struct{}, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey == nil {
		l.byKey = map[string][]*waiter{}
	}
	l.byKey[key] = append(l.byKey[key], w)
	return w
}

func (l *lines) first(key string, w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byKey[key][0] == w
}

func (l *lines) leave(key string, w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.byKey[key]
	i := slices.Index(line, w)
	line = slices.Delete(line, i, i+1)
	if len(line) == 0 {
		delete(l.byKey, key)
		return
	}
	l.byKey[key] = line
	line[0].wake()
}

// ahead is what those in a key's line ask for together, 0 without a line. Of a long one the first count: a newcomer who is told a
// time too early finds the line again.
func (l *lines) ahead(key string) (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.byKey[key]
	for _, w := range line[:min(len(line), 64)] {
		n += w.n
	}
	return n
}

// kick makes the first of a key's line try again: something was given back.
func (l *lines) kick(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if line := l.byKey[key]; line != nil {
		line[0].wake()
	}
}

// kickAll makes the first of every line try again: the rate is another one, or what is shared has changed.
func (l *lines) kickAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.byKey {
		line[0].wake()
	}
}
