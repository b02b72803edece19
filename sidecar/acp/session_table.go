package acp

import (
	"context"
	"maps"
	"sync"

	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// sessionTable is which sessions a connection has open. It keeps the order of the wire: opening and closing of one
// session happen in the order of the requests. Safe for concurrent use. A stored session is in the table from the
// request that opens it, before it is open: requests that find it wait for ready.
type sessionTable struct {
	mu     sync.Mutex
	open   map[string]*editorSession // guarded by mu
	queues map[string]chan struct{}  // by session: the last opening or closing, closed when it is done; guarded by mu
}

// newSessionTable has no session.
func newSessionTable() *sessionTable {
	return &sessionTable{open: map[string]*editorSession{}, queues: map[string]chan struct{}{}}
}

// add takes in a session that is open.
func (t *sessionTable) add(id string, es *editorSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open[id] = es
}

// drop removes a session that could not be opened, unless another has taken its place. A later request may have
// claimed the id already.
func (t *sessionTable) drop(id string, es *editorSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[id] == es {
		delete(t.open, id)
	}
}

// all are the sessions that are open now, by id.
func (t *sessionTable) all() map[string]*editorSession {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.open)
}

// clear removes and returns all sessions. One whose opening ends later is closed by finish, because Bind fails for an
// editor that is disconnecting.
func (t *sessionTable) clear() map[string]*editorSession {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := maps.Clone(t.open)
	clear(t.open)
	return all
}

// find waits for a session that is being opened.
func (t *sessionTable) find(ctx context.Context, id string) (*editorSession, error) {
	_, found := t.lookupWaiting(id)
	return found(ctx)
}

// lookupWaiting finds a session as it is now (nil without one); found waits until it has been opened. A request that
// closes the session after this call does not matter.
func (t *sessionTable) lookupWaiting(id string) (es *editorSession, found func(context.Context) (*editorSession, error)) {
	es = t.lookup(id)
	return es, func(ctx context.Context) (*editorSession, error) {
		if es == nil {
			return nil, protocol.NotFound("no session %q on this connection; start one with session/new, or open a stored one with session/load or session/resume", id)
		}
		select {
		case <-es.ready:
			return es, es.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// lookup is the session with an id, which may still be opening; nil without one.
func (t *sessionTable) lookup(id string) *editorSession {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open[id]
}

// claim is the session with this id; where there is none, fresh is added and returned.
func (t *sessionTable) claim(id string, fresh *editorSession) *editorSession {
	t.mu.Lock()
	defer t.mu.Unlock()
	es := t.open[id]
	if es == nil {
		es = fresh
		t.open[id] = es
	}
	return es
}

// queueOpening takes a place among the openings and closings of a session: turn is closed when all earlier ones have
// called done.
func (t *sessionTable) queueOpening(id string) (turn <-chan struct{}, done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, mine := t.queues[id], make(chan struct{})
	if before == nil {
		before = closedChan()
	}
	t.queues[id] = mine
	// done may be called before the turn has come, by a request that gave up; it waits then, so that the order holds.
	return before, func() {
		<-before
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.queues[id] == mine {
			delete(t.queues, id)
		}
		close(mine)
	}
}

// take removes a session, in the order of the wire: later requests do not find it.
func (t *sessionTable) take(id string) (es *editorSession, found func(context.Context) (*editorSession, error)) {
	es, found = t.lookupWaiting(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, id)
	return es, found
}
