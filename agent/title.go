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
	maxTitle   = 50               // characters; the length to which a long title is cut
	titleTime  = 20 * time.Second // after that the provisional title stays
	titleWords = 8 << 10          // bytes of a prompt that are enough for a title
)

// namer lets the hidden title agent name a session during its first turn; it stops when the session is closed.
type namer struct {
	*errands

	mu   sync.Mutex
	stop func() // guarded by mu; cancels the request for a title and waits for its end; nil: none was started
}

// start requests a title for the session's first prompt. Where no model can write one, the provisional title stays, which is the first line
// of the prompt.
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
		if part.Type == provider.PartText && !part.Synthetic && words.Len() < titleWords {
			words.WriteString(part.Text[:min(len(part.Text), titleWords)] + "\n")
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
		text, _, err := n.errand(ctx, errand{agent: titleAgent, model: model, text: text[:min(len(text), titleWords)]})
		if err != nil {
			return // the provisional title stays
		}
		if text = cleanTitle(text); text != "" {
			n.head.change(func(i *SessionInfo) {
				// Keep a title that the person or another process has set meanwhile.
				if i.Title == provisional {
					i.Title = text
				}
			})
		}
	}()
}

// end cancels the request for a title, if there is one, and waits for its end. Any goroutine may call it.
func (n *namer) end() {
	n.mu.Lock()
	stop := n.stop
	n.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// cleanTitle returns the title in a model's answer: its first non-blank line, without thinking, quotes, Markdown and "Title:"; "" when
// there is none.
func cleanTitle(text string) string {
	// Servers without a parser for reasoning leave the thinking in the answer.
	if i := strings.LastIndex(text, "</think>"); i >= 0 {
		text = text[i+len("</think>"):]
	}
	for _, line := range strings.Split(text, "\n") {
		line = strings.Trim(strings.Join(strings.Fields(strings.ToValidUTF8(line, "")), " "), "\"'`*#. ")
		line = strings.TrimSpace(strings.TrimPrefix(line, "Title:"))
		if line == "" {
			continue
		}
		// A line of up to twice maxTitle is kept whole; a longer one is a sentence and is cut.
		if utf8.RuneCountInString(line) > maxTitle*2 {
			r := []rune(line)[:maxTitle]
			return strings.TrimSpace(string(r)) + "…"
		}
		return line
	}
	return ""
}

// titleOf returns a title made from a prompt: its first line of text, cut at a word.
func titleOf(parts []provider.Part) string {
	const most = 72 // characters
	for _, p := range parts {
		if p.Type != provider.PartText || p.Synthetic {
			continue
		}
		for line := range strings.SplitSeq(p.Text, "\n") {
			line = strings.Join(strings.Fields(strings.ToValidUTF8(line, "")), " ")
			if line == "" {
				continue
			}
			if utf8.RuneCountInString(line) <= most {
				return line
			}
			cut := string([]rune(line)[:most])
			// Cut at a space, unless that would lose half of the title.
			if i := strings.LastIndexByte(cut, ' '); i > most/2 {
				cut = cut[:i]
			}
			return cut + "…"
		}
	}
	return ""
}
