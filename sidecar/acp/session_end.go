package acp

import (
	"context"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// closeOrLeave ends a session that was removed from this connection, unless other editors have it open. Ended must
// follow in every case, because editors that open the session wait for it.
func (o *openings) closeOrLeave(ctx context.Context, es *editorSession) error {
	id := es.ID()
	if o.registry.Unbind(id, o.editor) {
		es.leave()
		return nil
	}
	defer o.registry.Ended(id)
	return es.end(ctx)
}

// leave removes this editor from a session that others have open. The running turn continues; prompts that this
// editor has queued are cancelled.
func (es *editorSession) leave() {
	select {
	case <-es.ready:
	default:
		return // it was being opened: nothing is followed yet
	}
	if es.err != nil {
		return
	}
	// Turn is the message id of the prompt whose turn runs.
	running := es.State().Turn
	es.mu.Lock()
	for cancel, message := range es.prompts {
		// A prompt without an id has not reached the session yet.
		if message == "" || message != running {
			(*cancel)()
		}
	}
	es.mu.Unlock()
	es.unfollow()
}

// unfollow stops sending updates.
func (es *editorSession) unfollow() {
	es.mu.Lock()
	stop, unwatch := es.stop, es.unwatch
	es.stop, es.unwatch = nil, nil
	es.mu.Unlock()
	if stop != nil {
		stop()
		unwatch()
	}
}

// closeSession answers session/close.
func (o *openings) closeSession(ctx context.Context, r *rpc.Request) (any, error) {
	p, err := decode[protocol.CloseSessionRequest](r)
	if err != nil {
		return nil, err
	}
	// The session leaves the table in the order of the wire, so that a request behind the close does not find it.
	_, found := o.sessions.take(p.SessionID)
	turn, done := o.sessions.queueOpening(p.SessionID)
	defer done()
	r.Async()
	// The wait does not end with ctx: a request keeps its place, so that openings and closings stay in order.
	<-turn
	es, err := found(ctx)
	if err != nil {
		return nil, err
	}
	if err := o.closeOrLeave(ctx, es); err != nil {
		return nil, err
	}
	return &protocol.CloseSessionResponse{}, nil
}

// deleteSession answers session/delete. An open session is closed first.
func (o *openings) deleteSession(ctx context.Context, r *rpc.Request) (any, error) {
	p, err := decode[protocol.DeleteSessionRequest](r)
	if err != nil {
		return nil, err
	}
	es, found := o.sessions.take(p.SessionID)
	turn, done := o.sessions.queueOpening(p.SessionID)
	defer done()
	r.Async()
	<-turn
	if es != nil {
		if _, err := found(ctx); err == nil {
			if err := o.closeOrLeave(ctx, es); err != nil {
				return nil, err
			}
		}
	}
	// No editor may open the session from the store while it is being deleted.
	o.registry.Ending(p.SessionID)
	defer o.registry.Ended(p.SessionID)
	if err := o.rt.Delete(ctx, p.SessionID); err != nil {
		return nil, protocol.NotFound("session %q cannot be deleted: %v", p.SessionID, err)
	}
	return &protocol.DeleteSessionResponse{}, nil
}

// end cancels the running turn, waits for it and closes the session; it gives up waiting when ctx ends. Requests that
// are open are marked as interrupted first: a reopened session asks them again.
func (es *editorSession) end(ctx context.Context) error {
	// A session that is still being opened is closed once it is open.
	select {
	case <-es.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	if es.err != nil {
		return nil
	}
	es.Session.Closing()
	es.cancelAll()
	es.mu.Lock()
	turns := es.turns
	es.mu.Unlock()
	select {
	case <-turns:
	case <-ctx.Done():
	}
	es.Session.Close(ctx)
	es.unfollow()
	return ctx.Err()
}

// cancelAll cancels the running turn, every queued prompt and approvals that were asked again. The functions are
// called without the lock.
func (es *editorSession) cancelAll() {
	es.mu.Lock()
	var cancels []context.CancelFunc
	for c := range es.prompts {
		cancels = append(cancels, *c)
	}
	again := es.reopener
	es.mu.Unlock()
	if again != nil {
		again.Dismiss()
	}
	for _, c := range cancels {
		c()
	}
	select {
	case <-es.ready:
		if es.err == nil {
			es.Session.Cancel()
		}
	default: // it is being opened: nothing runs yet
	}
}
