package lspbridge

import "sync"

// broadcast wakes all waiters for a change of a state that has its own lock. A waiter must call next before it reads the state: a change in
// between then closes the waiter's channel and is not missed.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{} // closed and replaced by wake; nil without a waiter
}

// next returns a channel that the next wake closes.
func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

// wake wakes everyone who has called next. Call it after the change, without holding the state's lock.
func (b *broadcast) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
