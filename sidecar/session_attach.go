package main

import (
	"context"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// attachTo is the session that this connection was made for, once.
func (s *Server) attachTo() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attached {
		return ""
	}
	s.attached = true
	return s.o.Open
}

// attach answers session/new with a live session: any editor that can start one can join one. What happened before
// follows the answer as updates.
func (s *Server) attach(ctx context.Context, r *rpc.Request, id string) (any, error) {
	live, ok := s.o.Runtime.Session(id)
	if !ok {
		return nil, protocol.NotFound("session %s has ended meanwhile", id)
	}
	o := s.opening(id)
	es, had, err := o.open(ctx, live.Info().Cwd, nil)
	if err != nil || had {
		o.done()
	}
	if err != nil {
		return nil, err
	}
	info := es.Info()
	answer := &protocol.NewSessionResponse{SessionID: id, Modes: s.modes(info), ConfigOptions: s.configOptions(info)}
	if had {
		return answer, nil
	}
	s.wire.afterAnswer(r, func() {
		go func() {
			defer o.done()
			if err := o.settle(es.replay(s.ctx, es.view)); err != nil {
				s.log.Warn("replay", "session", id, "err", err)
				return
			}
			es.arrived("", true)
		}()
	})
	return answer, nil
}

// replay shows by v what has happened, and follows the session from there on when v is its own view.
func (es *editorSession) replay(ctx context.Context, v *view) error {
	var last int64
	hidden, err := es.Hidden(ctx)
	if err == nil {
		err = es.Events(ctx, 0, func(e agent.Event) error {
			last = e.Seq
			if hidden.Has(e) {
				v.remember(e)
			} else {
				v.show(e, true)
			}
			return ctx.Err()
		})
	}
	if err == nil && v == es.view {
		es.subscribe(last, false)
	}
	return err
}
