package agent

import (
	"context"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/agent/provider"
)

const (
	maxTitle  = 50               // characters
	titleTime = 20 * time.Second // a title that takes longer is not worth it
)

// namer lets the hidden title agent name a new session beside its first turn, and at most until the session is closed.
type namer struct {
	*errands

	mu   sync.Mutex
	stop func() // guarded by mu: ends the naming and waits for it; nil: there was none
}

// start begins to name the session by its first prompt. Where there is no model for it the name stays the provisional one,
// which is the prompt's first line.
func (n *namer) start(p Prompt, provisional string) {
	small, ok := n.rt.o.Models.(SmallModels)
	if !ok || provisional == "" {
		return
	}
	info := n.head.Info()
	a, ok := n.rt.agent(info.Cwd, titleAgent)
	model := a.Model
	if model == "" {
		model = small.Small(info.Cwd, info.Model)
	}
	if !ok || model == "" {
		return
	}
	var words strings.Builder
	for _, part := range p.Parts {
		if part.Type == provider.PartText && !part.Synthetic {
			words.WriteString(part.Text + "\n")
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), titleTime)
	done := make(chan struct{})
	n.mu.Lock()
	n.stop = func() { cancel(); <-done }
	n.mu.Unlock()
	go func() {
		defer close(done)
		defer cancel()
		text := words.String()
		// The prompt is cut at 8 KiB: a title needs its beginning only.
		text, _, err := n.errand(ctx, errand{agent: titleAgent, model: model, text: text[:min(len(text), 8<<10)]})
		if err != nil {
			return // the first line will do
		}
		if text = cleanTitle(text); text != "" {
			n.head.change(func(i *SessionInfo) {
				// A person's own title, or another process's, wins.
				if i.Title == provisional { // nobody has renamed it meanwhile
					i.Title = text
				}
			})
		}
	}()
}

// end cancels the naming, if there is one, and waits until it is over. Any goroutine may call it.
func (n *namer) end() {
	n.mu.Lock()
	stop := n.stop
	n.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// cleanTitle makes a title of a model's answer: its first line that is not empty, without thought, quotes, Markdown and "Title:".
// Empty when there is none.
func cleanTitle(text string) string {
	if i := strings.LastIndex(text, "</think>"); i >= 0 {
		text = text[i+len("</think>"):]
	}
	for _, line := range strings.Split(text, "\n") {
		line = strings.Trim(strings.Join(strings.Fields(strings.ToValidUTF8(line, "")), " "), "\"'`*#. ")
		line = strings.TrimSpace(strings.TrimPrefix(line, "Title:"))
		if line == "" {
			continue
		}
		// twice the wish: a model that writes a sentence gets it cut, one that is a little over keeps its words
		if utf8.RuneCountInString(line) > maxTitle*2 {
			r := []rune(line)[:maxTitle]
			return strings.TrimSpace(string(r)) + "…"
		}
		return line
	}
	return ""
}

// titleOf makes a title of a prompt: its first line of text, cut at a word.
func titleOf(parts []provider.Part) string {
	const most = 72 // characters
	for _, p := range parts {
		if p.Type != provider.PartText || p.Synthetic {
			continue
		}
		for _, line := range strings.Split(p.Text, "\n") {
			line = strings.Join(strings.Fields(strings.ToValidUTF8(line, "")), " ")
			if line == "" {
				continue
			}
			if utf8.RuneCountInString(line) <= most {
				return line
			}
			cut := string([]rune(line)[:most])
			// cut at a blank unless more than half of the title would be lost
			if i := strings.LastIndexByte(cut, ' '); i > most/2 {
				cut = cut[:i]
			}
			return cut + "…"
		}
	}
	return ""
}
