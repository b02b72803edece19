package mcp

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pillion-dev/pillion/tools"
)

// calls are the calls of one server that are under way.
type calls struct {
	mu   sync.Mutex
	list []*running // guarded by mu; oldest first
}

// enter registers a call, so that what the server asks meanwhile belongs to it; leave removes it.
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

// latest is the call that a question of the server's most likely belongs to: the protocol does not say. The newest is the
// best guess, because a server asks about what it has just been told to do.
func (c *calls) latest() *running {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.list) == 0 {
		return nil
	}
	return c.list[len(c.list)-1]
}

// byToken is the call that a progress note names. Tokens are call ids, which are unique among the calls under way; a
// token of another type than string matches none.
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

// running is a call under way: what the server asks meanwhile belongs to it. It ends with the call; a server that asks
// later finds no call, see elicit and sample.
type running struct {
	call  *tools.Call
	token string // of progress notifications: the call's id

	mu      sync.Mutex
	silence *time.Timer // guarded by mu: ends the call
	limit   time.Duration
	persons int          // guarded by mu: questions that wait for a person; while there are any, silence is stopped
	asked   atomic.Int32 // questions so far, see maxElicit
}

// active restarts the silence timer after a sign of life of the server. Progress that comes while a person is asked must
// not restart it: their time is not the server's silence.
func (r *running) active() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.persons == 0 {
		r.silence.Reset(r.limit)
	}
}

// person stops the silence timer while a person is asked, because the server waits for them. Call the function it returns
// after the answer: it restarts the timer once no question is open.
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

// ask asks the person in the name of the call. The error is tools.ErrDismissed where the person closes the question.
func (r *running) ask(ctx context.Context, qs []tools.Question) ([][]string, error) {
	defer r.person()()
	return r.call.Host.Questions.AskQuestions(ctx, r.call, qs)
}
