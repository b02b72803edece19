package mcp

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pillion-dev/pillion/tools"
)

// calls are the running tool calls of one server.
type calls struct {
	mu   sync.Mutex
	list []*running // guarded by mu; oldest first
}

// enter registers a call, so that the server's requests during it can be attributed to it; leave removes it.
func (c *calls) enter(r *running) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, r)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.list = slices.DeleteFunc(c.list, func(x *running) bool { return x == r })
	}
}

// latest returns the newest running call, or nil. A server's request is attributed to it: the protocol does not say to which call a request
// belongs, and most likely it is the newest one.
func (c *calls) latest() *running {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.list) == 0 {
		return nil
	}
	return c.list[len(c.list)-1]
}

// byToken returns the call that a progress notification names, or nil. Tokens are call ids, which are unique among running calls; a token
// that is not a string matches none.
func (c *calls) byToken(token any) *running {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.list {
		if r.token == token {
			return r
		}
	}
	return nil
}

// running is a running tool call. A request of the server after the call's end finds no call and is refused; see elicit and sample.
type running struct {
	call  *tools.Call
	token string // of progress notifications: the call's id

	mu      sync.Mutex
	silence *time.Timer   // guarded by mu; cancels the call when it fires
	limit   time.Duration // of the silence timer
	persons int           // guarded by mu; open questions to the person, during which the silence timer is stopped
	asked   atomic.Int32  // questions of the server so far, see maxElicit
}

// active restarts the silence timer after a notification of the server. While a question to the person is open it does nothing: the
// person's time must not count as the server's silence.
func (r *running) active() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.persons == 0 {
		r.silence.Reset(r.limit)
	}
}

// person stops the silence timer while a person is asked, because the server waits for them. The caller must call answered after the
// answer, which restarts the timer when no other question is open.
func (r *running) person() (answered func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.persons++
	r.silence.Stop()
	return func() {
		r.mu.Lock()
		r.persons--
		r.mu.Unlock()
		r.active()
	}
}

// ask asks the person on behalf of the call. The error is tools.ErrDismissed if the person closes the question without an answer.
func (r *running) ask(ctx context.Context, qs []tools.Question) ([][]string, error) {
	defer r.person()()
	return r.call.Host.Questions.AskQuestions(ctx, r.call, qs)
}
