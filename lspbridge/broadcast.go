package lspbridge

import "sync"

// broadcast wakes everybody who waits for a change of some state. The state has its own lock: a waiter takes the channel
// first and looks at the state then, so that no change falls between the two.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{} // closed and replaced by wake; nil until somebody waits
}

// next is closed by the next wake.
func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *broadcast) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
