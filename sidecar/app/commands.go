package app

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/slash"
)

// CommandsOf returns the slash commands of a directory: those that people wrote in configuration files or Markdown, sorted by name, those
// about drafts, and the prompts of MCP servers. A command without a template is left out, because it has nothing to send.
func (a *App) CommandsOf(cwd string) []slash.Command {
	c := a.ConfigOf(cwd)
	var out []slash.Command
	for _, name := range slices.Sorted(maps.Keys(c.Command)) {
		if d := c.Command[name]; d.Template != "" {
			out = append(out, slash.Template(name, d))
		}
	}
	return append(append(out, a.Drafts.draftCommands()...), a.MCP.commands(cwd)...)
}

// commands returns the prompts of the running MCP servers as /server:prompt. It starts the servers without waiting for them: editors are
// told when more commands are available.
func (m *MCPServers) commands(cwd string) []slash.Command {
	set := m.of(cwd)
	if set == nil {
		return nil
	}
	// Prompts of a server that is not connected yet are missing from this list.
	set.Start()
	var out []slash.Command
	for _, p := range set.Prompts() {
		var hint []string
		for _, arg := range p.Arguments {
			// Brackets mark an optional argument, as in a manual page.
			if arg.Required {
				hint = append(hint, arg.Name)
			} else {
				hint = append(hint, "["+arg.Name+"]")
			}
		}
		out = append(out, slash.Command{Name: p.Name, Description: p.Description, Hint: strings.Join(hint, " "), Run: func(ctx context.Context, h slash.Host, args string) (string, *agent.Prompt, error) {
			r, err := set.Expand(ctx, p.Name, strings.Fields(args))
			if err != nil {
				return "", nil, err
			}
			made := &agent.Prompt{Parts: []provider.Part{{Type: provider.PartText, Text: r.Output}}}
			for _, f := range r.Attachments {
				made.Parts = append(made.Parts, provider.Part{Type: provider.PartFile, Files: []provider.File{{Mime: f.Mime, Name: f.Name, Data: f.Data}}})
			}
			return "", made, nil
		}})
	}
	return out
}
