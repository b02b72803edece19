package terminal

import "sync"

// patience counts the questions that wait for the user, and lets one be asked at a time.
type patience struct {
	// asking may be held for as long as a person thinks; mu never is. asking is taken without mu.
	asking sync.Mutex // held by the question that is on the screen

	mu    sync.Mutex
	n     int           // guarded by mu
	empty chan struct{} // closed when n is 0 again; guarded by mu; nil: nothing waits
}

// turn waits until the screen and the keyboard are free for a question; done gives them back.
func (p *patience) turn() (done func()) {
	p.mu.Lock()
	if p.n++; p.n == 1 {
		p.empty = make(chan struct{})
	}
	p.mu.Unlock()
	p.asking.Lock()
	return func() {
		p.asking.Unlock()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.n--; p.n == 0 {
			close(p.empty)
			p.empty = nil
		}
	}
}

// hold keeps questions from being asked while a line is typed in plain mode, where the terminal's one line is the person's.
// It is not a question, so it does not count as one that waits.
func (p *patience) hold() (release func()) {
	p.asking.Lock()
	return p.asking.Unlock
}

// answered is closed when no question waits any more; nil when none does.
func (p *patience) answered() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.empty
}
