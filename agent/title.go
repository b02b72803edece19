package agent

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/agent/provider"
)

const (
	maxTitle  = 50               // characters
	titleTime = 20 * time.Second // a title that takes longer is not worth it
)

// nameIt lets the hidden agent name a new session beside its first turn, and at most until the session is closed.
// Where there is no model for it the name stays the prompt's first line.
func (s *Session) nameIt(p Prompt, provisional string) {
	// Sub-agents have the task's description as their title.
	small, ok := s.rt.o.Models.(SmallModels)
	if !ok || s.of.parent != nil || provisional == "" {
		return
	}
	info := s.Info()
	a, ok := s.rt.agent(info.Cwd, titleAgent)
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
	s.namingMu.Lock()
	s.naming = func() { cancel(); <-done }
	s.namingMu.Unlock()
	go func() {
		defer close(done)
		defer cancel()
		text := words.String()
		// The prompt is cut at 8 KiB: a title needs its beginning only.
		text, _, err := s.errand(ctx, errand{agent: titleAgent, model: model, text: text[:min(len(text), 8<<10)]})
		if err != nil {
			return // the first line will do
		}
		if text = cleanTitle(text); text != "" {
			s.change(func(i *SessionInfo) {
				// A person's own title, or another process's, wins.
				if i.Title == provisional { // nobody has renamed it meanwhile
					i.Title = text
				}
			})
		}
	}()
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
