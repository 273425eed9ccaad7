package pool

// reserve is a call's entry into the pool: before the guard is asked, so that it knows nothing of calls that the pool refuses.
func (p *Pool) reserve() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	if p.cfg.Size > 0 && p.reserved >= p.cfg.Size+p.cfg.Queue {
		return ErrFull
	}
	p.reserved++
	return nil
}

func (p *Pool) unreserve() {
	p.mu.Lock()
	p.reserved--
	p.mu.Unlock()
}

// accept puts a task, which has its place, among the active ones or into the queue; start says which.
func (p *Pool) accept(t *Task) (start bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return false, ErrClosed
	case p.cfg.Size == 0 || p.active < p.cfg.Size:
		p.active++
		return true, nil
	case p.last == nil:
		p.first, p.last = t, t
	default:
		p.last.next = t
		p.last = t
	}
	return false, nil
}

// leave ends an active task, and makes the queue's first active in its stead. Nil: there is none.
func (p *Pool) leave() (next *Task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reserved--
	if next = p.first; next == nil {
		p.active--
		p.quit()
		return nil
	}
	p.first, next.next = next.next, nil
	if p.first == nil {
		p.last = nil
	}
	return next
}

// quit tells Close if nothing runs and nothing will. Under mu.
func (p *Pool) quit() {
	if p.closed && p.active == 0 {
		close(p.drained)
	}
}

func (p *Pool) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}
