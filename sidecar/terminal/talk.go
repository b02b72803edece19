package terminal

import (
	"context"
	"sync"
)

// patience counts the questions that wait for the person.
type patience struct {
	mu    sync.Mutex
	n     int           // guarded by mu
	empty chan struct{} // closed when n is 0 again; guarded by mu; nil: nothing waits
}

// turn waits until the screen and the keyboard are free for a question; done gives them back.
func (t *Terminal) turn() (done func()) {
	p := &t.turns
	p.mu.Lock()
	if p.n++; p.n == 1 {
		p.empty = make(chan struct{})
	}
	p.mu.Unlock()
	t.asking.Lock()
	return func() {
		t.asking.Unlock()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.n--; p.n == 0 {
			close(p.empty)
			p.empty = nil
		}
	}
}

// Waiting is how many questions wait for the person, of agents in the background while a prompt is typed.
func (t *Terminal) Waiting() int {
	t.turns.mu.Lock()
	defer t.turns.mu.Unlock()
	return t.turns.n
}

// Typing reports whether a prompt is being typed, which is when nothing else may be written on the screen.
func (t *Terminal) Typing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.typing
}

// Compose has c read a prompt. What happens meanwhile is printed when it is read. An empty prompt means that questions
// wait, and that the person wants to answer them: they have been when Compose returns it.
func (t *Terminal) Compose(ctx context.Context, c *Composer) (string, error) {
	t.asking.Lock()
	t.mu.Lock()
	t.clear()
	t.newline()
	t.typing = true
	t.mu.Unlock()
	c.waiting = t.Waiting
	prompt, err := c.Read(ctx)
	t.mu.Lock()
	t.typing, t.midLine = false, false
	later := t.later
	t.later = nil
	for _, e := range later {
		t.event(e)
	}
	t.mu.Unlock()
	t.asking.Unlock()
	if prompt == "" && err == nil {
		t.turns.mu.Lock()
		empty := t.turns.empty
		t.turns.mu.Unlock()
		if empty != nil {
			select {
			case <-empty:
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
	}
	return prompt, err
}
