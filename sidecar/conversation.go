package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/mention"
	"github.com/pillion-dev/pillion/sidecar/terminal"
)

// conversation is a terminal in which prompts follow each other until the user ends it. Prompts can be sent while a turn runs:
// they wait in the session's own queue, which is stored, or are given to the running turn.
type conversation struct {
	app    *app.App
	t      *terminal.Terminal
	prompt *terminal.Composer // nil in plain mode
	cwd    string
	limits agent.Limits
	sent   chan terminal.Prompt
	find   *mention.Finder

	mu      sync.Mutex
	session *agent.Session // guarded by mu: /new, /resume and /fork change it
	leave   func()         // guarded by mu: ends the subscription to it
	last    agent.TurnData // guarded by mu: the end of the last turn, for the status line
	shell   func()         // guarded by mu: ends the command that ! started; nil: none runs
}

// pendingPrompts is how many prompts can wait to be taken over by the session. The session takes them at once unless a command of the
// user's runs.
const pendingPrompts = 100

func (c *conversation) current() *agent.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// attend shows what happens in a session from now on, instead of the one before.
func (c *conversation) attend(ctx context.Context, s *agent.Session) error {
	var before lastExchange
	var last int64 // what was before is not printed again
	if err := s.Events(ctx, 0, func(e agent.Event) error {
		last = e.Seq
		before.event(e)
		return nil
	}); err != nil {
		return err
	}
	c.mu.Lock()
	leave := c.leave
	c.session, c.last = s, s.State().Last
	c.mu.Unlock()
	if leave != nil {
		leave()
	}
	if text := before.text(); text != "" {
		c.t.Say(text)
	}
	stop := s.Subscribe(last, func(e agent.Event) { c.event(ctx, s, e) })
	c.mu.Lock()
	c.leave = stop
	c.mu.Unlock()
	return nil
}

func (c *conversation) event(ctx context.Context, s *agent.Session, e agent.Event) {
	if e.Type == agent.EventPrompt {
		c.t.Begin()
	}
	c.t.Event(e)
	if e.Type != agent.EventTurn {
		return
	}
	d, _ := agent.Value[agent.TurnData](e)
	c.mu.Lock()
	c.last = d
	c.mu.Unlock()
	sum := c.t.Summary()
	waiting, held := s.Queue()
	if d.Stop == agent.TurnCancelled || len(waiting) > 0 && !held {
		c.t.Result(sum) // the next turn begins, or the user does not want to wait for the language servers
		return
	}
	go func() {
		within, cancel := context.WithTimeout(ctx, leftWait)
		defer cancel()
		sum.Left, sum.LeftKnown = c.app.Servers.Problems(within, c.cwd)
		c.t.Result(sum)
	}()
}

// leftWait is how long the end of a turn waits for the language servers' last word.
const leftWait = 5 * time.Second

// run shows the prompt until the user ends the conversation.
func (c *conversation) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		for {
			select {
			case p := <-c.sent:
				c.take(ctx, p)
			case <-ctx.Done():
				return
			}
		}
	}()
	err := c.prompt.Run(ctx)
	cancel()
	c.stop()
	<-taken
	return err
}

// submit is called by the composer.
func (c *conversation) submit(p terminal.Prompt) { c.sent <- p }

// stop ends the running turn, or the command that ! started.
func (c *conversation) stop() {
	c.mu.Lock()
	shell, s := c.shell, c.session
	c.mu.Unlock()
	if shell != nil {
		shell()
	}
	s.Cancel()
}

func (c *conversation) busy() bool {
	c.mu.Lock()
	shell, s := c.shell, c.session
	c.mu.Unlock()
	return shell != nil || s.State().Busy
}

// take carries out what was typed: a command of the conversation's own, a shell command, a slash command, or a prompt.
func (c *conversation) take(ctx context.Context, p terminal.Prompt) {
	s := c.current()
	if command, ok := strings.CutPrefix(p.Text, "!"); ok && strings.TrimSpace(command) != "" {
		c.t.Echo("", p.Text)
		c.report(c.runShell(ctx, s, strings.TrimSpace(command)))
		return
	}
	if name, args, ok := slashWord(p.Text); ok {
		if name == "agent" {
			name, p.Text = "mode", strings.TrimSpace("/mode "+args)
		}
		if own, ok := ownCommand(name); ok {
			c.t.Echo("", p.Text)
			said, err := own.run(c, ctx, args)
			c.report(err)
			if said != "" {
				c.t.Say(said)
			}
			return
		}
	}
	made, said, err := expandPrompt(ctx, c.app, s, p.Text)
	if made == nil {
		c.t.Echo("", p.Text)
		c.report(err)
		c.t.Say(said)
		return
	}
	made.Limits, made.MessageID = c.limits, "msg_"+ulid.Make().String()
	if made.Parts[0].Text != p.Text { // a command became a long text; what was typed says enough
		c.t.Echo(made.MessageID, p.Text)
	} else {
		made.Parts = append(made.Parts, attachments(ctx, c.app, s, p.Text)...)
	}
	for _, f := range p.Pictures {
		made.Parts = append(made.Parts, provider.Part{Type: provider.PartFile, Files: []provider.File{f}})
	}
	if p.Steer {
		if injected, err := s.Steer(ctx, *made); err != nil || injected {
			c.report(err)
			return
		}
	}
	_, err = s.Enqueue(*made)
	c.report(err)
}

// report shows an error; a command that failed ends no conversation.
func (c *conversation) report(err error) {
	if err != nil {
		fmt.Fprintln(c.t, "error:", err)
	}
}

// slashWord takes "/name args" apart.
func slashWord(text string) (name, args string, ok bool) {
	rest, ok := strings.CutPrefix(text, "/")
	if !ok {
		return "", "", false
	}
	name, args, _ = strings.Cut(strings.TrimSpace(rest), " ")
	return name, strings.TrimSpace(args), true
}

// queued are the prompts that wait, as the composer shows them.
func (c *conversation) queued() (out []string) {
	items, held := c.current().Queue()
	for _, i := range items {
		text := textOf(i.Parts)
		switch {
		case i.Steer:
			text = "(steers) " + text
		case held:
			text = "(held) " + text
		}
		out = append(out, text)
	}
	return out
}

// unqueue takes the last prompt out of the queue, so that it can be changed.
func (c *conversation) unqueue() (text string, ok bool) {
	s := c.current()
	items, _ := s.Queue()
	if len(items) == 0 {
		return "", false
	}
	last := items[len(items)-1]
	if s.Unqueue(last.ID) != nil {
		return "", false // it has just begun
	}
	return textOf(last.Parts), true
}

// textOf is what the user wrote of a prompt.
func textOf(parts []provider.Part) string {
	var words []string
	for _, p := range parts {
		if p.Type == provider.PartText && !p.Synthetic {
			words = append(words, p.Text)
		}
	}
	return strings.TrimSpace(strings.Join(words, "\n"))
}

// status is the line below the prompt.
func (c *conversation) status() string {
	c.mu.Lock()
	info, last := c.session.Info(), c.last
	c.mu.Unlock()
	model := info.Model
	if model == "" {
		model = "no model"
	}
	parts := []string{model, info.Agent}
	if last.ContextSize > 0 {
		parts = append(parts, fmt.Sprintf("context %d%%", 100*last.ContextUsed/last.ContextSize))
	}
	return strings.Join(append(parts, "/help", "shift-tab agent", "ctrl-d ends"), " · ")
}

// nextAgent changes to the next agent that can lead a conversation.
func (c *conversation) nextAgent() {
	s := c.current()
	info := s.Info()
	var names []string
	for _, a := range c.app.Runtime.Agents(info.Cwd) {
		if !a.Hidden && a.Mode != agent.ModeSubagent {
			names = append(names, a.Name)
		}
	}
	if len(names) > 1 {
		_ = s.SetAgent(names[(slices.Index(names, info.Agent)+1)%len(names)]) // the status line shows which it is
	}
}
