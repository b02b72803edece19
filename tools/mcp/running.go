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

// enter registers a call, so that the server's requests during it can be related to it; leave removes it.
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

// latest is the newest running call, or nil. A server's request is related to it: the protocol does not say which call a request belongs to,
// and a server most likely asks about what it was told last.
func (c *calls) latest() *running {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.list) == 0 {
		return nil
	}
	return c.list[len(c.list)-1]
}

// byToken is the call that a progress notification names, or nil. Tokens are call ids, which are unique among running calls; a token that
// is not a string matches none.
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

// running is a running tool call. Requests of the server after its end find no call and are refused, see elicit and sample.
type running struct {
	call  *tools.Call
	token string // of progress notifications: the call's id

	mu      sync.Mutex
	silence *time.Timer   // guarded by mu; it cancels the call when it fires
	limit   time.Duration // of silence
	persons int           // guarded by mu; open questions to the person, during which silence is stopped
	asked   atomic.Int32  // questions of the server so far, see maxElicit
}

// active restarts the silence timer after a notification of the server. While a question to the person is open it does nothing: their
// time must not count as the server's silence.
func (r *running) active() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.persons == 0 {
		r.silence.Reset(r.limit)
	}
}

// person stops the silence timer while a person is asked, as the server waits for them. The caller must call answered after the answer; it
// restarts the timer when no other question is open.
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

// ask asks the person in the name of the call. The error is tools.ErrDismissed if the person closes the question without an answer.
func (r *running) ask(ctx context.Context, qs []tools.Question) ([][]string, error) {
	defer r.person()()
	return r.call.Host.Questions.AskQuestions(ctx, r.call, qs)
}
