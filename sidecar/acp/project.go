package acp

import (
	"context"
	"path/filepath"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/check"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/paths"
)

// Project is what is asked about a folder outside of turns. Package main implements it with the app.
type Project interface {
	// Review checks a change that a person named, by language servers of its own.
	Review(ctx context.Context, cwd, target string) ([]check.Finding, error)
	// Staged is check.Staged for the repository of a folder.
	Staged(ctx context.Context, cwd string) (diff, earlier string, err error)
	// NextEdit is lspbridge.Manager.NextEdit by the folder's language servers; nil without them.
	NextEdit(ctx context.Context, cwd, path, before string) (*lspbridge.NextEdit, error)
}

// nextEdit finds what an edit that a person made by hand leaves to be done elsewhere. The editor proposes it: nothing is written here.
func (m *turns) nextEdit(ctx context.Context, es *editorSession, p *protocol.NextEditRequest) (*protocol.NextEditResponse, error) {
	// A path outside of the session's project must not reach its language servers.
	path, ok := editors.URIPath(p.URI)
	if !ok || !paths.Within(paths.Worktree(es.Info().Cwd), path) {
		return nil, rpc.InvalidParams("uri: %q is no file of the session's project", p.URI)
	}
	if m.project == nil {
		return &protocol.NextEditResponse{}, nil
	}
	next, err := m.project.NextEdit(ctx, es.Info().Cwd, path, p.Before)
	if err != nil || next == nil {
		return &protocol.NextEditResponse{}, err
	}
	places := int64(next.Places)
	out := &protocol.NextEditResponse{Title: next.Title, Places: &places}
	for _, e := range next.Edits {
		out.Files = append(out.Files, protocol.NextEditFile{URI: es.editor.Buffers.URI(e.Path), OldText: e.Old, NewText: e.New})
	}
	return out, nil
}

// commitMessage writes the message of a commit from what is staged.
func (m *turns) commitMessage(ctx context.Context, es *editorSession, p *protocol.CommitMessageRequest) (*protocol.CommitMessageResponse, error) {
	if m.project == nil {
		return nil, rpc.InvalidParams("this Pillion has no access to a repository")
	}
	cwd := p.Cwd
	if cwd == "" {
		cwd = es.Info().Cwd
	}
	// The diff goes to a model: only of a repository that the session works in.
	if !filepath.IsAbs(cwd) || !paths.Within(paths.Worktree(es.Info().Cwd), cwd) {
		return nil, rpc.InvalidParams("cwd: %s is not in the session's project", cwd)
	}
	diff, earlier, err := m.project.Staged(ctx, cwd)
	if err != nil {
		return nil, err
	}
	message, err := es.CommitMessage(ctx, diff, earlier)
	if err != nil {
		return nil, err
	}
	return &protocol.CommitMessageResponse{Message: message}, nil
}
