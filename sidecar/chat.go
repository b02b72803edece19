package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/store"
	"github.com/pillion-dev/pillion/sidecar/mention"
	"github.com/pillion-dev/pillion/sidecar/terminal"
	"github.com/pillion-dev/pillion/tools/fuzzy"
)

// Limits of the prompt history. They bound the time of one scan of the event log and the length of one entry on the
// screen.
const (
	promptHistoryAge  = 30 * 24 * time.Hour // prompts of the directory's sessions that the arrow keys bring back
	promptHistorySize = 500
	maxHistoryPrompt  = 4000 // bytes
	recapLines        = 12
)

// converse reads a prompt, runs its turn and begins again, until the person ends it with Ctrl-D or /quit. It returns
// nil then, and an error only when the terminal itself fails or ctx ends: a failed prompt must not end the
// conversation.
func (r *terminalSession) converse(ctx context.Context, in *os.File, out io.Writer, o terminal.Options) error {
	find := r.app.Finder()
	defer find.Close()
	c := &terminal.Composer{In: in, Out: out, Color: o.Color, Editor: o.Editor, Before: r.earlierPrompts, Status: r.status, Next: r.nextAgent}
	c.Complete = func(ctx context.Context, text string) (int, []terminal.Completion) {
		return r.complete(ctx, find, text)
	}
	for {
		// Notices wait while a line is being edited (heldNotices); this is the first moment at which they cannot tear
		// it apart.
		prompt, err := r.t.Compose(ctx, c)
		r.notices.flush()
		switch {
		case errors.Is(err, io.EOF):
			if info := r.session.Info(); info.Title != "" {
				fmt.Fprintf(out, "%s  (pillion run --continue continues it)\n", terminal.Clean(info.Title))
			}
			return nil
		case err != nil:
			return err
		case prompt == "":
			continue
		case prompt == "/quit" || prompt == "/exit":
			return nil
		}
		s, said, err := r.ask(ctx, prompt)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil: // a command that failed ends no conversation
			fmt.Fprintln(out, "error:", terminal.Clean(err.Error()))
		case said != "":
			fmt.Fprint(out, terminal.Clean(said))
		default:
			r.t.Result(s)
		}
		fmt.Fprintln(out)
	}
}

// status is the line below the prompt. It names the keys that nobody would guess.
func (r *terminalSession) status() string {
	info := r.session.Info()
	return fmt.Sprintf("%s · %s · / commands · @ files · shift-tab mode · ctrl-j new line · ctrl-d ends", info.Model, info.Agent)
}

// nextAgent switches to the next agent that can lead a session (Shift-Tab). Hidden agents and sub-agents are left
// out: the model starts those, not the person.
func (r *terminalSession) nextAgent() {
	info := r.session.Info()
	var names []string
	for _, a := range r.app.Runtime.Agents(info.Cwd) {
		if !a.Hidden && a.Mode != agent.ModeSubagent {
			names = append(names, a.Name)
		}
	}
	if len(names) > 1 {
		_ = r.session.SetAgent(names[(slices.Index(names, info.Agent)+1)%len(names)]) // it can fail only for an unknown name; the status line shows the agent
	}
}

// complete offers slash commands at the start of the prompt, models and agents after /model and /mode, and files
// after an @. from is the byte offset in text that a completion replaces from.
func (r *terminalSession) complete(ctx context.Context, find *mention.Finder, text string) (from int, out []terminal.Completion) {
	if rest, ok := strings.CutPrefix(text, "/"); ok && !strings.ContainsAny(rest, " \n") {
		for _, c := range allCommands(r.app, r.cwd) {
			out = append(out, terminal.Completion{Text: "/" + c.Name + " ", Note: c.Description})
		}
		out = append(out, terminal.Completion{Text: "/quit ", Note: "End the conversation"})
		return 0, bestMatches(out, rest)
	}
	if rest, ok := strings.CutPrefix(text, "/model "); ok {
		for _, m := range r.app.Models.Choices(ctx, r.cwd) {
			out = append(out, terminal.Completion{Text: m.ID, Note: m.Name})
		}
		return len(text) - len(rest), bestMatches(out, rest)
	}
	if rest, ok := strings.CutPrefix(text, "/mode "); ok {
		for _, a := range r.app.Runtime.Agents(r.cwd) {
			if !a.Hidden && a.Mode != agent.ModeSubagent {
				out = append(out, terminal.Completion{Text: a.Name, Note: a.Description})
			}
		}
		return len(text) - len(rest), bestMatches(out, rest)
	}
	at := strings.LastIndexAny(text, " \n\t") + 1
	query, ok := strings.CutPrefix(text[at:], "@")
	if !ok || len(query) > mention.MaxQuery {
		return 0, nil
	}
	// Eight rows fit below the prompt on a terminal of 24 lines.
	found, _, err := find.Search(ctx, r.cwd, query, 8, mention.Kinds{mention.File: true, mention.Folder: true})
	if err != nil {
		return 0, nil
	}
	for _, f := range found {
		end := " "
		if f.Kind == mention.Folder {
			end = "" // the next completion is inside the folder
		}
		out = append(out, terminal.Completion{Text: "@" + f.Path + end, Note: f.Kind})
	}
	return at, out
}

// bestMatches returns the completions that match the query, best first.
func bestMatches(list []terminal.Completion, query string) (out []terminal.Completion) {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = strings.Trim(c.Text, "/ ")
	}
	found, _ := fuzzy.New(names).Best(query, len(names))
	for _, f := range found {
		out = append(out, list[f.Index])
	}
	return out
}

// earlierPrompts are the prompts of this directory's sessions, oldest first. A repeated prompt is listed once, where
// it was used last, as shells do. Prompts of sub-agents were written by a model and are left out.
func (r *terminalSession) earlierPrompts(ctx context.Context) (out []string) {
	err := r.app.Store.Scan(ctx, time.Now().Add(-promptHistoryAge), []string{string(agent.EventPrompt)}, func(s store.Session, e store.Event) error {
		if s.Cwd != r.cwd || s.Parent != "" {
			return nil
		}
		if text := promptText(e.Data); text != "" {
			if i := slices.Index(out, text); i >= 0 {
				out = slices.Delete(out, i, i+1)
			}
			out = append(out, text)
		}
		return nil
	})
	if err != nil {
		return nil // the history is a convenience
	}
	return out[max(0, len(out)-promptHistorySize):]
}

// promptText is the text of a stored prompt. It is empty for a prompt over maxHistoryPrompt: that one was pasted or
// made by a command, and recalling it would fill the screen.
func promptText(data []byte) string {
	var d agent.PromptData
	if json.Unmarshal(data, &d) != nil {
		return ""
	}
	var words []string
	for _, p := range d.Parts {
		if p.Type == provider.PartText {
			words = append(words, p.Text)
		}
	}
	text := strings.TrimSpace(strings.Join(words, "\n"))
	if len(text) > maxHistoryPrompt {
		return ""
	}
	return text
}

// lastExchange collects the last prompt of a continued session and the answer to it, to be shown before the first new
// prompt. It reads the events in order, so it need not keep them.
type lastExchange struct {
	prompts int
	asked   string
	said    string
}

// event takes the next event of the log.
func (r *lastExchange) event(e agent.Event) {
	switch e.Type {
	case agent.EventPrompt:
		r.prompts++
		r.asked, r.said = promptText(e.Data), ""
	case agent.EventMessage:
		r.said = ""
	case agent.EventText:
		var d agent.TextData
		if json.Unmarshal(e.Data, &d) == nil {
			r.said += d.Text
		}
	}
}

// print shows the prompt and the last recapLines lines of the answer; nothing for a session without prompts.
func (r *lastExchange) print(out io.Writer) {
	if r.prompts == 0 {
		return
	}
	lines := strings.Split(strings.TrimSpace(r.said), "\n")
	if n := len(lines) - recapLines; n > 0 {
		lines = append([]string{"…"}, lines[n:]...)
	}
	fmt.Fprintf(out, "\n› %s\n%s\n", terminal.Clean(strings.ReplaceAll(r.asked, "\n", "\n  ")), terminal.Clean(strings.Join(lines, "\n")))
}

// heldNotices is where notices are written. While a prompt is being edited they are buffered: a line printed in
// between would tear the editor's screen apart.
type heldNotices struct {
	mu     sync.Mutex // guards buffer and the order of writes
	w      io.Writer
	buffer bytes.Buffer
	typing func() bool
}

// Write implements io.Writer.
func (p *heldNotices) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.typing() {
		return p.buffer.Write(b)
	}
	return p.w.Write(b)
}

// flush writes what was buffered.
func (p *heldNotices) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.buffer.WriteTo(p.w) // nothing can be reported about a standard error that is closed
}
