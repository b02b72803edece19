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
	s.o.Editors.unbind(id, s)
	return es.end(ctx)
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
	es.cancelAll()
	es.mu.Lock()
	turns := es.turns
	es.mu.Unlock()
	select {
	case <-turns:
	case <-ctx.Done():
	}
	es.Session.Close(ctx)
	es.mu.Lock()
	stop, unwatch := es.stop, es.unwatch
	es.stop, es.unwatch = nil, nil
	es.mu.Unlock()
	if stop != nil {
		stop()
		unwatch()
	}
	return ctx.Err()
}

// cancelAll ends the running turn and every queued prompt.
func (es *editorSession) cancelAll() {
	es.mu.Lock()
	var cancels []context.CancelFunc
	for c := range es.prompts {
		cancels = append(cancels, *c)
	}
	es.mu.Unlock()
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
