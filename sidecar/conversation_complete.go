package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/store"
	"github.com/pillion-dev/pillion/sidecar/mention"
	"github.com/pillion-dev/pillion/sidecar/terminal"
	"github.com/pillion-dev/pillion/tools/fuzzy"
	"github.com/pillion-dev/pillion/tools/symbol"
)

// Limits of what a conversation remembers. earlierMost is a number of prompts, recapLines a number of lines of the
// last answer.
const (
	earlierFor  = 30 * 24 * time.Hour // prompts of the directory's sessions that the arrow keys bring back
	earlierMost = 500
	earlierLong = 4000 // bytes; a longer one was pasted or made by a command
	recapLines  = 12
)

// complete offers slash commands at the start, their arguments behind some of them, and files and symbols after an
// @. from is the byte offset in text at which a completion replaces the rest.
func (c *conversation) complete(ctx context.Context, text string) (from int, out []terminal.Completion) {
	rest, ok := strings.CutPrefix(text, "/")
	if ok && !strings.ContainsAny(rest, " \n") {
		for _, x := range c.allNames() {
			out = append(out, terminal.Completion{Text: "/" + x.Name + " ", Note: x.Description})
		}
		return 0, best(out, rest)
	}
	// A second line belongs to a prompt, which has no completions.
	if name, args, found := strings.Cut(rest, " "); ok && found && !strings.Contains(args, "\n") {
		if out := c.arguments(ctx, name); out != nil {
			return len(text) - len(args), best(out, args)
		}
	}
	// The word at the cursor: complete is given the text up to it.
	at := strings.LastIndexAny(text, " \n\t") + 1
	query, ok := strings.CutPrefix(text[at:], "@")
	// A longer query is refused by the search; such a word was pasted.
	if !ok || len(query) > mention.MaxQuery {
		return 0, nil
	}
	// Symbols only for a query: an empty one fits all of them, and files are what most people mean.
	kinds := mention.Kinds{mention.File: true, mention.Folder: true, mention.Symbol: query != "", mention.Resource: true}
	found, _, err := c.find.Search(ctx, c.cwd, query, 8, kinds)
	if err != nil {
		return 0, nil
	}
	for _, f := range found {
		word, note, end := f.Path, f.Kind, " "
		switch f.Kind {
		case mention.Folder:
			end = "" // its files can be completed next
		case mention.Symbol:
			note = f.Name
			// Without a range the mention is the whole file.
			if r := f.Range; r != nil {
				from, to := declarationLines(f.File, int(r.Start.Line)+1, int(r.End.Line)+1) // LSP's lines count from 0
				// The notation of a mention with lines, which the read tool understands.
				word += fmt.Sprintf("#L%d-L%d", from, to)
			}
		}
		out = append(out, terminal.Completion{Text: "@" + word + end, Note: note})
	}
	return at, out
}

// maxDeclaredIn is how large a file may be, in bytes, whose declarations are looked at while the person types.
const maxDeclaredIn = 1 << 20

// declarationLines are the lines of the declaration whose name is in the given ones, with its comment: the range of a match is that of
// the name, which says little to a model. Lines count from 1; without a grammar they stay as they are.
// A file that is huge, a pipe or gone keeps the lines of the name: completion must answer at once.
func declarationLines(path string, from, to int) (int, int) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxDeclaredIn {
		return from, to
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return from, to
	}
	text := string(b)
	list, err := symbol.Outline(path, text)
	if err != nil {
		return from, to
	}
	// Offsets of the outline are bytes; each line is counted from the start, which is fast enough below
	// maxDeclaredIn.
	line := func(offset int) int { return 1 + strings.Count(text[:offset], "\n") }
	for _, s := range list {
		if line(s.At) == from {
			return line(s.Start), max(to, line(s.End))
		}
	}
	return from, to
}

// arguments are what may follow a command's name; nil: nothing is known, and no list is shown.
func (c *conversation) arguments(ctx context.Context, name string) (out []terminal.Completion) {
	switch name {
	case "model":
		for _, m := range c.app.Models.Choices(ctx, c.cwd) {
			out = append(out, terminal.Completion{Text: m.ID, Note: m.Name})
		}
	case "mode", "agent":
		for _, a := range c.app.Runtime.Agents(c.cwd) {
			if !a.Hidden && a.Mode != agent.ModeSubagent {
				out = append(out, terminal.Completion{Text: a.Name, Note: a.Description})
			}
		}
	case "resume":
		list, err := c.listed(ctx)
		if err != nil {
			return nil
		}
		for i, s := range list {
			out = append(out, terminal.Completion{Text: fmt.Sprint(i + 1), Note: s.Title})
		}
	}
	return out
}

// best sorts out what fits the query, the best first. The notes behind the words are not searched.
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

// earlier are the prompts of this directory's sessions, oldest first, each once at its latest place, as a shell's
// history without duplicates.
func (c *conversation) earlier(ctx context.Context) (out []string) {
	// Scan streams over the store, so only what is kept costs memory.
	err := c.app.Store.Scan(ctx, time.Now().Add(-earlierFor), []string{string(agent.EventPrompt)}, func(s store.Session, e store.Event) error {
		if s.Cwd != c.cwd || s.Parent != "" {
			return nil
		}
		if text := promptText(e.Data); text != "" {
			// The later use of a prompt replaces the earlier one.
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

// promptText is what a stored prompt said; empty for one that is not brought back.
func promptText(data []byte) string {
	var d agent.PromptData
	if json.Unmarshal(data, &d) != nil {
		return ""
	}
	text := textOf(d.Parts)
	if len(text) > earlierLong {
		return ""
	}
	return text
}

// lastExchange is where a session that is continued had come to: its last prompt and the answer's last words.
// Without it, the person who continues a session sees an empty screen and cannot tell whether it is the right one.
type lastExchange struct {
	prompts int
	asked   string
	said    string
}

// event follows the log. A new prompt or message begins again, so only the last ones remain.
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

// text is the last exchange as Markdown; empty for a session without a prompt. The prompt is quoted, and of the answer only the
// last recapLines lines are shown.
func (r *lastExchange) text() string {
	if r.prompts == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(r.said), "\n")
	// The end of an answer says what was done; its beginning often only repeats the task.
	if n := len(lines) - recapLines; n > 0 {
		lines = append([]string{"…"}, lines[n:]...)
	}
	return "> " + strings.ReplaceAll(escapeMarkdown(r.asked), "\n", "\n> ") + "\n\n" + strings.Join(lines, "\n") + "\n"
}
