package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/acp"
	"github.com/pillion-dev/pillion/sidecar/slash"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/mcp"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// ownCommand is a slash command that only a conversation in the terminal has; editors have buttons and lists for these. What it says
// is Markdown.
type conversationCommand struct {
	name, hint, description string
	run                     func(c *conversation, ctx context.Context, args string) (said string, err error)
}

func ownCommands() []conversationCommand {
	return []conversationCommand{
		{"new", "", "Start a new session", (*conversation).newSession},
		{"sessions", "", "List the sessions of this directory", (*conversation).sessions},
		{"resume", "number or id", "Continue another session", (*conversation).resume},
		{"fork", "", "Continue in a copy of this session", (*conversation).fork},
		{"mcp", "", "Show the MCP servers and their state", (*conversation).mcpServers},
		{"permissions", "", "Show the grants that apply to this project", (*conversation).permissions},
		{"cost", "", "Show what this session has used", (*conversation).spent},
		{"help", "", "List the commands and keys", (*conversation).help},
		{"quit", "", "End the conversation", (*conversation).quit},
	}
}

func ownCommand(name string) (conversationCommand, bool) {
	if name == "exit" {
		name = "quit"
	}
	all := ownCommands()
	i := slices.IndexFunc(all, func(c conversationCommand) bool { return c.name == name })
	if i < 0 {
		return conversationCommand{}, false
	}
	return all[i], true
}

func (c *conversation) quit(context.Context, string) (string, error) {
	c.prompt.Close()
	return "", nil
}

func (c *conversation) newSession(ctx context.Context, _ string) (string, error) {
	info := c.current().Info()
	s, err := c.app.Runtime.NewSession(ctx, agent.SessionOptions{Cwd: c.cwd, Model: info.Model, Agent: info.Agent})
	if err != nil {
		return "", err
	}
	return "A new session. `/resume` goes back to the one before.", c.attend(ctx, s)
}

// listed are the sessions of the directory, newest first, without those of sub-agents and the empty ones.
func (c *conversation) listed(ctx context.Context) ([]agent.SessionInfo, error) {
	list, err := c.app.Runtime.List(ctx, c.cwd)
	now := c.current().ID()
	return slices.DeleteFunc(list, func(s agent.SessionInfo) bool { return s.Parent != "" || s.Title == "" && s.ID != now }), err
}

const sessionsShown = 20

func (c *conversation) sessions(ctx context.Context, _ string) (string, error) {
	list, err := c.listed(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	now := c.current().ID()
	for i, s := range list[:min(len(list), sessionsShown)] {
		title, here := s.Title, ""
		if title == "" {
			title = "(empty)"
		}
		if s.ID == now {
			here = " ← this one"
		}
		fmt.Fprintf(&b, "%d. %s · %s%s\n", i+1, escapeMarkdown(title), s.Updated.Local().Format(time.DateTime), here)
	}
	if more := len(list) - sessionsShown; more > 0 {
		fmt.Fprintf(&b, "\n… and %d more; `pillion sessions list` shows them.\n", more)
	}
	return b.String() + "\n`/resume NUMBER` continues one.", nil
}

// resume continues the session with that number of /sessions or that id; without a word, the one before this.
func (c *conversation) resume(ctx context.Context, which string) (string, error) {
	list, err := c.listed(ctx)
	if err != nil {
		return "", err
	}
	now := c.current().ID()
	id := which
	switch n, err := strconv.Atoi(which); {
	case err == nil && n >= 1 && n <= len(list):
		id = list[n-1].ID
	case which == "":
		i := slices.IndexFunc(list, func(s agent.SessionInfo) bool { return s.ID != now })
		if i < 0 {
			return "", errors.New("this directory has no other session")
		}
		id = list[i].ID
	}
	if id == now {
		return "This is that session.", nil
	}
	s, err := c.app.Runtime.LoadSession(ctx, id)
	if err != nil {
		return "", fmt.Errorf("no session %q; /sessions lists them", which)
	}
	return "", c.attend(ctx, s)
}

func (c *conversation) fork(ctx context.Context, _ string) (string, error) {
	info, _, err := c.app.Runtime.Fork(ctx, c.current().ID(), "", "")
	if err != nil {
		return "", err
	}
	s, err := c.app.Runtime.LoadSession(ctx, info.ID)
	if err != nil {
		return "", err
	}
	return "This is a copy of the session; `/resume` goes back to the original.", c.attend(ctx, s)
}

func (c *conversation) mcpServers(ctx context.Context, _ string) (string, error) {
	all := c.app.MCP.Statuses(c.cwd)
	if len(all) == 0 {
		return "No MCP server is configured. `pillion mcp add NAME -- COMMAND …` adds one.", nil
	}
	var b strings.Builder
	for _, s := range all {
		what := fmt.Sprintf("%d tools, %d prompts", s.Tools, s.Prompts)
		if s.State != mcp.Ready {
			what = s.Reason
		}
		fmt.Fprintf(&b, "- **%s** %s: %s\n", escapeMarkdown(s.Name), s.State, escapeMarkdown(what))
	}
	return b.String(), nil
}

func (c *conversation) permissions(ctx context.Context, _ string) (string, error) {
	list, err := acp.GrantsIn(ctx, c.app.Grants, paths.Worktree(c.cwd))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, g := range list {
		fmt.Fprintf(&b, "- %s `%s` (%d)\n", g.Permission, strings.ReplaceAll(g.Pattern, "`", "'"), g.ID)
	}
	if len(list) == 0 {
		b.WriteString("This project has no grants.\n")
	}
	return b.String() + "\n`pillion permission explain` shows the rules, `pillion permission revoke NUMBER` takes a grant back.", nil
}

func (c *conversation) spent(ctx context.Context, _ string) (string, error) {
	var u provider.Usage
	var cost float64
	steps := 0
	if err := c.current().Events(ctx, 0, func(e agent.Event) error {
		if d, ok := agent.Value[agent.StepData](e); ok && e.Type == agent.EventStep {
			u.Input += d.Usage.Input
			u.CacheRead += d.Usage.CacheRead
			u.CacheWrite += d.Usage.CacheWrite
			u.Output += d.Usage.Output + d.Usage.Reasoning
			cost += d.Cost
			steps++
		}
		return nil
	}); err != nil {
		return "", err
	}
	text := fmt.Sprintf("%d steps: %d tokens in, %d read from the cache, %d written to it, %d out.", steps, u.Input, u.CacheRead, u.CacheWrite, u.Output)
	if cost > 0 {
		text += fmt.Sprintf(" $%.4f.", cost)
	}
	return text + " `pillion stats` sums up all sessions.", nil
}

func (c *conversation) help(context.Context, string) (string, error) {
	var b strings.Builder
	b.WriteString("**Commands**\n\n")
	for _, o := range ownCommands() {
		b.WriteString(helpLine(o.name, o.hint, o.description))
	}
	b.WriteString(helpLine("agent", "agent", "Show the agents, or change to another one"))
	for _, x := range allCommands(c.app, c.cwd) {
		if _, own := ownCommand(x.Name); !own {
			b.WriteString(helpLine(x.Name, strings.TrimSuffix(x.Hint, " (optional)"), x.Description))
		}
	}
	b.WriteString("\n" + strings.TrimSpace(keysHelp))
	return b.String(), nil
}

func helpLine(name, hint, description string) string {
	if hint != "" {
		hint = " [" + hint + "]"
	}
	return fmt.Sprintf("- `/%s%s` %s\n", name, hint, escapeMarkdown(description))
}

const keysHelp = `
**In a prompt**

- ` + "`@file`, `@folder/`, `@symbol`, `@picture.png`" + ` attach; tab completes
- ` + "`!command`" + ` runs a command of yours in the shell; the agent reads its output with the next prompt
- Paste or ctrl-v attaches a picture; a long paste is folded

**Keys**

- enter sends; while a turn runs it queues, and ctrl-s gives the words to the running turn
- ctrl-j, shift-enter or \\ enter begin a new line; ctrl-g opens $EDITOR
- ↑ ↓ bring earlier prompts back (first those in the queue); ctrl-r searches them
- esc stops the turn; ctrl-c clears the prompt, twice ends; ctrl-d ends; ctrl-z suspends
- shift-tab changes the agent; tab goes to a question that appeared while you type
`

// escapeMarkdown keeps text of others from being taken for Markdown.
func escapeMarkdown(s string) string {
	return markdownMarks.Replace(visible.Text(s))
}

var markdownMarks = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`, "<", `\<`, "#", `\#`, "|", `\|`)

// shellKept is how much of a command's output the agent reads, in bytes from its end.
const shellKept = 30 << 10

// runShell runs a command that the user typed, in the user's own shell and environment. It needs no approval: the user could
// run it in the next window. Its output is shown as it comes, and the agent reads it with the next prompt.
func (c *conversation) runShell(ctx context.Context, s *agent.Session, command string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.mu.Lock()
	c.shell = cancel
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.shell = nil
		c.mu.Unlock()
	}()
	shell := os.Getenv("SHELL")
	if shell == "" {
		shell = "/bin/sh"
	}
	cmd := guard.CommandContext(ctx, guard.Person, shell, "-c", command)
	cmd.Dir = c.cwd
	cmd.WaitDelay = time.Second // a child in the background may hold the pipe open
	kept := &tailBuffer{most: shellKept}
	out := io.MultiWriter(c.t, kept)
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	state := "exit code 0"
	if err != nil {
		state = err.Error()
		fmt.Fprintln(c.t, state)
	}
	return s.Tell(ctx, []provider.Part{{Type: provider.PartText, Synthetic: true,
		Text: fmt.Sprintf("The user ran this command in their shell:\n%s\n\nIts output (%s):\n%s", command, state, kept.text())}})
}

// tailBuffer keeps the end of what is written.
type tailBuffer struct {
	most int
	data []byte
	cut  bool
}

func (b *tailBuffer) Write(p []byte) (int, error) {
	b.data = append(b.data, p...)
	if over := len(b.data) - b.most; over > 0 {
		b.data, b.cut = b.data[over:], true
	}
	return len(p), nil
}

func (b *tailBuffer) text() string {
	text := strings.ToValidUTF8(string(b.data), "")
	if b.cut {
		return "…" + text
	}
	return text
}

// allNames are the names of every command there is, for completion.
func (c *conversation) allNames() (out []slash.Command) {
	for _, o := range ownCommands() {
		out = append(out, slash.Command{Name: o.name, Description: o.description, Hint: o.hint})
	}
	out = append(out, slash.Command{Name: "agent", Description: "Show the agents, or change to another one", Hint: "agent"})
	for _, x := range allCommands(c.app, c.cwd) {
		if _, own := ownCommand(x.Name); !own {
			out = append(out, x)
		}
	}
	return out
}
