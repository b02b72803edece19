package app

import (
	"context"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
)

// The types of this file are the folder's parts as package agent asks for them: each has the methods of one of its
// interfaces, and no state.

// configuration is agent.Configuration.
type configuration struct{ a *App }

func (c configuration) Agents(cwd string) []agent.Agent { return c.a.agents(cwd) }

func (c configuration) Rules(cwd string) permission.Ruleset {
	return c.a.ConfigOf(cwd).Permission.Rules
}

func (c configuration) Switches(cwd string) map[string]bool { return c.a.switches(cwd) }

func (c configuration) Preferences(cwd string) agent.Preferences {
	own := c.a.ConfigOf(cwd)
	return agent.Preferences{DefaultAgent: own.DefaultAgent, Review: own.Review, Compaction: c.a.compaction(cwd), Depth: c.a.depth(cwd)}
}

// toolbox is agent.Toolbox: Pillion's own tools, and those of MCP servers and editors.
type toolbox struct{ a *App }

func (t toolbox) Tools(ctx context.Context, s agent.SessionInfo) ([]tools.Tool, error) {
	t.a.RecoverOnce(ctx)
	return builtin.All(t.a.Env(s)), nil
}

func (t toolbox) More(ctx context.Context, s agent.SessionInfo) []tools.Tool { return t.a.more(ctx, s) }

func (t toolbox) Find(s agent.SessionInfo, name string) (tools.Tool, bool) { return t.a.find(s, name) }

func (t toolbox) Release(session string) { t.a.Ended(session) }

// projectContext is agent.ProjectContext.
type projectContext struct{ a *App }

func (p projectContext) Instructions(cwd string) []string { return p.a.instructions(cwd) }

func (p projectContext) Notes(cwd string) []string { return p.a.mcpNotes(cwd) }

func (p projectContext) Tree(ctx context.Context, cwd string) string { return p.a.sketch(ctx, cwd) }

func (p projectContext) Mentioned(ctx context.Context, e agent.Entering) []provider.Part {
	return p.a.Enter(ctx, e)
}

// plugins is agent.Plugins.
type plugins struct{ a *App }

func (p plugins) Extensions(cwd string) *agent.Extensions { return p.a.CustomExtensions(cwd) }

// changeKeeper is agent.ChangeKeeper: texts are files under their hash, beside the sessions.
type changeKeeper struct{ a *App }

func (k changeKeeper) Pack(state change.State, set *change.Set) *change.Set {
	return k.a.pack(state, set)
}

func (k changeKeeper) Recover(ctx context.Context, s agent.SessionInfo, set *change.Set) change.State {
	return k.a.settle(ctx, s, set)
}

// hider is agent.Secrets.
type hider struct{ place *Workplace }

func (h hider) Hide(cwd, text string) string { return h.place.hide(cwd, text) }

// Toolbox is what gives sessions their tools.
func (a *App) Toolbox() agent.Toolbox { return toolbox{a} }
