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

// What plugins may ask through their client. It reads only: what changes something goes through a hook or a tool, where
// a person sees it.
var clientMethods = map[string]func(a *App, ctx context.Context, cwd string, args custom.Args) (any, error){
	"session.list": func(a *App, ctx context.Context, cwd string, _ custom.Args) (any, error) {
		return a.theirSessions(ctx, cwd, func(s agent.SessionInfo) bool { return s.Parent == "" })
	},
	"session.children": func(a *App, ctx context.Context, cwd string, args custom.Args) (any, error) {
		return a.theirSessions(ctx, "", func(s agent.SessionInfo) bool { return s.Parent == args.ID })
	},
	"session.get": func(a *App, ctx context.Context, _ string, args custom.Args) (any, error) {
		s, err := a.sessionInfo(ctx, args.ID)
		return a.theirSession(s), err
	},
	"session.messages": func(a *App, ctx context.Context, _ string, args custom.Args) (any, error) {
		all, err := a.theirMessages(ctx, args.ID)
		if args.Limit > 0 && args.Limit < len(all) {
			all = all[len(all)-args.Limit:]
		}
		return all, err
	},
	"session.message": func(a *App, ctx context.Context, _ string, args custom.Args) (any, error) {
		all, err := a.theirMessages(ctx, args.ID)
		if i := slices.IndexFunc(all, func(m agent.Their) bool { return m.Info["id"] == args.Message }); err == nil && i >= 0 {
			return all[i], nil
		}
		return nil, errors.Join(err, fmt.Errorf("message %q: %w", args.Message, custom.ErrNotFound))
	},
	"session.todo": func(a *App, ctx context.Context, _ string, args custom.Args) (any, error) {
		if _, err := a.sessionInfo(ctx, args.ID); err != nil {
			return nil, err
		}
		todos := []any{}
		err := a.Runtime.StoredOf(ctx, args.ID, 0, []agent.EventType{agent.EventPlan}, func(e agent.Event) error {
			d, _ := agent.Value[agent.PlanData](e)
			todos = todos[:0]
			for _, x := range d.Todos {
				todos = append(todos, x)
			}
			return nil
		})
		return todos, err
	},
	"session.status": func(a *App, _ context.Context, _ string, _ custom.Args) (any, error) {
		out := map[string]any{}
		for _, s := range a.Runtime.Live() {
			if s.State().Busy {
				out[s.ID()] = map[string]string{"type": "busy"}
			}
		}
		return out, nil
	},
	"config.get": func(a *App, _ context.Context, cwd string, _ custom.Args) (any, error) { return a.ConfigOf(cwd), nil },
	"app.agents": func(a *App, _ context.Context, cwd string, _ custom.Args) (any, error) {
		out := []any{}
		for _, x := range a.Runtime.Agents(cwd) {
			out = append(out, map[string]any{"name": x.Name, "description": x.Description, "mode": x.Mode, "hidden": x.Hidden})
		}
		return out, nil
	},
	"path.get": func(a *App, _ context.Context, cwd string, _ custom.Args) (any, error) {
		return map[string]string{"state": a.Place.State, "config": a.Place.User, "worktree": paths.Worktree(cwd), "directory": cwd}, nil
	},
	"project.current": func(_ *App, _ context.Context, cwd string, _ custom.Args) (any, error) {
		return map[string]any{"id": paths.Worktree(cwd), "worktree": paths.Worktree(cwd), "time": map[string]int{"created": 0}}, nil
	},
}

// pluginClient answers the client of a directory's plugins.
func (a *App) pluginClient(cwd string) func(ctx context.Context, method string, args custom.Args) (any, error) {
	return func(ctx context.Context, method string, args custom.Args) (any, error) {
		f, ok := clientMethods[method]
		if !ok {
			names := slices.Sorted(maps.Keys(clientMethods))
			return nil, fmt.Errorf("Pillion offers plugins app.log, tui.showToast, %s; what happens is told to the event hook: %w", strings.Join(names, ", "), custom.ErrNoMethod)
		}
		return f(a, ctx, cwd, args)
	}
}

func (a *App) sessionInfo(ctx context.Context, id string) (agent.SessionInfo, error) {
	if s, ok := a.Runtime.Session(id); ok {
		return s.Info(), nil
	}
	all, err := a.Runtime.List(ctx, "")
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

func (a *App) theirMessages(ctx context.Context, id string) ([]agent.Their, error) {
	if _, err := a.sessionInfo(ctx, id); err != nil {
		return nil, err
	}
	return a.Runtime.Theirs(ctx, id)
}

func (a *App) theirSessions(ctx context.Context, cwd string, keep func(agent.SessionInfo) bool) (any, error) {
	all, err := a.Runtime.List(ctx, cwd)
	out := []any{}
	for _, s := range all {
		if keep(s) {
			out = append(out, a.theirSession(s))
		}
	}
	return out, err
}

func (a *App) theirSession(s agent.SessionInfo) map[string]any {
	return map[string]any{"id": s.ID, "projectID": paths.Worktree(s.Cwd), "directory": s.Cwd, "parentID": s.Parent, "title": s.Title, "version": a.Place.version,
		"time": map[string]int64{"created": s.Created.UnixMilli(), "updated": s.Updated.UnixMilli()}}
}

// chatMessage lets plugins change a prompt. What they leave as it was stays what it is, bytes of files included.
func (h *customHost) chatMessage(ctx context.Context, e agent.Entering) []provider.Part {
	if !h.Has(ctx, "chat.message") {
		return e.Parts
	}
	vendor, model, _ := strings.Cut(e.Session.Model, "/")
	m := custom.Message{ID: e.MessageID, SessionID: e.Session.ID, Agent: e.Session.Agent, Provider: vendor, Model: model}
	known := map[string]provider.Part{}
	for i, p := range e.Parts {
		made := custom.MessagePart{ID: fmt.Sprintf("prt_%s_%d", e.MessageID, i), SessionID: e.Session.ID, MessageID: e.MessageID, Type: "text", Text: p.Text, Synthetic: p.Synthetic}
		if p.Type == provider.PartFile && len(p.Files) > 0 {
			made.Type, made.Mime, made.Filename = "file", p.Files[0].Mime, p.Files[0].Name
		}
		known[made.ID] = p
		m.Parts = append(m.Parts, made)
	}
	var out []provider.Part
	for _, p := range h.ChatMessage(ctx, m) {
		was, ok := known[p.ID]
		switch {
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
			_, data, _ := strings.Cut(p.URL, ";base64,")
			if raw, err := base64.StdEncoding.DecodeString(data); err == nil && len(raw) > 0 && strings.HasPrefix(p.URL, "data:") {
				out = append(out, provider.Part{Type: provider.PartFile, Files: []provider.File{{Mime: p.Mime, Name: p.Filename, Data: raw}}})
			}
		}
	}
	return out
}
