package acp

import (
	"context"
	"maps"
	"sync"

	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// sessionTable is which sessions a connection has open. It keeps the order of the wire: what opens and closes one
// session happens in the order it was asked for. It is safe for concurrent use.
type sessionTable struct {
	mu    sync.Mutex
	open  map[string]*editorSession // guarded by mu
	lines map[string]chan struct{}  // of sessions being opened or closed: what came last, closed at its end; guarded by mu
}

func newSessionTable() *sessionTable {
	return &sessionTable{open: map[string]*editorSession{}, lines: map[string]chan struct{}{}}
}

// add takes in a session that is open.
func (t *sessionTable) add(id string, es *editorSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open[id] = es
}

// drop forgets a session that could not be opened, unless another took its place.
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

// clear takes all of them off the connection.
func (t *sessionTable) clear() map[string]*editorSession {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := maps.Clone(t.open)
	clear(t.open)
	return all
}

// find waits for a session that is being opened.
func (t *sessionTable) find(ctx context.Context, id string) (*editorSession, error) {
	_, found := t.seek(id)
	return found(ctx)
}

// seek finds a session as it is now, nil without one; found waits until it has been opened. What the editor asks after
// this, to close the session for one, does not count.
func (t *sessionTable) seek(id string) (es *editorSession, found func(context.Context) (*editorSession, error)) {
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

func (t *sessionTable) lookup(id string) *editorSession {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open[id]
}

// claim is the session of that id on this connection; fresh takes the place where there is none yet.
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

// inLine keeps what opens and closes a session in the order it came: turn is closed when those before have called done.
func (t *sessionTable) inLine(id string) (turn <-chan struct{}, done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, mine := t.lines[id], make(chan struct{})
	if before == nil {
		before = closedChan()
	}
	t.lines[id] = mine
	return before, func() {
		<-before
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.lines[id] == mine {
			delete(t.lines, id)
		}
		close(mine)
	}
}

// take takes a session off this connection, in the order of the wire: what the editor asks next does not find it.
func (t *sessionTable) take(id string) (es *editorSession, found func(context.Context) (*editorSession, error)) {
	es, found = t.seek(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, id)
	return es, found
}
