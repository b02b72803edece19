package main

import (
	"context"
	"errors"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// prompt takes its place in the session's queue in the order of the wire, then waits for its turn and its end.
func (s *Server) prompt(ctx context.Context, r *rpc.Request) (any, error) {
	p, err := decode[protocol.PromptRequest](r)
	if err != nil {
		return nil, err
	}
	es := s.lookup(p.SessionID)
	if es == nil {
		_, err := s.find(ctx, p.SessionID)
		return nil, err
	}
	parts, err := promptParts(p.Prompt)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	key := &cancel
	mine := make(chan struct{})
	es.mu.Lock()
	before, settings := es.turns, es.settings
	es.turns = mine
	es.prompts[key] = true
	es.mu.Unlock()
	r.Async()
	defer func() {
		es.mu.Lock()
		delete(es.prompts, key)
		es.mu.Unlock()
		go func() { // at once, unless this prompt was cancelled while it waited: those behind it wait on
			<-before
			close(mine)
		}()
	}()
	for _, c := range []chan struct{}{es.ready, settings, before} {
		select {
		case <-c:
		case <-ctx.Done():
			return &protocol.PromptResponse{StopReason: protocol.StopReasonCancelled}, nil
		}
	}
	if es.err != nil {
		return nil, es.err
	}
	es.welcome("")
	parts = es.expandCommand(parts)
	turn, err := es.Session.Prompt(ctx, agent.Prompt{Parts: parts})
	es.view.settle()
	if err != nil {
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			return &protocol.PromptResponse{StopReason: protocol.StopReasonCancelled}, nil
		}
		return nil, err
	}
	if turn.Stop == agent.TurnError {
		return nil, errors.New(turn.Error)
	}
	return promptResponse(turn), nil
}

func promptResponse(t agent.TurnData) *protocol.PromptResponse {
	return &protocol.PromptResponse{StopReason: protocol.StopReason(t.Stop), Meta: map[string]any{"pillion": map[string]any{
		"usage": t.Usage, "cost": t.Cost, "steps": t.Steps, "error": t.Error,
	}}}
}

// steer puts words into the running turn. Without one the editor is told to send a prompt.
func (s *Server) steer(ctx context.Context, r *rpc.Request) (any, error) {
	p, err := decode[protocol.SteeringRequest](r)
	if err != nil {
		return nil, err
	}
	parts, err := promptParts(p.Prompt)
	if err != nil {
		return nil, err
	}
	r.Async()
	es, err := s.find(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	if st, ok := any(es.Session).(steerer); ok {
		injected, err := st.Steer(ctx, agent.Prompt{Parts: parts})
		if err != nil {
			return nil, err
		}
		if injected {
			return &protocol.SteeringResponse{Outcome: "injected"}, nil
		}
	}
	return &protocol.SteeringResponse{Outcome: "promptRequired", Reason: "noRunningTurn"}, nil
}

// steerer is a session that takes words while a turn runs.
type steerer interface {
	Steer(ctx context.Context, p agent.Prompt) (injected bool, err error)
}
