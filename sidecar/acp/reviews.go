package acp

import (
	"context"
	"errors"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/sidecar/review"
	"github.com/pillion-dev/pillion/tools/change"
)

// reviews answer _pillion/change/*, _pillion/checkpoint/* and session/fork: decisions about changes that were
// written.
type reviews struct {
	rt    *agent.Runtime
	texts *review.Texts
	desk  *review.Desk
}

// changeList lists the session's changes.
func (m *reviews) changeList(_ context.Context, es *editorSession, _ *protocol.ChangeListRequest) (*protocol.ChangeListResponse, error) {
	return &protocol.ChangeListResponse{Changes: es.reviewer().Changes()}, nil
}

// changeKeep accepts hunks of a written change; no hunks means all.
func (m *reviews) changeKeep(ctx context.Context, es *editorSession, p *protocol.ChangeKeepRequest) (*protocol.ChangeKeepResponse, error) {
	info, err := es.reviewer().Keep(ctx, p.ChangeSet, p.Hunks)
	if err != nil {
		return nil, err
	}
	return &protocol.ChangeKeepResponse{Change: info}, nil
}

// changeUndo undoes hunks of a written change, merged with what was typed since.
func (m *reviews) changeUndo(ctx context.Context, es *editorSession, p *protocol.ChangeUndoRequest) (*protocol.ChangeUndoResponse, error) {
	info, err := es.reviewer().Undo(ctx, p.ChangeSet, p.Hunks)
	if err != nil {
		return nil, err
	}
	return &protocol.ChangeUndoResponse{Change: info}, nil
}

// changeTurn is everything that a turn changed, as one change.
func (m *reviews) changeTurn(_ context.Context, es *editorSession, p *protocol.ChangeTurnRequest) (*protocol.ChangeTurnResponse, error) {
	return es.reviewer().Turn(p.Turn)
}

// changeText is the old and new text of a file in a proposal; it is kept only while the approval request is open.
func (m *reviews) changeText(_ context.Context, _ *editorSession, p *protocol.ChangeTextRequest) (*protocol.ChangeTextResponse, error) {
	return m.texts.Text(p.SessionID, p.ChangeSet, p.URI)
}

// changeCheck is the verdict on the accepted part of a proposal, or on the person's edit of it, while they decide.
// Where the request names open hunks, the answer also says what each of them introduces and fixes.
func (m *reviews) changeCheck(ctx context.Context, _ *editorSession, p *protocol.ChangeCheckRequest) (*protocol.ChangeCheckResponse, error) {
	d := change.Decisions{Default: change.Accept, Hunks: map[string]change.Decision{}}
	for id, h := range p.Hunks {
		x, err := decisionOf(id, h)
		if err != nil {
			return nil, rpc.InvalidParams("hunks: %v", err)
		}
		d.Hunks[id] = x
	}
	// Hunks that the person has not decided about count as accepted, which is the default above.
	set, decided, err := m.texts.Decided(p.SessionID, p.ChangeSet, d)
	if err != nil {
		return nil, err
	}
	// Wrong names fail before the language servers are asked.
	if _, _, err := m.texts.Decided(p.SessionID, p.ChangeSet, d.Rejecting(p.Open...)); err != nil {
		return nil, err
	}
	check := func(part *change.Set) *change.Verdict {
		if ctx.Err() != nil { // decided meanwhile
			return nil
		}
		return m.desk.Check(ctx, p.SessionID, part)
	}
	out := &protocol.ChangeCheckResponse{Diagnostics: check(decided)}
	out.Effects = set.Effects(d, p.Open, out.Diagnostics, check)
	return out, nil
}

// checkpointList lists the checkpoints, oldest first.
func (m *reviews) checkpointList(_ context.Context, es *editorSession, _ *protocol.CheckpointListRequest) (*protocol.CheckpointListResponse, error) {
	return &protocol.CheckpointListResponse{Checkpoints: es.reviewer().Checkpoints()}, nil
}

// checkpointRestore restores files, the conversation or both. Hunks are those of a turn, as changeTurn names them;
// uris choose whole files.
func (m *reviews) checkpointRestore(ctx context.Context, es *editorSession, p *protocol.CheckpointRestoreRequest) (*protocol.CheckpointRestoreResponse, error) {
	w := review.Restoring{Checkpoint: p.CheckpointID, Scope: p.Scope, Hunks: p.Hunks, DryRun: p.DryRun}
	for i, uri := range p.Uris {
		path, ok := editors.URIPath(uri)
		if !ok {
			return nil, rpc.InvalidParams("uris[%d]: %q is not a file", i, uri)
		}
		w.Paths = append(w.Paths, path)
	}
	done, err := es.reviewer().Restore(ctx, w)
	if err != nil {
		return nil, err
	}
	out := &protocol.CheckpointRestoreResponse{Files: []protocol.RestoredFile{}, Undo: done.Undo, Prompt: Blocks(done.Prompt)}
	if done.Plan != nil {
		out.Files = review.RestoredFiles(done.Plan)
	}
	return out, nil
}

// fork copies the conversation, up to a prompt or all of it, into a new session. Files stay as they are. The answer
// has the prompt before which the copy ends, so that an editor can offer to change it.
func (m *reviews) fork(ctx context.Context, es *editorSession, p *protocol.SessionForkRequest) (*protocol.SessionForkResponse, error) {
	info, prompt, err := m.rt.Fork(ctx, es.ID(), p.MessageID, p.Title)
	if errors.Is(err, agent.ErrNoMessage) {
		return nil, rpc.InvalidParams("messageId: %v", err)
	}
	if err != nil {
		return nil, err
	}
	return &protocol.SessionForkResponse{SessionID: info.ID, Title: info.Title, Prompt: Blocks(prompt)}, nil
}
