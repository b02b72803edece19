package acp

import (
	"context"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// method answers one message. A quick one is answered at once, in the order of the wire; a longer one calls
// Request.Async as soon as it has its place in its session's order.
type method func(ctx context.Context, r *rpc.Request) (any, error)

// table is every method of this connection, and who answers it. It is made once. The _pillion methods in it are the
// ones that initialize announces, so a new row is all that an editor needs to see it. Rows differ in what orders
// them: notification and handle answer in place, inOrder keeps the order of a session's settings and prompts,
// inSession and async promise no order.
func (s *Connection) table(who *person, open string) map[string]method {
	h, t := s.host, s.sessions
	sel := &selection{buffers: s.editor.Buffers}
	options, commands := &sessionOptions{h.Runtime, h.Folders}, &commandList{h.Folders}
	relayed := &relays{conn: s.conn, source: h.Terminals}
	opening := &openings{conn: s.conn, sessions: t, folders: h.Folders, attached: sessionOnce{id: open},
		sessionServices: &sessionServices{rt: h.Runtime, registry: h.Editors, desk: h.Desk, choices: options, input: &promptReader{commands, sel}, relays: relayed}}
	turn := &turns{conn: s.conn, sessions: t, commands: commands, project: h.Project, listener: h.Listener}
	set := &settings{options}
	changes := &reviews{rt: h.Runtime, texts: who.texts, desk: h.Desk}
	look := &sessionTools{}
	lent := &editorTools{conn: s.conn, registry: h.Editors}
	rules := &permissions{h.Folders, h.Grants}
	find := &mentions{h.Finder, s.editor.Buffers}
	keys := &authMethods{h.Auth}
	screen := &terminals{conn: s.conn, sessions: t, source: h.Terminals}
	return map[string]method{
		protocol.MethodInitialize:   func(_ context.Context, r *rpc.Request) (any, error) { return handle(r, s.initialize) },
		protocol.MethodAuthenticate: func(_ context.Context, r *rpc.Request) (any, error) { return handle(r, authenticate) },

		protocol.MethodSessionNew:    opening.newSession,
		protocol.MethodSessionLoad:   opening.loadSession,
		protocol.MethodSessionResume: opening.resumeSession,
		protocol.MethodSessionList:   func(ctx context.Context, r *rpc.Request) (any, error) { return async(ctx, r, opening.listSessions) },
		protocol.MethodSessionClose:  opening.closeSession,
		protocol.MethodSessionDelete: opening.deleteSession,

		protocol.MethodSessionPrompt:   turn.prompt,
		protocol.MethodSessionCancel:   func(_ context.Context, r *rpc.Request) (any, error) { return handle(r, turn.cancel) },
		protocol.MethodSessionSteering: inOrder(t, func(p *protocol.SteeringRequest) string { return p.SessionID }, turn.steer),

		protocol.MethodSessionSetMode:         inOrder(t, func(p *protocol.SetSessionModeRequest) string { return p.SessionID }, set.setMode),
		protocol.MethodSessionSetConfigOption: inOrder(t, func(p *protocol.SetSessionConfigOptionRequest) string { return p.SessionID }, set.setConfigOption),

		protocol.MethodPillionSessionQueue:  inOrder(t, func(p *protocol.SessionQueueRequest) string { return p.SessionID }, turn.queue),
		protocol.MethodPillionSessionStatus: inSession(t, func(p *protocol.SessionStatusRequest) string { return p.SessionID }, turn.status),
		protocol.MethodPillionSessionRename: inSession(t, func(p *protocol.SessionRenameRequest) string { return p.SessionID }, look.rename),
		protocol.MethodPillionSessionExport: inSession(t, func(p *protocol.SessionExportRequest) string { return p.SessionID }, look.export),
		protocol.MethodPillionSessionFork:   inSession(t, func(p *protocol.SessionForkRequest) string { return p.SessionID }, changes.fork),

		protocol.MethodPillionBufferDidOpen:        notification(s.editor.Buffers.DidOpen),
		protocol.MethodPillionBufferDidChange:      notification(s.editor.Buffers.DidChange),
		protocol.MethodPillionBufferDidSave:        notification(s.editor.Buffers.DidSave),
		protocol.MethodPillionBufferDidClose:       notification(s.editor.Buffers.DidClose),
		protocol.MethodPillionSelectionDidChange:   notification(sel.didChange),
		protocol.MethodPillionDiagnosticsDidChange: notification(h.Reported.DidChange),
		protocol.MethodPillionFileSearch:           inSession(t, func(p *protocol.FileSearchRequest) string { return p.SessionID }, find.fileSearch),
		protocol.MethodPillionToolRegister:         func(_ context.Context, r *rpc.Request) (any, error) { return handle(r, lent.registerTools) },
		protocol.MethodPillionToolCall:             inSession(t, func(p *protocol.ToolCallRequest) string { return p.SessionID }, look.toolCall),

		protocol.MethodPillionChangeList:        inSession(t, func(p *protocol.ChangeListRequest) string { return p.SessionID }, changes.changeList),
		protocol.MethodPillionChangeKeep:        inSession(t, func(p *protocol.ChangeKeepRequest) string { return p.SessionID }, changes.changeKeep),
		protocol.MethodPillionChangeUndo:        inSession(t, func(p *protocol.ChangeUndoRequest) string { return p.SessionID }, changes.changeUndo),
		protocol.MethodPillionChangeText:        inSession(t, func(p *protocol.ChangeTextRequest) string { return p.SessionID }, changes.changeText),
		protocol.MethodPillionChangeCheck:       inSession(t, func(p *protocol.ChangeCheckRequest) string { return p.SessionID }, changes.changeCheck),
		protocol.MethodPillionCommitMessage:     inSession(t, func(p *protocol.CommitMessageRequest) string { return p.SessionID }, turn.commitMessage),
		protocol.MethodPillionEditNext:          inSession(t, func(p *protocol.NextEditRequest) string { return p.SessionID }, turn.nextEdit),
		protocol.MethodPillionChangeTurn:        inSession(t, func(p *protocol.ChangeTurnRequest) string { return p.SessionID }, changes.changeTurn),
		protocol.MethodPillionCheckpointList:    inSession(t, func(p *protocol.CheckpointListRequest) string { return p.SessionID }, changes.checkpointList),
		protocol.MethodPillionCheckpointRestore: inSession(t, func(p *protocol.CheckpointRestoreRequest) string { return p.SessionID }, changes.checkpointRestore),

		protocol.MethodPillionPermissionList:    inSession(t, func(p *protocol.PermissionListRequest) string { return p.SessionID }, rules.permissionList),
		protocol.MethodPillionPermissionExplain: inSession(t, func(p *protocol.PermissionExplainRequest) string { return p.SessionID }, rules.permissionExplain),
		protocol.MethodPillionPermissionRevoke:  inSession(t, func(p *protocol.PermissionRevokeRequest) string { return p.SessionID }, rules.permissionRevoke),

		protocol.MethodPillionAuthList: func(ctx context.Context, r *rpc.Request) (any, error) { return async(ctx, r, keys.authList) },
		protocol.MethodPillionAuthSet:  func(ctx context.Context, r *rpc.Request) (any, error) { return async(ctx, r, keys.authSet) },

		protocol.MethodPillionTerminalList:      inSession(t, func(p *protocol.TerminalListRequest) string { return p.SessionID }, screen.terminalList),
		protocol.MethodPillionTerminalCreate:    inSession(t, func(p *protocol.TerminalCreateRequest) string { return p.SessionID }, screen.terminalCreate),
		protocol.MethodPillionTerminalSubscribe: screen.terminalSubscribe,
		protocol.MethodPillionTerminalInput:     screen.terminalInput,
		protocol.MethodPillionTerminalResize:    inSession(t, func(p *protocol.TerminalResizeRequest) string { return p.SessionID }, screen.terminalResize),
		protocol.MethodPillionTerminalKill:      inSession(t, func(p *protocol.TerminalKillRequest) string { return p.SessionID }, screen.terminalKill),
	}
}

// dispatch finds the method of a message. Unknown notifications are ignored, as JSON-RPC demands; unknown requests
// are an error. The context ends with the connection, or when the editor cancels the request.
func (s *Connection) dispatch(ctx context.Context, r *rpc.Request) (any, error) {
	if f, ok := s.methods[r.Method]; ok {
		return f(ctx, r)
	}
	if !r.IsCall {
		s.log.Debug("ignored a notification", "method", r.Method)
		return nil, nil
	}
	return nil, rpc.MethodNotFound(r.Method)
}
