package app

import (
	"context"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/builtin"
)

// toolbox is agent.Toolbox: Pillion's own tools, and those of MCP servers and editors.
type toolbox struct{ a *App }

func (t toolbox) Tools(ctx context.Context, s agent.SessionInfo) ([]tools.Tool, error) {
	t.a.Changes.RecoverOnce(ctx)
	return builtin.All(t.a.Sessions.Env(s)), nil
}

func (t toolbox) More(ctx context.Context, s agent.SessionInfo) []tools.Tool {
	out := t.a.MCP.tools(ctx, s)
	if t.a.O.Editors != nil {
		if theirs := t.a.O.Editors.Tools(s.ID); len(theirs) > 0 {
			out = append(out[:len(out):len(out)], theirs...)
		}
	}
	return out
}

func (t toolbox) Find(s agent.SessionInfo, name string) (tools.Tool, bool) {
	return t.a.MCP.find(s, name)
}

func (t toolbox) Release(session string) { t.a.Sessions.Ended(session) }

// Toolbox is what gives sessions their tools.
func (a *App) Toolbox() agent.Toolbox { return toolbox{a} }
