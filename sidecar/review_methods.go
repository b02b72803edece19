package main

import (
	"context"
	"errors"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/sidecar/review"
)

// reviewer decides about a session's changes after the fact.
func (s *Server) reviewer(es *editorSession) *review.Reviewer {
	return s.o.Desk.Reviewer(es.Session, es.view.ledger)
}

func (s *Server) changeList(_ context.Context, es *editorSession, _ *protocol.ChangeListRequest) (*protocol.ChangeListResponse, error) {
	return &protocol.ChangeListResponse{Changes: s.reviewer(es).Changes()}, nil
}

func (s *Server) changeKeep(ctx context.Context, es *editorSession, p *protocol.ChangeKeepRequest) (*protocol.ChangeKeepResponse, error) {
	info, err := s.reviewer(es).Keep(ctx, p.ChangeSet, p.Hunks)
	if err != nil {
		return nil, err
	}
	return &protocol.ChangeKeepResponse{Change: info}, nil
}

func (s *Server) changeUndo(ctx context.Context, es *editorSession, p *protocol.ChangeUndoRequest) (*protocol.ChangeUndoResponse, error) {
	info, err := s.reviewer(es).Undo(ctx, p.ChangeSet, p.Hunks)
	if err != nil {
		return nil, err
	}
	return &protocol.ChangeUndoResponse{Change: info}, nil
}

func (s *Server) changeTurn(_ context.Context, es *editorSession, p *protocol.ChangeTurnRequest) (*protocol.ChangeTurnResponse, error) {
	return s.reviewer(es).Turn(p.Turn)
}

func (s *Server) changeText(_ context.Context, _ *editorSession, p *protocol.ChangeTextRequest) (*protocol.ChangeTextResponse, error) {
	return s.asked.Text(p.SessionID, p.ChangeSet, p.URI)
}

func (s *Server) checkpointList(_ context.Context, es *editorSession, _ *protocol.CheckpointListRequest) (*protocol.CheckpointListResponse, error) {
	return &protocol.CheckpointListResponse{Checkpoints: s.reviewer(es).Checkpoints()}, nil
}

func (s *Server) checkpointRestore(ctx context.Context, es *editorSession, p *protocol.CheckpointRestoreRequest) (*protocol.CheckpointRestoreResponse, error) {
	w := review.Restoring{Checkpoint: p.CheckpointID, Scope: p.Scope, Hunks: p.Hunks, DryRun: p.DryRun}
	for i, uri := range p.Uris {
		path, ok := editors.URIPath(uri)
		if !ok {
			return nil, rpc.InvalidParams("uris[%d]: %q is not a file", i, uri)
		}
		w.Paths = append(w.Paths, path)
	}
	done, err := s.reviewer(es).Restore(ctx, w)
	if err != nil {
		return nil, err
	}
	out := &protocol.CheckpointRestoreResponse{Files: []protocol.RestoredFile{}, Undo: done.Undo, Prompt: blocks(done.Prompt)}
	if done.Plan != nil {
		out.Files = review.RestoredFiles(done.Plan)
	}
	return out, nil
}

// fork makes a new session of this one's conversation.
func (s *Server) fork(ctx context.Context, es *editorSession, p *protocol.SessionForkRequest) (*protocol.SessionForkResponse, error) {
	info, prompt, err := s.o.Runtime.Fork(ctx, es.ID(), p.MessageID, p.Title)
	if errors.Is(err, agent.ErrNoMessage) {
		return nil, rpc.InvalidParams("messageId: %v", err)
	}
	if err != nil {
		return nil, err
	}
	return &protocol.SessionForkResponse{SessionID: info.ID, Title: info.Title, Prompt: blocks(prompt)}, nil
}
