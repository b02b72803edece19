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

const (
	earlierFor  = 30 * 24 * time.Hour // prompts of the directory's sessions that the arrow keys bring back
	earlierMost = 500
	earlierLong = 4000 // bytes
	recapLines  = 12
)

// talk is a conversation at the terminal: a prompt, its turn, and again, until the person ends it.
func (r *ride) talk(ctx context.Context, in *os.File, out io.Writer, o terminal.Options) error {
	find := r.app.Finder()
	defer find.Close()
	c := &terminal.Composer{In: in, Out: out, Color: o.Color, Editor: o.Editor, Before: r.earlier, Status: r.status, Next: r.nextAgent}
	c.Complete = func(ctx context.Context, text string) (int, []terminal.Completion) {
		return r.complete(ctx, find, text)
	}
	for {
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

// status is the line below the prompt.
func (r *ride) status() string {
	info := r.session.Info()
	return fmt.Sprintf("%s · %s · / commands · @ files · shift-tab mode · ctrl-j new line · ctrl-d ends", info.Model, info.Agent)
}

// nextAgent goes round the agents one can talk to.
func (r *ride) nextAgent() {
	info := r.session.Info()
	var names []string
	for _, a := range r.app.Runtime.Agents(info.Cwd) {
		if !a.Hidden && a.Mode != agent.ModeSubagent {
			names = append(names, a.Name)
		}
	}
	if len(names) > 1 {
		_ = r.session.SetAgent(names[(slices.Index(names, info.Agent)+1)%len(names)]) // the status shows which it is
	}
}

// complete offers slash commands at the start, models and agents behind theirs, and files after an @.
func (r *ride) complete(ctx context.Context, find *mention.Finder, text string) (from int, out []terminal.Completion) {
	if rest, ok := strings.CutPrefix(text, "/"); ok && !strings.ContainsAny(rest, " \n") {
		for _, c := range allCommands(r.app, r.cwd) {
			out = append(out, terminal.Completion{Text: "/" + c.Name + " ", Note: c.Description})
		}
		out = append(out, terminal.Completion{Text: "/quit ", Note: "End the conversation"})
		return 0, best(out, rest)
	}
	if rest, ok := strings.CutPrefix(text, "/model "); ok {
		for _, m := range r.app.Models.Choices(ctx, r.cwd) {
			out = append(out, terminal.Completion{Text: m.ID, Note: m.Name})
		}
		return len(text) - len(rest), best(out, rest)
	}
	if rest, ok := strings.CutPrefix(text, "/mode "); ok {
		for _, a := range r.app.Runtime.Agents(r.cwd) {
			if !a.Hidden && a.Mode != agent.ModeSubagent {
				out = append(out, terminal.Completion{Text: a.Name, Note: a.Description})
			}
		}
		return len(text) - len(rest), best(out, rest)
	}
	at := strings.LastIndexAny(text, " \n\t") + 1
	query, ok := strings.CutPrefix(text[at:], "@")
	if !ok || len(query) > mention.MaxQuery {
		return 0, nil
	}
	found, _, err := find.Search(ctx, r.cwd, query, 8, mention.Kinds{mention.File: true, mention.Folder: true})
	if err != nil {
		return 0, nil
	}
	for _, f := range found {
		end := " "
		if f.Kind == mention.Folder {
			end = "" // one may go on into it
		}
		out = append(out, terminal.Completion{Text: "@" + f.Path + end, Note: f.Kind})
	}
	return at, out
}

// best sorts out what fits the query.
func best(list []terminal.Completion, query string) (out []terminal.Completion) {
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

// earlier are the prompts of this directory's sessions, oldest first, each once.
func (r *ride) earlier(ctx context.Context) (out []string) {
	err := r.app.Store.Scan(ctx, time.Now().Add(-earlierFor), []string{string(agent.EventPrompt)}, func(s store.Session, e store.Event) error {
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
		return nil // a conversation can do without
	}
	return out[max(0, len(out)-earlierMost):]
}

// promptText is what a stored prompt said; a long one was pasted or made by a command and is not brought back.
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
	if len(text) > earlierLong {
		return ""
	}
	return text
}

// recap shows where a conversation that goes on had come to: its last prompt and the answer's last words.
type recap struct {
	prompts int
	asked   string
	said    string
}

func (r *recap) event(e agent.Event) {
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

func (r *recap) print(out io.Writer) {
	if r.prompts == 0 {
		return
	}
	lines := strings.Split(strings.TrimSpace(r.said), "\n")
	if n := len(lines) - recapLines; n > 0 {
		lines = append([]string{"…"}, lines[n:]...)
	}
	fmt.Fprintf(out, "\n› %s\n%s\n", terminal.Clean(strings.ReplaceAll(r.asked, "\n", "\n  ")), terminal.Clean(strings.Join(lines, "\n")))
}

// patient is where notices go: while a prompt is typed they wait for its end.
type patient struct {
	mu     sync.Mutex
	w      io.Writer
	held   bytes.Buffer
	typing func() bool
}

func (p *patient) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.typing() {
		return p.held.Write(b)
	}
	return p.w.Write(b)
}

// flush writes what waited.
func (p *patient) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.held.WriteTo(p.w) // a closed standard error hides nothing else
}
