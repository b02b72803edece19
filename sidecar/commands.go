package main

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
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/sidecar/review"
	"github.com/pillion-dev/pillion/tools/change"
)

//go:embed prompts/init.txt
var initPrompt string

//go:embed prompts/review.txt
var reviewPrompt string

// commandHost is where a slash command runs: an editor's session or the terminal's.
type commandHost struct {
	session *agent.Session
	runtime *agent.Runtime
	models  func(cwd string) []ModelInfo // nil: not known
	all     []Command                    // for /help
	whole   func(*change.Set) (*change.Set, error)
	review  func() *review.Reviewer
}

// sharedCommands are the built-in ones that need no editor.
func sharedCommands() []Command {
	about := func(text string) func(string) string {
		return func(args string) string {
			if args == "" {
				return strings.TrimSpace(text)
			}
			return strings.TrimSpace(text) + "\n\n" + args
		}
	}
	return []Command{
		{Name: "init", Description: "Write AGENTS.md: what an agent must know of this project", Hint: "what matters most (optional)", Expand: about(initPrompt)},
		{Name: "review", Description: "Review the uncommitted changes, a commit, a branch or a file", Hint: "commit, branch or path (optional)", Expand: about(reviewPrompt)},
		{Name: "compact", Description: "Replace the older conversation by a summary, for the model", Hint: "what to keep above all (optional)", Run: runCompact},
		{Name: "summary", Description: "Say what was done in this conversation, with its lines changed", Run: runSummary},
		{Name: "model", Description: "Show the models, or change to another one", Hint: "provider/model (optional)", Run: runModel},
		{Name: "mode", Description: "Show the agents, or change to another one", Hint: "agent (optional)", Run: runMode},
		{Name: "export", Description: "Write this conversation to a Markdown file", Hint: "file (optional)", Run: runExport},
		{Name: "help", Description: "List the commands", Run: runHelp},
	}
}

// say is a command's answer when the agent has nothing to do.
func say(format string, a ...any) (string, *agent.Prompt, error) {
	return fmt.Sprintf(format, a...) + "\n", nil, nil
}

func runCompact(ctx context.Context, h commandHost, args string) (string, *agent.Prompt, error) {
	d, err := h.session.Compact(ctx, args)
	switch {
	case errors.Is(err, agent.ErrNothingToCompact):
		return say("There is nothing to compact yet.")
	case err != nil:
		return "", nil, err
	}
	return say("%s", d.Words())
}

func runSummary(ctx context.Context, h commandHost, _ string) (string, *agent.Prompt, error) {
	text, err := h.session.Summary(ctx)
	if err != nil {
		return "", nil, err
	}
	return say("%s", text)
}

func runModel(_ context.Context, h commandHost, args string) (string, *agent.Prompt, error) {
	info := h.session.Info()
	if args != "" {
		if err := h.session.SetModel(args); err != nil {
			return "", nil, err
		}
		return say("The model is %s from now on.", h.session.Info().Model)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "The model is %s.", info.Model)
	if h.models != nil {
		for _, m := range h.models(info.Cwd) {
			fmt.Fprintf(&b, "\n- %s", m.ID)
			if m.Name != "" && m.Name != m.ID {
				fmt.Fprintf(&b, " (%s)", m.Name)
			}
		}
	}
	return say("%s\n\n/model provider/model changes it.", b.String())
}

func runMode(_ context.Context, h commandHost, args string) (string, *agent.Prompt, error) {
	info := h.session.Info()
	var names []string
	var b strings.Builder
	fmt.Fprintf(&b, "The agent is %s.", info.Agent)
	for _, a := range h.runtime.Agents(info.Cwd) {
		if !a.Hidden && a.Mode != agent.ModeSubagent {
			names = append(names, a.Name)
			fmt.Fprintf(&b, "\n- %s: %s", a.Name, a.Description)
		}
	}
	if args == "" {
		return say("%s\n\n/mode name changes it.", b.String())
	}
	if !slices.Contains(names, args) {
		return "", nil, fmt.Errorf("there is no agent %q to talk to; there are %s", args, strings.Join(names, ", "))
	}
	if err := h.session.SetAgent(args); err != nil {
		return "", nil, err
	}
	return say("The agent is %s from now on.", args)
}

// runExport writes where the person said, else into the session's directory; what is there is never overwritten.
func runExport(ctx context.Context, h commandHost, args string) (string, *agent.Prompt, error) {
	info := h.session.Info()
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
	hidden, err := h.session.Hidden(ctx)
	if err != nil {
		return "", nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s, in %s\n", info.Title, info.Created.Format("2006-01-02 15:04"), info.Cwd)
	read := markdown(&b)
	err = h.session.Events(ctx, 0, func(e agent.Event) error {
		if hidden.Has(e) {
			return nil
		}
		if h.whole != nil {
			e = review.Hydrated(e, h.whole)
		}
		return read(e)
	})
	if err != nil {
		return "", nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return "", nil, fmt.Errorf("%s exists already; name another file: /export name.md", path)
	}
	if err != nil {
		return "", nil, fmt.Errorf("the conversation was not written: %w", err)
	}
	if _, err = f.WriteString(b.String()); err == nil {
		err = f.Close()
	} else {
		_ = f.Close()
	}
	if err != nil {
		return "", nil, fmt.Errorf("the conversation was not written whole: %w", err)
	}
	return say("Written to %s.", path)
}

func runHelp(_ context.Context, h commandHost, _ string) (string, *agent.Prompt, error) {
	var b strings.Builder
	for _, c := range h.all {
		fmt.Fprintf(&b, "- /%s", c.Name)
		if c.Hint != "" {
			fmt.Fprintf(&b, " [%s]", strings.TrimSuffix(c.Hint, " (optional)"))
		}
		fmt.Fprintf(&b, ": %s\n", c.Description)
	}
	return say("%s", b.String())
}

// slash takes "/name what follows" apart; ok is false when the prompt is none of the commands.
func slash(parts []provider.Part, all []Command) (c Command, args string, ok bool) {
	if len(parts) == 0 || parts[0].Type != provider.PartText || !strings.HasPrefix(parts[0].Text, "/") {
		return c, "", false
	}
	text := strings.TrimSpace(parts[0].Text[1:])
	name := text
	if i := strings.IndexAny(text, " \t\n"); i >= 0 {
		name, args = text[:i], strings.TrimSpace(text[i:])
	}
	i := slices.IndexFunc(all, func(c Command) bool { return c.Name == name })
	if i < 0 {
		return c, "", false
	}
	return all[i], args, true
}

// runCommand carries a command out after the prompts before it. Without a prompt for the agent the answer is whole.
func (es *editorSession) runCommand(ctx context.Context, before <-chan struct{}, c Command, args string) (*agent.Prompt, *protocol.PromptResponse, error) {
	cancelled := &protocol.PromptResponse{StopReason: protocol.StopReasonCancelled}
	select {
	case <-before:
	case <-ctx.Done():
		return nil, cancelled, nil
	}
	s := es.server
	h := commandHost{session: es.Session, runtime: s.o.Runtime, models: s.o.Models, all: s.commands(es.Info().Cwd), whole: s.o.Desk.Whole, review: func() *review.Reviewer { return s.reviewer(es) }}
	answer, p, err := c.Run(ctx, h, args)
	switch {
	case ctx.Err() != nil:
		return nil, cancelled, nil
	case err != nil:
		return nil, nil, err
	case p != nil:
		return p, nil, nil
	}
	es.send("agent_message_chunk", &protocol.ContentChunk{Content: protocol.TextBlock(answer)})
	return nil, &protocol.PromptResponse{StopReason: protocol.StopReasonEndTurn}, nil
}
