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

// conversationCommand is a slash command that only a conversation in the terminal has; editors have buttons and
// lists for these. What it says is Markdown. Its error is shown and ends nothing.
type conversationCommand struct {
	name, hint, description string
	run                     func(c *conversation, ctx context.Context, args string) (said string, err error)
}

// ownCommands are the commands of a conversation in the order of /help. It is a function and not a variable: help reads the list,
// and a variable that refers to itself does not compile.
func ownCommands() []conversationCommand {
	return []conversationCommand{
		{"new", "", "Start a new session", (*conversation).newSession},
		{"sessions", "", "List the sessions of this directory", (*conversation).sessions},
		{"resume", "number or id", "Continue another session", (*conversation).resume},
		{"fork", "", "Continue in a copy of this session", (*conversation).fork},
		{"mcp", "", "Show the MCP servers and their state", (*conversation).mcpServers},
		{"permissions", "ask or auto", "Show the grants of this project; change which commands are asked", (*conversation).permissions},
		{"cost", "", "Show what this session has used", (*conversation).spent},
		{"help", "", "List the commands and keys", (*conversation).help},
		{"quit", "", "End the conversation", (*conversation).quit},
	}
}

// ownCommand finds one by its name; "exit" is accepted because shells and other agents have it.
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

// quit closes the composer, whose Run then returns.
func (c *conversation) quit(context.Context, string) (string, error) {
	c.prompt.Close()
	return "", nil
}

// newSession keeps the model and the agent: the person has chosen them for the work, not for the session.
func (c *conversation) newSession(ctx context.Context, _ string) (string, error) {
	info := c.current().Info()
	s, err := c.app.Runtime.NewSession(ctx, agent.SessionOptions{Cwd: c.cwd, Model: info.Model, Agent: info.Agent})
	if err != nil {
		return "", err
	}
	// The earlier session is closed by nothing: it stays in the store and can be resumed.
	return "A new session. `/resume` goes back to the one before.", c.attend(ctx, s)
}

// listed are the sessions of the directory, newest first, without those of sub-agents and the empty ones. The
// session that is shown is listed even when it is empty, so that its number exists.
func (c *conversation) listed(ctx context.Context) ([]agent.SessionInfo, error) {
	list, err := c.app.Runtime.List(ctx, c.cwd)
	now := c.current().ID()
	return slices.DeleteFunc(list, func(s agent.SessionInfo) bool { return s.Parent != "" || s.Title == "" && s.ID != now }), err
}

// sessionsShown is how many sessions /sessions lists: about a screen. /resume takes the numbers of longer lists,
// too.
const sessionsShown = 20

// sessions numbers the list, because ids are long to type. The numbers are those that resume takes.
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
			// Only the session that is shown can be without a title here.
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

// resume continues the session with that number of /sessions or that id; without a word, the one before this. A
// number that is out of range is tried as an id and reported as unknown.
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

// fork continues in a copy of the whole conversation. Files are not copied: both sessions work on the same
// project.
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

// mcpServers shows the state of each server, and the reason where it is not ready: its tools are missing then.
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

// permissions says which commands are asked, and lists what "always" has allowed here, with the numbers that revoke takes. With a word it
// changes the former, as the command of that name does in editors.
func (c *conversation) permissions(ctx context.Context, word string) (string, error) {
	_, mode, err := expandPrompt(ctx, c.app, c.current(), strings.TrimSpace("/permissions "+word))
	if err != nil || word != "" {
		return mode, err
	}
	list, err := acp.GrantsIn(ctx, c.app.Grants, paths.Worktree(c.cwd))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(mode + "\n\n")
	for _, g := range list {
		fmt.Fprintf(&b, "- %s `%s` (%d)\n", g.Permission, strings.ReplaceAll(g.Pattern, "`", "'"), g.ID)
	}
	if len(list) == 0 {
		b.WriteString("This project has no grants.\n")
	}
	return b.String() + "\n`pillion permission explain` shows the rules, `pillion permission revoke NUMBER` takes a grant back.", nil
}

// spent adds up the steps of this session from its events, so a session that was continued counts as a whole.
func (c *conversation) spent(ctx context.Context, _ string) (string, error) {
	var u provider.Usage
	var cost float64
	steps := 0
	if err := c.current().Events(ctx, 0, func(e agent.Event) error {
		if d, ok := agent.Value[agent.StepData](e); ok && e.Type == agent.EventStep {
			u.Input += d.Usage.Input
			u.CacheRead += d.Usage.CacheRead
			u.CacheWrite += d.Usage.CacheWrite
			// Providers bill reasoning as output.
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

// help is made from the same lists as completion, so that neither knows a command that the other does not.
func (c *conversation) help(context.Context, string) (string, error) {
	var b strings.Builder
	b.WriteString("**Commands**\n\n")
	for _, o := range ownCommands() {
		b.WriteString(helpLine(o.name, o.hint, o.description))
	}
	b.WriteString(helpLine("agent", "agent", "Show the agents, or change to another one"))
	for _, x := range allCommands(c.app, c.cwd) {
		if _, own := ownCommand(x.Name); !own && x.Name != "mode" { // which is agent here
			b.WriteString(helpLine(x.Name, strings.TrimSuffix(x.Hint, " (optional)"), x.Description))
		}
	}
	keys := keysHelp
	if _, plain := c.prompt.(*plainPrompt); plain {
		keys = plainHelp
	}
	b.WriteString("\n" + strings.TrimSpace(keys))
	return b.String(), nil
}

// helpLine is one entry of a Markdown list.
func helpLine(name, hint, description string) string {
	if hint != "" {
		hint = " [" + hint + "]"
	}
	return fmt.Sprintf("- `/%s%s` %s\n", name, hint, escapeMarkdown(description))
}

// plainHelp is keysHelp for a conversation line by line.
const plainHelp = `
**In a prompt**

- ` + "`@file`, `@folder/`, `@symbol`, `@picture.png`" + ` attach
- ` + "`!command`" + ` runs a command of yours in the shell; the agent reads its output with the next prompt
- a backslash at the end of a line continues it in the next one
- ctrl-c stops the turn, twice ends; ctrl-d ends
`

// keysHelp is the part of /help that no list of commands has. The keys are those of terminal.Composer.
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
- shift-tab changes the agent; tab goes to a question that appeared while you type; a key of it alone with enter answers it
`

// escapeMarkdown keeps text of others (titles, names of servers, descriptions) from being taken for Markdown, and
// shows characters that would otherwise be invisible.
func escapeMarkdown(s string) string {
	return markdownMarks.Replace(visible.Text(s))
}

// markdownMarks escapes with backslashes what Markdown would read as a mark (CommonMark, section 2.4; "|" divides tables).
var markdownMarks = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`, "<", `\<`, "#", `\#`, "|", `\|`)

// shellKept is how much of a command's output the agent reads, in bytes from its end, where errors usually are.
const shellKept = 30 << 10

// runShell runs a command that the user typed, in the user's own shell and environment. It needs no approval: the
// user could run it in the next window. Its output is shown as it comes, and the agent reads it with the next
// prompt. While it runs, c.shell stops it; the deferred function clears that for busy and stop.
func (c *conversation) runShell(ctx context.Context, s *agent.Session, command string) error {
	// Esc ends the command only. What it printed is kept all the same, so Tell below does not end with it.
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	c.mu.Lock()
	c.shell = cancel
	c.mu.Unlock()
	shell := os.Getenv("SHELL")
	if shell == "" {
		shell = "/bin/sh"
	}
	cmd := guard.CommandContext(running, guard.Person, shell, "-c", command)
	cmd.Dir = c.cwd
	// WaitDelay ends the wait for the pipe that much later than the command (os/exec).
	cmd.WaitDelay = time.Second // a child in the background may hold the pipe open
	kept := &tailBuffer{most: shellKept}
	out := io.MultiWriter(c.t, kept)
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	c.mu.Lock()
	c.shell = nil
	c.mu.Unlock()
	state := "exit code 0"
	// A failed command is an ordinary outcome: the agent reads the state and the output.
	if err != nil {
		state = err.Error()
		fmt.Fprintln(c.t, state)
	}
	// Synthetic: it is not what the user wrote, and does not come back with the arrow keys.
	return s.Tell(ctx, []provider.Part{{Type: provider.PartText, Synthetic: true,
		Text: fmt.Sprintf("The user ran this command in their shell:\n%s\n\nIts output (%s):\n%s", command, state, kept.text())}})
}

// tailBuffer keeps the end of what is written, so that a command with endless output does not fill the memory.
// most is in bytes.
type tailBuffer struct {
	most int
	data []byte
	cut  bool
}

// Write never fails: a short count would end the copying of the command's output.
func (b *tailBuffer) Write(p []byte) (int, error) {
	b.data = append(b.data, p...)
	if over := len(b.data) - b.most; over > 0 {
		b.data, b.cut = b.data[over:], true
	}
	return len(p), nil
}

// text drops a character that was cut in two; a provider refuses text that is not UTF-8.
func (b *tailBuffer) text() string {
	text := strings.ToValidUTF8(string(b.data), "")
	if b.cut {
		return "…" + text
	}
	return text
}

// allNames are the commands that completion offers: those of the terminal hide others of the same name, as in
// take.
func (c *conversation) allNames() (out []slash.Command) {
	for _, o := range ownCommands() {
		out = append(out, slash.Command{Name: o.name, Description: o.description, Hint: o.hint})
	}
	out = append(out, slash.Command{Name: "agent", Description: "Show the agents, or change to another one", Hint: "agent"})
	for _, x := range allCommands(c.app, c.cwd) {
		if _, own := ownCommand(x.Name); !own && x.Name != "mode" {
			out = append(out, x)
		}
	}
	return out
}
