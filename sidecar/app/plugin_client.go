package app

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools/custom"
	"github.com/pillion-dev/pillion/tools/paths"
)

// clientMethods are the methods that plugins may call on their client; names and shapes are those of OpenCode's SDK. All of them only read:
// a change must go through a hook or a tool, where the person sees it.
var clientMethods = map[string]func(p pluginClient, ctx context.Context, args custom.Args) (any, error){
	// Sub-agents' sessions are left out; session.children has them.
	"session.list": func(p pluginClient, ctx context.Context, _ custom.Args) (any, error) {
		return p.sessions(ctx, p.cwd, func(s agent.SessionInfo) bool { return s.Parent == "" })
	},
	"session.children": func(p pluginClient, ctx context.Context, args custom.Args) (any, error) {
		return p.sessions(ctx, "", func(s agent.SessionInfo) bool { return s.Parent == args.ID })
	},
	"session.get": func(p pluginClient, ctx context.Context, args custom.Args) (any, error) {
		s, err := p.session(ctx, args.ID)
		return p.shown(s), err
	},
	"session.messages": func(p pluginClient, ctx context.Context, args custom.Args) (any, error) {
		all, err := p.messages(ctx, args.ID)
		if args.Limit > 0 && args.Limit < len(all) {
			all = all[len(all)-args.Limit:]
		}
		return all, err
	},
	"session.message": func(p pluginClient, ctx context.Context, args custom.Args) (any, error) {
		all, err := p.messages(ctx, args.ID)
		if i := slices.IndexFunc(all, func(m agent.PluginMessage) bool { return m.Info["id"] == args.Message }); err == nil && i >= 0 {
			return all[i], nil
		}
		return nil, errors.Join(err, fmt.Errorf("message %q: %w", args.Message, custom.ErrNotFound))
	},
	"session.todo": func(p pluginClient, ctx context.Context, args custom.Args) (any, error) {
		if _, err := p.session(ctx, args.ID); err != nil {
			return nil, err
		}
		// Not nil, so that a plugin gets [] for a session without a plan.
		todos := []any{}
		err := p.app.Runtime.StoredOf(ctx, args.ID, 0, []agent.EventType{agent.EventPlan}, func(e agent.Event) error {
			d, _ := agent.Value[agent.PlanData](e)
			// Each plan event replaces the one before, so the last one counts.
			todos = todos[:0]
			for _, x := range d.Todos {
				todos = append(todos, x)
			}
			return nil
		})
		return todos, err
	},
	"session.status": func(p pluginClient, _ context.Context, _ custom.Args) (any, error) {
		out := map[string]any{}
		for _, s := range p.app.Runtime.Live() {
			if s.State().Busy {
				out[s.ID()] = map[string]string{"type": "busy"}
			}
		}
		return out, nil
	},
	"config.get": func(p pluginClient, _ context.Context, _ custom.Args) (any, error) { return p.app.ConfigOf(p.cwd), nil },
	"app.agents": func(p pluginClient, _ context.Context, _ custom.Args) (any, error) {
		out := []any{}
		for _, x := range p.app.Runtime.Agents(p.cwd) {
			out = append(out, map[string]any{"name": x.Name, "description": x.Description, "mode": x.Mode, "hidden": x.Hidden})
		}
		return out, nil
	},
	"path.get": func(p pluginClient, _ context.Context, _ custom.Args) (any, error) {
		return map[string]string{"state": p.app.Place.State, "config": p.app.Place.User, "worktree": paths.Worktree(p.cwd), "directory": p.cwd}, nil
	},
	// Pillion has no table of projects: the worktree is the id, and there is no creation time.
	"project.current": func(p pluginClient, _ context.Context, _ custom.Args) (any, error) {
		return map[string]any{"id": paths.Worktree(p.cwd), "worktree": paths.Worktree(p.cwd), "time": map[string]int{"created": 0}}, nil
	},
}

// pluginClient answers calls of a directory's plugins. It can read a session of any directory by its id; session.list returns those of its
// own directory.
type pluginClient struct {
	app *App
	cwd string
}

// call answers one call. An unknown method fails with custom.ErrNoMethod and a list of the known ones, for the plugin's author.
func (p pluginClient) call(ctx context.Context, method string, args custom.Args) (any, error) {
	f, ok := clientMethods[method]
	if !ok {
		names := slices.Sorted(maps.Keys(clientMethods))
		return nil, fmt.Errorf("Pillion offers plugins app.log, tui.showToast, %s; events go to the event hook: %w", strings.Join(names, ", "), custom.ErrNoMethod)
	}
	return f(p, ctx, args)
}

// session returns an open or stored session by its id; else custom.ErrNotFound. Open sessions are searched first, because that needs no
// query.
func (p pluginClient) session(ctx context.Context, id string) (agent.SessionInfo, error) {
	if s, ok := p.app.Runtime.Session(id); ok {
		return s.Info(), nil
	}
	all, err := p.app.Runtime.List(ctx, "")
	if err != nil {
		return agent.SessionInfo{}, err
	}
	for _, s := range all {
		if s.ID == id {
			return s, nil
		}
	}
	return agent.SessionInfo{}, fmt.Errorf("session %q: %w", id, custom.ErrNotFound)
}

// messages returns a session's messages in OpenCode's shape. It looks up the session first, so that an unknown id is an error instead of an
// empty list.
func (p pluginClient) messages(ctx context.Context, id string) ([]agent.PluginMessage, error) {
	if _, err := p.session(ctx, id); err != nil {
		return nil, err
	}
	return p.app.Runtime.PluginMessages(ctx, id)
}

// sessions lists the sessions of a directory ("" means all) that keep accepts. The result is never nil, so that plugins get [] instead of
// null.
func (p pluginClient) sessions(ctx context.Context, cwd string, keep func(agent.SessionInfo) bool) (any, error) {
	all, err := p.app.Runtime.List(ctx, cwd)
	out := []any{}
	for _, s := range all {
		if keep(s) {
			out = append(out, p.shown(s))
		}
	}
	return out, err
}

// shown returns a session in OpenCode's shape; times are milliseconds since 1970.
func (p pluginClient) shown(s agent.SessionInfo) map[string]any {
	return map[string]any{"id": s.ID, "projectID": paths.Worktree(s.Cwd), "directory": s.Cwd, "parentID": s.Parent, "title": s.Title, "version": p.app.Place.version,
		"time": map[string]int64{"created": s.Created.UnixMilli(), "updated": s.Updated.UnixMilli()}}
}

// chatMessage lets plugins change a prompt (hook chat.message).
func (h *customHost) chatMessage(ctx context.Context, e agent.Entering) []provider.Part {
	if !h.Has(ctx, "chat.message") {
		return e.Parts
	}
	// A model is VENDOR/MODEL. Cut at the first slash, because the model's own name may contain others.
	vendor, model, _ := strings.Cut(e.Session.Model, "/")
	m := custom.Message{ID: e.MessageID, SessionID: e.Session.ID, Agent: e.Session.Agent, Provider: vendor, Model: model}
	known, parts := shownParts(e.Session.ID, e.MessageID, e.Parts)
	m.Parts = parts
	return takenParts(known, h.ChatMessage(ctx, m))
}

// command lets plugins change a slash command's prompt (hook command.execute.before). For a command that a sub-agent runs they see the
// same parts, whose texts become its prompt.
func (h *customHost) command(ctx context.Context, s agent.SessionInfo, name, args string, parts []provider.Part) ([]provider.Part, error) {
	if !h.Has(ctx, "command.execute.before") {
		return parts, nil
	}
	// The message has no id yet, so the session's stands for it: plugins tell parts apart by their ids only.
	known, shown := shownParts(s.ID, s.ID, parts)
	changed, err := h.CommandBefore(ctx, s.ID, name, args, shown)
	if err != nil {
		return nil, err
	}
	return takenParts(known, changed), nil
}

// shownParts returns parts in OpenCode's shape, and the parts by the ids that they are given. A plugin that changes an id adds a part and
// drops the old one.
func shownParts(session, message string, parts []provider.Part) (known map[string]provider.Part, shown []custom.MessagePart) {
	known = map[string]provider.Part{}
	for i, p := range parts {
		made := custom.MessagePart{ID: fmt.Sprintf("prt_%s_%d", message, i), SessionID: session, MessageID: message, Type: "text", Text: p.Text, Synthetic: p.Synthetic}
		if p.Type == provider.PartFile && len(p.Files) > 0 {
			made.Type, made.Mime, made.Filename = "file", p.Files[0].Mime, p.Files[0].Name
		}
		known[made.ID] = p
		shown = append(shown, made)
	}
	return known, shown
}

// takenParts returns the parts that plugins left. Parts that they return unchanged are taken from known, so the bytes of files never go
// through plugins. New files are accepted only as data: URLs.
func takenParts(known map[string]provider.Part, left []custom.MessagePart) []provider.Part {
	var out []provider.Part
	for _, p := range left {
		was, ok := known[p.ID]
		switch {
		// An emptied text removes the part.
		case ok && was.Type == provider.PartText:
			if was.Text = p.Text; p.Text == "" {
				continue
			}
			out = append(out, was)
		case ok:
			out = append(out, was)
		case p.Type == "text" && p.Text != "" && !p.Ignored:
			out = append(out, provider.Part{Type: provider.PartText, Text: p.Text, Synthetic: p.Synthetic})
		case p.Type == "file":
			// Any other URL would be a file or an address that nobody has approved.
			_, data, _ := strings.Cut(p.URL, ";base64,")
			if raw, err := base64.StdEncoding.DecodeString(data); err == nil && len(raw) > 0 && strings.HasPrefix(p.URL, "data:") {
				out = append(out, provider.Part{Type: provider.PartFile, Files: []provider.File{{Mime: p.Mime, Name: p.Filename, Data: raw}}})
			}
		}
	}
	return out
}
