package pool

import (
	"runtime/debug"
)

// start hands an active task to a goroutine.
func (p *Pool) start(t *Task) {
	for t != nil && p.workers.Invoke(t) != nil { // closed meanwhile
		t.pass.Record(ErrClosed)
		t = p.finish(t, ErrClosed)
	}
}

// work is what a goroutine does with a task: this, and then what waits in the queue.
func work(t *Task) {
	for p := t.pool; t != nil; {
		t = p.serve(t)
	}
}

// serve runs an active task to its end, and returns the next for this goroutine.
func (p *Pool) serve(t *Task) (next *Task) {
	key, returned := t.key, false
	defer func() {
		if returned {
			return
		}
		// After Goexit this goroutine ends, and after a panic somebody is told: the queue goes on with another one.
		v := recover()
		if v == nil {
			p.goexits.Add(1)
			p.start(p.finish(t, ErrGoexit))
			return
		}
		p.panics.Add(1)
		err := &PanicError{v, debug.Stack()}
		p.start(p.finish(t, err))
		p.tell(key, err)
	}()
	err := t.call()
	returned = true
	t.pass.Record(err)
	return p.finish(t, err)
}

// finish ends an active task. Its waiters are told last, so that they find its place free, and the pool's too.
func (p *Pool) finish(t *Task, err error) (next *Task) {
	t.end()
	next = p.leave()
	t.settle(err)
	return next
}
