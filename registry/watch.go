package registry

import "slices"

// watcher is one registration; its address tells two of the same function apart.
type watcher struct{ fn func(changed []Key) }

// Watch has fn called after each change that took effect, with the keys in order
// that were declared, replaced or removed, or with nil when the default spec
// changed. A change that makes nothing different is not reported.
//
// fn runs on the goroutine that made the change, before that change returns, and
// outside the registry's lock: it may call anything here, stop included. Two
// changes at the same time may be reported in either order, so fn should read the
// specs anew with Lookup instead of counting on the order; it then always ends
// with the latest. fn owns the slice.
//
// If fn panics the change stays in effect and the other watchers are told; then the panic goes on to who made the
// change.
//
// After stop has returned, fn is not called for changes that begin later; one that
// is under way may still call it. Calling stop again does nothing.
func (r *Registry) Watch(fn func(changed []Key)) (stop func()) {
	if fn == nil {
		return func() {}
	}
	w := &watcher{fn: fn}
	r.mu.Lock()
	defer r.mu.Unlock()
	// A change that is being reported goes on with the list it started with.
	r.watchers = append(slices.Clone(r.watchers), w)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.watchers = slices.DeleteFunc(slices.Clone(r.watchers), func(o *watcher) bool { return o == w })
	}
}

// notify reports changed keys; none changed, none is told. The caller must not
// hold the registry's lock.
func notify(watchers []*watcher, changed []Key) {
	if len(changed) == 0 {
		return
	}
	tell(watchers, changed)
}

// tell calls every watcher, those after one that panics or ends its goroutine included: the change has taken
// effect, and who missed it would not hear of it again. Nothing is recovered, so a panic keeps its own stack.
func tell(watchers []*watcher, changed []Key) {
	next := 0
	defer func() {
		if next < len(watchers) {
			tell(watchers[next:], changed)
		}
	}()
	for next < len(watchers) {
		w := watchers[next]
		next++
		w.fn(slices.Clone(changed))
	}
}
