package app

import (
	"context"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/builtin"
)

// toolbox implements agent.Toolbox: Pillion's own tools, and those of MCP servers and editors.
type toolbox struct{ a *App }

// Tools returns the built-in tools of a session. It first recovers interrupted writes, because no tool may see a half-written file.
func (t toolbox) Tools(ctx context.Context, s agent.SessionInfo) ([]tools.Tool, error) {
	t.a.Changes.RecoverOnce(ctx)
	return t.a.Drafts.wrap(builtin.All(t.a.Sessions.Env(s)), s), nil
}

// More returns the tools of MCP servers and of the session's editor, which may change between steps.
func (t toolbox) More(ctx context.Context, s agent.SessionInfo) []tools.Tool {
	out := t.a.Drafts.beside(t.a.MCP.tools(ctx, s), t.a.MCP)
	if t.a.O.Editors != nil {
		out = append(out, t.a.Drafts.beside(t.a.O.Editors.Tools(s.ID), nil)...)
	}
	return out
}

// Find returns a tool that was not offered because there are too many, so that a model that knows its name can call it.
func (t toolbox) Find(s agent.SessionInfo, name string) (tools.Tool, bool) {
	found, ok := t.a.MCP.find(s, name)
	if ok {
		found = t.a.Drafts.beside([]tools.Tool{found}, t.a.MCP)[0]
	}
	return found, ok
}

// Release drops what was kept for a session's tools. The draft's worker ends first, because its calls use the session's environment.
func (t toolbox) Release(session string) {
	t.a.Drafts.Ended(session)
	t.a.Sessions.Ended(session)
}

// Toolbox returns the tools of sessions.
func (a *App) Toolbox() agent.Toolbox { return toolbox{a} }
