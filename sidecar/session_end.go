package main

import (
	"context"
	"fmt"

	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// detach takes a session off this connection and ends it.
func (s *Server) detach(ctx context.Context, id string) error {
	es, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.sessions, id)
	s.mu.Unlock()
	if s.o.Editors.unbind(id, s) {
		es.leave()
		return nil
	}
	return es.end(ctx)
}

// leave takes this editor off a session that others still have open. Its turn goes on; what it has queued does not.
func (es *editorSession) leave() {
	select {
	case <-es.ready:
	default:
		return // it was being opened: nothing is followed yet
	}
	if es.Session == nil {
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

func (s *Server) closeSession(ctx context.Context, p *protocol.CloseSessionRequest) (*protocol.CloseSessionResponse, error) {
	if err := s.detach(ctx, p.SessionID); err != nil {
		return nil, err
	}
	return &protocol.CloseSessionResponse{}, nil
}

func (s *Server) deleteSession(ctx context.Context, p *protocol.DeleteSessionRequest) (*protocol.DeleteSessionResponse, error) {
	if s.lookup(p.SessionID) != nil {
		if err := s.detach(ctx, p.SessionID); err != nil {
			return nil, err
		}
	}
	if err := s.o.Runtime.Delete(ctx, p.SessionID); err != nil {
		return nil, errNotFound{fmt.Sprintf("session %q cannot be deleted: %v", p.SessionID, err)}
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
	if es.Session == nil {
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
	es.again = nil
	es.mu.Unlock()
	if again != nil {
		again()
	}
	for _, c := range cancels {
		c()
	}
	es.Session.Cancel()
}

func (s *Server) cancel(p *protocol.CancelNotification) (any, error) {
	es := s.lookup(p.SessionID)
	if es == nil {
		return nil, errNotFound{fmt.Sprintf("session/cancel: no session %q", p.SessionID)}
	}
	select {
	case <-es.ready:
		if es.Session != nil {
			es.cancelAll() // in place: a prompt that follows is another matter
		}
	default:
	}
	return nil, nil
}
