package main

import (
	"context"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// take takes a session off this connection, in the order of the wire: what the editor asks next does not find it.
func (s *Server) take(id string) (es *editorSession, found func(context.Context) (*editorSession, error)) {
	es, found = s.seek(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, id)
	return es, found
}

// quit ends a session that was taken off this connection, unless others have it open.
func (s *Server) quit(ctx context.Context, es *editorSession) error {
	id := es.ID()
	if s.o.Editors.Unbind(id, s.editor) {
		es.leave()
		return nil
	}
	defer s.o.Editors.Ended(id)
	return es.end(ctx)
}

// leave takes this editor off a session that others still have open. Its turn goes on; what it has queued does not.
func (es *editorSession) leave() {
	select {
	case <-es.ready:
	default:
		return // it was being opened: nothing is followed yet
	}
	if es.err != nil {
		return
	}
	running := es.State().Turn
	es.mu.Lock()
	for cancel, message := range es.prompts {
		if message == "" || message != running {
			(*cancel)()
		}
	}
	es.mu.Unlock()
	es.unfollow()
}

// unfollow ends what keeps the editor up to date.
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

func (s *Server) closeSession(ctx context.Context, r *rpc.Request) (any, error) {
	p, err := decode[protocol.CloseSessionRequest](r)
	if err != nil {
		return nil, err
	}
	_, found := s.take(p.SessionID)
	turn, done := s.inLine(p.SessionID)
	defer done()
	r.Async()
	<-turn
	es, err := found(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.quit(ctx, es); err != nil {
		return nil, err
	}
	return &protocol.CloseSessionResponse{}, nil
}

func (s *Server) deleteSession(ctx context.Context, r *rpc.Request) (any, error) {
	p, err := decode[protocol.DeleteSessionRequest](r)
	if err != nil {
		return nil, err
	}
	es, found := s.take(p.SessionID)
	turn, done := s.inLine(p.SessionID)
	defer done()
	r.Async()
	<-turn
	if es != nil {
		if _, err := found(ctx); err == nil {
			if err := s.quit(ctx, es); err != nil {
				return nil, err
			}
		}
	}
	s.o.Editors.Ending(p.SessionID)
	defer s.o.Editors.Ended(p.SessionID)
	if err := s.o.Runtime.Delete(ctx, p.SessionID); err != nil {
		return nil, protocol.NotFound("session %q cannot be deleted: %v", p.SessionID, err)
	}
	return &protocol.DeleteSessionResponse{}, nil
}

// end cancels what runs, waits for it, and closes the session.
func (es *editorSession) end(ctx context.Context) error {
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

// cancelAll ends the running turn and every queued prompt.
func (es *editorSession) cancelAll() {
	es.mu.Lock()
	var cancels []context.CancelFunc
	for c := range es.prompts {
		cancels = append(cancels, *c)
	}
	again := es.again
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

func (s *Server) cancel(p *protocol.CancelNotification) (any, error) {
	es := s.lookup(p.SessionID)
	if es == nil {
		return nil, protocol.NotFound("session/cancel: no session %q", p.SessionID)
	}
	es.cancelAll() // in place: a prompt that follows is another matter
	return nil, nil
}
