package main

import (
	"context"
	"fmt"
	"io"
	"os"
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
	prompt prompter
	cwd    string
	limits agent.Limits
	// sent carries prompts from the composer's goroutine to the one that takes them, in order.
	sent chan terminal.Prompt
	find *mention.Finder
	// rests has a value when the end of a turn has been shown and no other one follows by itself.
	rests chan struct{}

	mu      sync.Mutex
	session *agent.Session // guarded by mu: /new, /resume and /fork change it
	leave   func()         // guarded by mu: ends the subscription to it
	last    agent.TurnData // guarded by mu: the end of the last turn, for the status line
	shell   func()         // guarded by mu: ends the command that ! started; nil: none runs
}

// pendingPrompts is how many prompts can wait to be taken over by the session. The session takes them at once
// unless a command of the user's runs; submit blocks beyond that number.
const pendingPrompts = 100

// newConversation makes a conversation, and completes the options of the terminal that it is in. On a screen that can be drawn again it
// has a composer.
func newConversation(cwd string, limits agent.Limits, out io.Writer, screen bool, o *terminal.Options) *conversation {
	c := &conversation{cwd: cwd, limits: limits, sent: make(chan terminal.Prompt, pendingPrompts), rests: make(chan struct{}, 1)}
	o.Stop = c.stop
	if !screen {
		c.prompt = &plainPrompt{c: c}
		return c
	}
	o.Prompt = terminal.NewComposer(terminal.ComposerOptions{In: os.Stdin, Out: out, Color: o.Color, Editor: o.Editor,
		Submit: c.submit, Stop: c.stop, Busy: c.busy, Status: c.status, Next: c.nextAgent, Queued: c.queued, Unqueue: c.unqueue,
		Earlier: c.earlier, Complete: c.complete, Picture: clipboardPicture, PictureFile: pictureFile})
	c.prompt = o.Prompt
	return c
}

// lead leads the conversation from an opened session until the person ends it.
func (c *conversation) lead(ctx context.Context, a *app.App, t *terminal.Terminal, session *agent.Session, out io.Writer) error {
	c.app, c.t, c.find = a, t, a.Finder()
	defer c.find.Close()
	if err := c.attend(ctx, session); err != nil {
		return err
	}
	if err := c.run(ctx); err != nil {
		return err
	}
	if info := c.current().Info(); info.Title != "" {
		fmt.Fprintf(out, "%s  (pillion --continue continues it)\n", terminal.Clean(info.Title))
	}
	return nil
}

// current is the session that is shown. Callers keep the result for one operation: /new may change it at any time.
func (c *conversation) current() *agent.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// attend shows what happens in a session from now on, instead of the one before. What led up to now is shown as a
// short recap.
func (c *conversation) attend(ctx context.Context, s *agent.Session) error {
	var before lastExchange
	var last int64 // what was before is not printed again
	// The whole log is read, because the place of the last prompt in it is not known.
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
	// leave is called without mu, which the handler of the subscription takes.
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

// event shows one event. It must return soon, because the next event waits for it: what takes long (asking the
// servers) runs in a goroutine of its own.
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
	// The summary is taken at once: the next turn begins a new one.
	sum := c.t.Summary()
	waiting, held := s.Queue()
	// held: the prompts in the queue wait for the user, so no turn follows by itself.
	follows := len(waiting) > 0 && !held
	if d.Stop == agent.TurnCancelled || follows {
		c.ended(sum, follows) // the next turn begins, or the user does not want to wait for the language servers
		return
	}
	go func() {
		within, cancel := context.WithTimeout(ctx, leftWait)
		defer cancel()
		sum.Left, sum.NotChecked, sum.LeftKnown = c.app.Servers.Problems(within, c.cwd)
		c.ended(sum, false)
	}()
}

// ended shows the end of a turn; follows says that the next one begins by itself.
func (c *conversation) ended(sum terminal.Summary, follows bool) {
	c.t.Result(sum)
	if follows {
		return
	}
	select {
	case c.rests <- struct{}{}:
	default: // nobody waits for it
	}
}

// leftWait is how long the end of a turn waits for the language servers' last word.
const leftWait = 5 * time.Second

// run shows the prompt until the user ends the conversation.
func (c *conversation) run(ctx context.Context) error {
	// taken is closed when no prompt is being carried out: run must not return while one still uses the app, which
	// its caller closes.
	ctx, cancel := context.WithCancel(ctx)
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		for {
			select {
			// Another prompt is taken only when this one is with the session, so their order is kept.
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

// submit is called by the composer, on the goroutine that reads keys.
func (c *conversation) submit(p terminal.Prompt) { c.sent <- p }

// stop ends the running turn, or the command that ! started. Cancel without a turn does nothing.
func (c *conversation) stop() {
	c.mu.Lock()
	shell, s := c.shell, c.session
	c.mu.Unlock()
	if shell != nil {
		shell()
	}
	s.Cancel()
}

// busy decides whether enter sends at once or queues, and what esc means.
func (c *conversation) busy() bool {
	c.mu.Lock()
	shell, s := c.shell, c.session
	c.mu.Unlock()
	return shell != nil || s.State().Busy
}

// take carries out what was typed: a command of the conversation's own, a shell command, a slash command, or a
// prompt. One after the other, so a prompt behind a shell command has its output. It returns whether a turn follows.
func (c *conversation) take(ctx context.Context, p terminal.Prompt) (turn bool) {
	s := c.current()
	if command, ok := strings.CutPrefix(p.Text, "!"); ok && strings.TrimSpace(command) != "" {
		c.t.Echo("", p.Text)
		c.report(c.runShell(ctx, s, strings.TrimSpace(command)))
		return false
	}
	// The id is made here and not by the session, so that Echo can print the prompt before its event comes.
	id := "msg_" + ulid.Make().String()
	name, args, command := slashWord(p.Text)
	if command || !c.busy() {
		c.t.Echo(id, p.Text) // before what a command, or reading the attached files, prints
	}
	if command {
		if own, ok := ownCommand(name); ok {
			said, err := own.run(c, ctx, args)
			c.report(err)
			if said != "" {
				c.t.Say(said)
			}
			return false
		}
	}
	typed := p.Text
	if name == "agent" {
		typed = strings.TrimSpace("/mode " + args) // editors call an agent a mode (ACP, session modes), and the built-in command has that name
	}
	made, said, err := expandPrompt(ctx, c.app, s, typed)
	// A slash command has done everything already; there is no turn.
	if made == nil {
		c.report(err)
		if said != "" {
			c.t.Say(said)
		}
		return false
	}
	made.Limits, made.MessageID = c.limits, id
	if made.Parts[0].Text == p.Text { // else a command became a long text, whose mentions are its own
		made.Parts = append(made.Parts, attachments(ctx, c.app, s, p.Text)...)
	}
	// Pictures that were pasted or dropped are in no mention, so the composer hands them over.
	for _, f := range p.Pictures {
		made.Parts = append(made.Parts, provider.Part{Type: provider.PartFile, Files: []provider.File{f}})
	}
	// Steering needs a running turn. Where it has just ended, the words become a prompt of their own below.
	if p.Steer {
		if injected, err := s.Steer(ctx, *made); err != nil || injected {
			c.report(err)
			return injected
		}
	}
	_, err = s.Enqueue(*made)
	c.report(err)
	return err == nil
}

// report shows an error; a command that failed ends no conversation.
func (c *conversation) report(err error) {
	if err != nil {
		fmt.Fprintln(c.t, "error:", err)
	}
}

// slashWord takes "/name args" apart; args has no blanks around it. ok is false for text that is not a command.
func slashWord(text string) (name, args string, ok bool) {
	rest, ok := strings.CutPrefix(text, "/")
	if !ok {
		return "", "", false
	}
	name, args, _ = strings.Cut(strings.TrimSpace(rest), " ")
	return name, strings.TrimSpace(args), true
}

// queued are the prompts that wait, as the composer shows them, and in what way each one waits.
func (c *conversation) queued() (out []string) {
	items, held := c.current().Queue()
	// What is shown is what the user typed, not the files that were added to it.
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

// unqueue takes the last prompt out of the queue, so that it can be changed. Only its text comes back: attachments
// are found again by their mentions.
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

// textOf is what the user wrote of a prompt: without files that were read for it and other synthetic parts.
func textOf(parts []provider.Part) string {
	var words []string
	for _, p := range parts {
		if p.Type == provider.PartText && !p.Synthetic {
			words = append(words, p.Text)
		}
	}
	return strings.TrimSpace(strings.Join(words, "\n"))
}

// status is the line below the prompt. It reads what is in memory and asks nothing, because drawing must not wait.
func (c *conversation) status() string {
	c.mu.Lock()
	info, last := c.session.Info(), c.last
	c.mu.Unlock()
	model := info.Model
	if model == "" {
		model = "no model"
	}
	parts := []string{model, info.Agent}
	// The size of the context is not known for every model.
	if last.ContextSize > 0 {
		parts = append(parts, fmt.Sprintf("context %d%%", 100*last.ContextUsed/last.ContextSize))
	}
	return strings.Join(append(parts, "/help", "shift-tab agent", "ctrl-d ends"), " · ")
}

// nextAgent changes to the next agent that can lead a conversation, round and round. Sub-agents and hidden ones
// are for other agents.
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
