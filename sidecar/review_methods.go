package main

import (
	"context"
	"errors"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// reviewer decides about a session's changes after the fact.
func (s *Server) reviewer(es *editorSession) *reviewer {
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
	w := restoring{checkpoint: p.CheckpointID, scope: p.Scope, hunks: p.Hunks, dry: p.DryRun}
	for i, uri := range p.Uris {
		path, ok := editors.URIPath(uri)
		if !ok {
			return nil, rpc.InvalidParams("uris[%d]: %q is not a file", i, uri)
		}
		w.paths = append(w.paths, path)
	}
	done, err := s.reviewer(es).restore(ctx, w)
	if err != nil {
		return nil, err
	}
	out := &protocol.CheckpointRestoreResponse{Files: []protocol.RestoredFile{}, Undo: done.undo, Prompt: blocks(done.prompt)}
	if done.plan != nil {
		out.Files = restoredFiles(done.plan)
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
