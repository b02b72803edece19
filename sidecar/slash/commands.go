// Package slash is what a person can call with a slash at the start of a prompt: the built-in commands, those that people
// wrote as templates, and how each is carried out in a session. It knows sessions, not editors; MCP servers add theirs
// in package app.
package slash

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/models"
	"github.com/pillion-dev/pillion/sidecar/review"
	"github.com/pillion-dev/pillion/tools/change"
)

//go:embed prompts/init.txt
var initPrompt string

//go:embed prompts/review.txt
var reviewPrompt string

// Command is a slash command. It has Expand or Run, never both.
type Command struct {
	Name        string
	Description string
	Hint        string // what may follow; empty: nothing
	// Expand makes the prompt that the model gets in place of what was typed.
	Expand func(args string) string
	// Reviews says that the answer holds findings in the form that check.ParseFindings reads; editors show them at their lines.
	Reviews bool
	// Run carries it out without the agent and says what came of it, or makes the prompt that the agent gets. The answer is empty where
	// events of the session have said it.
	Run func(ctx context.Context, h Host, args string) (answer string, p *agent.Prompt, err error)
}

// Builtin are the built-in commands. The first four are phrases that the built-in model understands as well, so they
// work without any model.
func Builtin() []Command {
	// with appends what was typed to a fixed phrase.
	with := func(base string) func(string) string {
		return func(args string) string { return strings.TrimSpace(base + " " + args) }
	}
	return append([]Command{
		{Name: "fix", Description: "Fix the errors the language servers report", Hint: "file or folder (optional)", Expand: func(args string) string {
			if args == "" {
				return "fix all errors"
			}
			return "fix errors in " + args
		}},
		{Name: "explain", Description: "Explain the errors the language servers report", Hint: "file or folder (optional)", Expand: func(args string) string {
			if args == "" {
				return "explain errors"
			}
			return "explain errors in " + args
		}},
		{Name: "organize-imports", Description: "Organise imports", Hint: "file (optional)", Expand: with("organise imports")},
		{Name: "format", Description: "Format", Hint: "file (optional)", Expand: with("format")},
	}, slices.Concat(undoCommands(), sharedCommands())...)
}

// WithBuiltin adds the built-in commands that the list does not replace: people may redefine /review. The list comes
// first, so that a person's command of the same name hides the built-in one.
func WithBuiltin(out []Command) []Command {
	for _, c := range Builtin() {
		if !slices.ContainsFunc(out, func(have Command) bool { return have.Name == c.Name }) {
			out = append(out, c)
		}
	}
	return out
}

// Host is where a slash command runs: an editor's session or the terminal's.
type Host struct {
	Session *agent.Session
	Runtime *agent.Runtime
	// Models lists what /model offers.
	Models func(cwd string) []models.Choice       // nil: not known
	All    []Command                              // for /help
	Whole  func(*change.Set) (*change.Set, error) // a stored change set with its texts; nil: as stored
	// Undoer is called by /undo and /redo only.
	Undoer func() Undoer
}

// Undoer undoes prompts and redoes them. review.Reviewer implements it.
type Undoer interface {
	// UndoLast undoes the prompt with this id, or the last one when prompt is "", and says what was done.
	UndoLast(ctx context.Context, prompt string) (text string, err error)
	// RedoLast undoes the last undo or restore.
	RedoLast(ctx context.Context) (text string, err error)
}

// sharedCommands are the built-in commands that work in editors and in the terminal alike.
func sharedCommands() []Command {
	about := func(text string) func(string) string {
		return func(args string) string { return withArgs(text, args) }
	}
	return []Command{
		{Name: "init", Description: "Write AGENTS.md: what an agent must know about this project", Hint: "what matters most (optional)", Expand: about(initPrompt)},
		{Name: "review", Description: "Review the uncommitted changes, a commit, a branch or a file", Hint: "commit, branch or path (optional)", Expand: about(reviewPrompt), Reviews: true},
		{Name: "compact", Description: "Replace the older part of the conversation by a summary", Hint: "what to keep above all (optional)", Run: runCompact},
		{Name: "summary", Description: "Summarize this conversation and its changes", Run: runSummary},
		{Name: "model", Description: "Show the models, or change to another one", Hint: "provider/model (optional)", Run: runModel},
		{Name: "mode", Description: "Show the agents, or change to another one", Hint: "agent (optional)", Run: runMode},
		{Name: "permissions", Description: "Show how commands are asked about, or change it", Hint: "ask or auto (optional)", Run: runPermissions},
		{Name: "export", Description: "Write this conversation to a Markdown file", Hint: "file (optional)", Run: runExport},
		{Name: "help", Description: "List the commands", Run: runHelp},
	}
}

// ReviewPrompt is what the model gets for /review; what is to be reviewed follows it.
func ReviewPrompt(args string) string { return withArgs(reviewPrompt, args) }

// withArgs is a prompt with what the person wrote behind its command, as a paragraph of its own.
func withArgs(text, args string) string {
	return strings.TrimSpace(strings.TrimSpace(text) + "\n\n" + args)
}

// say is the answer of a command that needs no turn.
func say(format string, a ...any) (string, *agent.Prompt, error) {
	return fmt.Sprintf(format, a...) + "\n", nil, nil
}

// runCompact implements /compact.
func runCompact(ctx context.Context, h Host, args string) (string, *agent.Prompt, error) {
	_, err := h.Session.Compact(ctx, args)
	if errors.Is(err, agent.ErrNothingToCompact) {
		return say("There is nothing to compact yet.")
	}
	return "", nil, err // its events have told every editor and terminal of the session
}

// runSummary implements /summary.
func runSummary(ctx context.Context, h Host, _ string) (string, *agent.Prompt, error) {
	text, err := h.Session.Summary(ctx)
	if err != nil {
		return "", nil, err
	}
	return say("%s", text)
}

// runModel implements /model: it lists the models, or changes the session's. A name need not be in the list; SetModel
// fails for one that it cannot resolve.
func runModel(_ context.Context, h Host, args string) (string, *agent.Prompt, error) {
	info := h.Session.Info()
	if args != "" {
		if err := h.Session.SetModel(args); err != nil {
			return "", nil, err
		}
		return say("Changed the model to %s.", h.Session.Info().Model)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "The model is %s.", info.Model)
	if h.Models != nil {
		for _, m := range h.Models(info.Cwd) {
			fmt.Fprintf(&b, "\n- %s", m.ID)
			if m.Name != "" && m.Name != m.ID {
				fmt.Fprintf(&b, " (%s)", m.Name)
			}
		}
	}
	return say("%s\n\n/model provider/model changes it.", b.String())
}

// runPermissions implements /permissions: the switch for every front end, also where an editor shows no options.
func runPermissions(_ context.Context, h Host, args string) (string, *agent.Prompt, error) {
	if args != "" {
		if err := h.Session.SetPermission(args); err != nil {
			return "", nil, err
		}
	}
	if h.Runtime.Permission(h.Session.Info()) == agent.PermissionAuto {
		return say("Commands run in the sandbox without a question where their effects stay in the project and can be undone; others are asked. /permissions ask asks about each.")
	}
	return say("You are asked about each command that your rules do not allow. /permissions auto lets those run in the sandbox whose effects stay in the project and can be undone.")
}

// runMode implements /mode: it lists the agents, or changes the session's. Sub-agents and hidden agents cannot lead a
// session.
func runMode(_ context.Context, h Host, args string) (string, *agent.Prompt, error) {
	info := h.Session.Info()
	var names []string
	var b strings.Builder
	fmt.Fprintf(&b, "The agent is %s.", info.Agent)
	for _, a := range h.Runtime.Agents(info.Cwd) {
		if !a.Hidden && a.Mode != agent.ModeSubagent {
			names = append(names, a.Name)
			fmt.Fprintf(&b, "\n- %s: %s", a.Name, a.Description)
		}
	}
	if args == "" {
		return say("%s\n\nWith a name behind it, the command changes to that agent.", b.String())
	}
	if !slices.Contains(names, args) {
		return "", nil, fmt.Errorf("unknown agent %q; the agents are %s", args, strings.Join(names, ", "))
	}
	if err := h.Session.SetAgent(args); err != nil {
		return "", nil, err
	}
	return say("Changed the agent to %s.", args)
}

// runExport implements /export. The path is relative to the session's directory. It fails for a file that exists: a
// typing mistake must not overwrite the person's work.
func runExport(ctx context.Context, h Host, args string) (string, *agent.Prompt, error) {
	info := h.Session.Info()
	path := args
	if path == "" {
		path = info.ID + ".md"
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", nil, err
		}
		path = filepath.Join(home, rest)
	} else if !filepath.IsAbs(path) {
		path = filepath.Join(info.Cwd, path)
	}
	hidden, err := h.Session.Hidden(ctx)
	if err != nil {
		return "", nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s, in %s\n", info.Title, info.Created.Format("2006-01-02 15:04"), info.Cwd)
	// The whole text is built before the file is created, so that an error in the log leaves no empty file behind.
	read := Markdown(&b)
	err = h.Session.Events(ctx, 0, func(e agent.Event) error {
		if hidden.Has(e) {
			return nil
		}
		if h.Whole != nil {
			e = review.Hydrated(e, h.Whole)
		}
		return read(e)
	})
	if err != nil {
		return "", nil, err
	}
	// 0600: a conversation holds file contents and command output. O_EXCL makes the check and the creation one step.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return "", nil, fmt.Errorf("%s exists already; name another file: /export name.md", path)
	}
	if err != nil {
		return "", nil, fmt.Errorf("the conversation was not written: %w", err)
	}
	// The error of Close counts: a full disk may be reported only there.
	if _, err = f.WriteString(b.String()); err == nil {
		err = f.Close()
	} else {
		_ = f.Close()
	}
	if err != nil {
		return "", nil, fmt.Errorf("the file is incomplete: %w", err)
	}
	return say("Written to %s.", path)
}

// runHelp implements /help.
func runHelp(_ context.Context, h Host, _ string) (string, *agent.Prompt, error) {
	var b strings.Builder
	for _, c := range h.All {
		fmt.Fprintf(&b, "- /%s", c.Name)
		if c.Hint != "" {
			fmt.Fprintf(&b, " [%s]", strings.TrimSuffix(c.Hint, " (optional)"))
		}
		fmt.Fprintf(&b, ": %s\n", c.Description)
	}
	return say("%s", b.String())
}

// Parse splits "/name arguments"; ok is false when the prompt is none of the commands and goes to the model as it is.
// Only the first part counts, and only when it is text: a path such as /usr/bin that begins a prompt is not a command's
// name, so it reaches the model unchanged.
func Parse(parts []provider.Part, all []Command) (c Command, args string, ok bool) {
	if len(parts) == 0 || parts[0].Type != provider.PartText || !strings.HasPrefix(parts[0].Text, "/") {
		return c, "", false
	}
	text := strings.TrimSpace(parts[0].Text[1:])
	name := text
	if i := strings.IndexAny(text, " \t\n"); i >= 0 {
		name, args = text[:i], strings.TrimSpace(text[i:])
	}
	// A command in a folder is folder/name, as in OpenCode; Claude Code calls it folder:name.
	for _, name := range []string{name, strings.ReplaceAll(name, ":", "/")} {
		if i := slices.IndexFunc(all, func(c Command) bool { return c.Name == name }); i >= 0 {
			return all[i], args, true
		}
	}
	return c, "", false
}

// undoCommands undo and redo the last prompt, files and conversation. No model is asked.
func undoCommands() []Command {
	return []Command{
		{Name: "undo", Description: "Undo the last prompt: its messages and its changes to files", Run: undoLast},
		{Name: "redo", Description: "Undo the last /undo or restore", Run: redoLast},
	}
}

// undoLast implements /undo. An argument is the id of the prompt to undo: an editor sends it, so that the second of
// two quick clicks finds nothing left to do instead of undoing another prompt.
func undoLast(ctx context.Context, h Host, args string) (string, *agent.Prompt, error) {
	text, err := h.Undoer().UndoLast(ctx, args)
	return text, nil, err
}

// redoLast implements /redo.
func redoLast(ctx context.Context, h Host, _ string) (string, *agent.Prompt, error) {
	text, err := h.Undoer().RedoLast(ctx)
	return text, nil, err
}
