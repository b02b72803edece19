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
	maxTitle  = 50               // characters that a title should have
	titleTime = 20 * time.Second // a title that takes longer is given up
)

// namer lets the hidden title agent name a session during its first turn, and at most until the session is closed.
type namer struct {
	*errands

	mu   sync.Mutex
	stop func() // guarded by mu: ends the naming and waits for it; nil: there was none
}

// start begins to name the session by its first prompt. Where no model can do it, the provisional title stays, which is the first line of
// the prompt.
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
		// The beginning of a prompt is enough for a title: 8 KiB.
		text, _, err := n.errand(ctx, errand{agent: titleAgent, model: model, text: text[:min(len(text), 8<<10)]})
		if err != nil {
			return // the provisional title stays
		}
		if text = cleanTitle(text); text != "" {
			n.head.change(func(i *SessionInfo) {
				// A title that the person or another process has set meanwhile stays.
				if i.Title == provisional {
					i.Title = text
				}
			})
		}
	}()
}

// end cancels the naming, if there is one, and waits for its end. Any goroutine may call it.
func (n *namer) end() {
	n.mu.Lock()
	stop := n.stop
	n.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// cleanTitle makes a title of a model's answer: its first line with text, without thought, quotes, Markdown and "Title:". Empty when
// there is none.
func cleanTitle(text string) string {
	// Servers without a reasoning parser leave the thought in the answer.
	if i := strings.LastIndex(text, "</think>"); i >= 0 {
		text = text[i+len("</think>"):]
	}
	for _, line := range strings.Split(text, "\n") {
		line = strings.Trim(strings.Join(strings.Fields(strings.ToValidUTF8(line, "")), " "), "\"'`*#. ")
		line = strings.TrimSpace(strings.TrimPrefix(line, "Title:"))
		if line == "" {
			continue
		}
		// A title of up to twice maxTitle keeps all its words; a longer one is a sentence and is cut.
		if utf8.RuneCountInString(line) > maxTitle*2 {
			r := []rune(line)[:maxTitle]
			return strings.TrimSpace(string(r)) + "…"
		}
		return line
	}
	return ""
}

// titleOf makes a title of a prompt: the first line of text, cut at a word.
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
			// Cut at a blank, unless half of the title would be lost.
			if i := strings.LastIndexByte(cut, ' '); i > most/2 {
				cut = cut[:i]
			}
			return cut + "…"
		}
	}
	return ""
}
