package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/sidecar/review"
	"github.com/pillion-dev/pillion/sidecar/slash"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
)

type extension func(ctx context.Context, r *rpc.Request) (any, error)

// extensions are the _pillion methods that work with what this server was given; these and no others are announced.
func (s *Server) extensions() map[string]extension {
	m := map[string]extension{
		protocol.MethodPillionBufferDidOpen:   notification(s.editor.Buffers.DidOpen),
		protocol.MethodPillionBufferDidChange: notification(s.editor.Buffers.DidChange),
		protocol.MethodPillionBufferDidSave:   notification(s.editor.Buffers.DidSave),
		protocol.MethodPillionBufferDidClose:  notification(s.editor.Buffers.DidClose),

		protocol.MethodPillionSelectionDidChange: notification(s.selection.didChange),

		protocol.MethodPillionChangeList:     inSession(s, func(p *protocol.ChangeListRequest) string { return p.SessionID }, s.changeList),
		protocol.MethodPillionChangeKeep:     inSession(s, func(p *protocol.ChangeKeepRequest) string { return p.SessionID }, s.changeKeep),
		protocol.MethodPillionChangeText:     inSession(s, func(p *protocol.ChangeTextRequest) string { return p.SessionID }, s.changeText),
		protocol.MethodPillionChangeTurn:     inSession(s, func(p *protocol.ChangeTurnRequest) string { return p.SessionID }, s.changeTurn),
		protocol.MethodPillionCheckpointList: inSession(s, func(p *protocol.CheckpointListRequest) string { return p.SessionID }, s.checkpointList),
		protocol.MethodPillionSessionFork:    inSession(s, func(p *protocol.SessionForkRequest) string { return p.SessionID }, s.fork),
		protocol.MethodPillionToolRegister:   func(_ context.Context, r *rpc.Request) (any, error) { return handle(r, s.registerTools) },
		protocol.MethodPillionToolCall:       inSession(s, func(p *protocol.ToolCallRequest) string { return p.SessionID }, s.toolCall),
		protocol.MethodPillionSessionRename:  inSession(s, func(p *protocol.SessionRenameRequest) string { return p.SessionID }, s.rename),
		protocol.MethodPillionSessionQueue:   s.queueMethod(),
		protocol.MethodPillionSessionStatus:  inSession(s, func(p *protocol.SessionStatusRequest) string { return p.SessionID }, s.status),
		protocol.MethodPillionSessionExport:  inSession(s, func(p *protocol.SessionExportRequest) string { return p.SessionID }, s.export),
	}
	if s.o.Desk.Writes() {
		m[protocol.MethodPillionCheckpointRestore] = inSession(s, func(p *protocol.CheckpointRestoreRequest) string { return p.SessionID }, s.checkpointRestore)
		m[protocol.MethodPillionChangeUndo] = inSession(s, func(p *protocol.ChangeUndoRequest) string { return p.SessionID }, s.changeUndo)
	}
	if s.o.Auth != nil {
		m[protocol.MethodPillionAuthList] = func(ctx context.Context, r *rpc.Request) (any, error) { return async(ctx, r, s.authList) }
		m[protocol.MethodPillionAuthSet] = func(ctx context.Context, r *rpc.Request) (any, error) { return async(ctx, r, s.authSet) }
	}
	if s.o.Theirs != nil {
		m[protocol.MethodPillionDiagnosticsDidChange] = notification(s.o.Theirs.DidChange)
	}
	if s.o.Finder != nil {
		m[protocol.MethodPillionFileSearch] = inSession(s, func(p *protocol.FileSearchRequest) string { return p.SessionID }, s.fileSearch)
	}
	if s.o.Rules != nil {
		m[protocol.MethodPillionPermissionList] = inSession(s, func(p *protocol.PermissionListRequest) string { return p.SessionID }, s.permissionList)
		m[protocol.MethodPillionPermissionExplain] = inSession(s, func(p *protocol.PermissionExplainRequest) string { return p.SessionID }, s.permissionExplain)
	}
	if s.o.Grants != nil {
		m[protocol.MethodPillionPermissionRevoke] = inSession(s, func(p *protocol.PermissionRevokeRequest) string { return p.SessionID }, s.permissionRevoke)
	}
	s.terminalMethods(m)
	return m
}

// notification is handled in place, in the order of the wire.
func notification[P any](f func(P)) extension {
	return func(_ context.Context, r *rpc.Request) (any, error) {
		p, err := decode[P](r)
		if err != nil {
			return nil, err
		}
		f(*p)
		return nil, nil
	}
}

// inSession is a request about an open session, answered beside those that follow it.
func inSession[P, R any](s *Server, id func(*P) string, f func(context.Context, *editorSession, *P) (R, error)) extension {
	return func(ctx context.Context, r *rpc.Request) (any, error) {
		p, err := decode[P](r)
		if err != nil {
			return nil, err
		}
		_, found := s.seek(id(p))
		r.Async()
		es, err := found(ctx)
		if err != nil {
			return nil, err
		}
		return result(f(ctx, es, p))
	}
}

// toolCall runs a tool as the model would, with the same gate; what it changes is asked for all the same.
func (s *Server) toolCall(ctx context.Context, es *editorSession, p *protocol.ToolCallRequest) (*protocol.ToolCallResponse, error) {
	input := p.Input
	if len(input) == 0 || string(input) == "null" {
		input = json.RawMessage("{}")
	}
	d, err := es.Session.Tool(ctx, p.Tool, input)
	if err != nil {
		return nil, err
	}
	out := &protocol.ToolCallResponse{Title: d.Title, Output: d.Output}
	if len(d.Metadata) > 0 {
		out.Metadata = rawJSON(d.Metadata)
	}
	if d.Status == agent.ToolError {
		out.Error = &protocol.ToolCallError{Kind: d.ErrorKind, Message: d.Error}
	}
	return out, nil
}

func (s *Server) rename(_ context.Context, es *editorSession, p *protocol.SessionRenameRequest) (*protocol.SessionRenameResponse, error) {
	if err := es.SetTitle(p.Title); err != nil {
		return nil, rpc.InvalidParams("title: %v", err)
	}
	return &protocol.SessionRenameResponse{}, nil
}

func (s *Server) rules(es *editorSession) permission.Ruleset {
	info := es.Info()
	return s.o.Rules(info.Cwd, info.Agent)
}

func wireRule(r permission.Rule) protocol.PermissionRule {
	return protocol.PermissionRule{Permission: r.Permission, Pattern: r.Pattern, Action: string(r.Action), Origin: r.Origin}
}

func (s *Server) permissionList(ctx context.Context, es *editorSession, _ *protocol.PermissionListRequest) (*protocol.PermissionListResponse, error) {
	out := &protocol.PermissionListResponse{Rules: []protocol.PermissionRule{}}
	for _, r := range s.rules(es) {
		out.Rules = append(out.Rules, wireRule(r))
	}
	if s.o.Grants == nil {
		return out, nil
	}
	grants, err := grantsIn(ctx, s.o.Grants, paths.Worktree(es.Info().Cwd))
	if err != nil {
		return nil, err
	}
	for _, g := range grants {
		out.Rules = append(out.Rules, protocol.PermissionRule{ID: strconv.FormatInt(g.ID, 10), Permission: g.Permission, Pattern: g.Pattern, Action: string(permission.Allow), Origin: "project"})
	}
	return out, nil
}

func (s *Server) permissionRevoke(ctx context.Context, es *editorSession, p *protocol.PermissionRevokeRequest) (*protocol.PermissionRevokeResponse, error) {
	id, err := strconv.ParseInt(p.ID, 10, 64)
	if err != nil {
		return nil, rpc.InvalidParams("id: %q is not the id of a remembered rule", p.ID)
	}
	// Only what belongs to this project: an id is no key to the others.
	grants, err := grantsIn(ctx, s.o.Grants, paths.Worktree(es.Info().Cwd))
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(grants, func(g permission.Grant) bool { return g.ID == id }) {
		return &protocol.PermissionRevokeResponse{}, nil
	}
	switch err := s.o.Grants.Revoke(ctx, id); {
	case errors.Is(err, permission.ErrNoGrant):
		return &protocol.PermissionRevokeResponse{}, nil
	case err != nil:
		return nil, err
	}
	return &protocol.PermissionRevokeResponse{Revoked: true}, nil
}

func (s *Server) permissionExplain(ctx context.Context, es *editorSession, p *protocol.PermissionExplainRequest) (*protocol.PermissionExplainResponse, error) {
	action, rule := s.rules(es).Evaluate(p.Permission, p.Pattern)
	out := &protocol.PermissionExplainResponse{Action: string(action)}
	if rule != nil {
		r := wireRule(*rule)
		out.Rule = &r
	}
	if action == permission.Ask && s.o.Grants != nil {
		grants, err := grantsIn(ctx, s.o.Grants, paths.Worktree(es.Info().Cwd))
		if err != nil {
			return nil, err
		}
		for _, g := range grants {
			granted := permission.Ruleset{{Permission: g.Permission, Pattern: g.Pattern, Action: permission.Allow, Origin: "project"}}
			if a, r := granted.Evaluate(p.Permission, p.Pattern); a == permission.Allow {
				w := wireRule(*r)
				w.ID = strconv.FormatInt(g.ID, 10)
				out.Action, out.Rule = string(a), &w
			}
		}
	}
	return out, nil
}

// export writes a session down as Markdown for people or as JSON lines of its events.
func (s *Server) export(ctx context.Context, es *editorSession, p *protocol.SessionExportRequest) (*protocol.SessionExportResponse, error) {
	var b strings.Builder
	var add func(agent.Event) error
	hidden, err := es.Hidden(ctx)
	if err != nil {
		return nil, err
	}
	read := slash.Markdown(&b)
	switch p.Format {
	case "", "markdown":
		p.Format = "markdown"
		fmt.Fprintf(&b, "# %s\n\n%s, in %s\n", es.Info().Title, es.Info().Created.Format("2006-01-02 15:04"), es.Info().Cwd)
		add = func(e agent.Event) error {
			if hidden.Has(e) {
				return nil
			}
			return read(review.Hydrated(e, s.o.Desk.Whole))
		}
	case "json":
		add = func(e agent.Event) error {
			line, err := rpc.JSON.Marshal(review.Hydrated(e, s.o.Desk.Whole))
			b.Write(line)
			b.WriteByte('\n')
			return err
		}
	default:
		return nil, rpc.InvalidParams("format: unknown format %q; known are markdown and json", p.Format)
	}
	err = es.Events(ctx, 0, func(e agent.Event) error {
		if b.Len() > maxUpdate {
			return fmt.Errorf("the session is larger than %d bytes; export it with `pillion sessions export`", maxUpdate)
		}
		return add(e)
	})
	if err != nil {
		return nil, err
	}
	return &protocol.SessionExportResponse{Format: p.Format, Content: b.String()}, nil
}
