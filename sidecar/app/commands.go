package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/sidecar/slash"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// CommandsOf returns the slash commands of a directory: those that people wrote in configuration files or Markdown, sorted by name, those
// about drafts, the prompts of MCP servers, and the skills. A command without a template is left out, because it has nothing to send.
func (a *App) CommandsOf(cwd string) []slash.Command {
	c := a.ConfigOf(cwd)
	var out []slash.Command
	for _, name := range slices.Sorted(maps.Keys(c.Command)) {
		if d := c.Command[name]; d.Template != "" {
			out = append(out, slash.Template(name, d))
		}
	}
	out = append(append(out, a.Drafts.draftCommands()...), a.MCP.commands(cwd)...)
	return append(out, a.skillCommands(cwd, c, out)...)
}

// skillCommands are the skills as /name, as in OpenCode and Claude Code: the text of the skill with what was typed behind it. A skill takes
// no name that is another command's, so that one of a project hides no /undo. What a rule denies is no command either.
func (a *App) skillCommands(cwd string, c *config.Config, others []slash.Command) (out []slash.Command) {
	others = slash.WithBuiltin(others)
	for _, s := range a.project.skills(cwd, paths.Worktree(cwd), c).Skills() {
		taken := slices.ContainsFunc(others, func(o slash.Command) bool { return o.Name == s.Name })
		if action, rule := c.Permission.Rules.Evaluate("skill", s.Name); taken || s.ModelOnly || strings.Contains(s.Name, " ") || rule != nil && action == permission.Deny {
			continue
		}
		hint := s.Hint
		if hint == "" {
			hint = "what to do (optional)"
		}
		about := config.Command{Description: textutil.Shorten(textutil.FirstLine(s.Description), maxSkillLine), Hint: hint}
		out = append(out, slash.Command{Name: s.Name, Description: about.Description, Hint: hint, Run: func(ctx context.Context, h slash.Host, args string) (string, *agent.Prompt, error) {
			text, err := s.Text()
			if err != nil {
				return "", nil, fmt.Errorf("the skill %s cannot be read (%s): %w", s.Name, s.Path, err)
			}
			d := about
			d.Template = text
			return slash.Template(s.Name, d).Run(ctx, h, args)
		}})
	}
	return out
}

// maxSkillLine is how many characters of a skill's description stand in a list of commands: it is written for the model and may have 1,024.
const maxSkillLine = 120

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
