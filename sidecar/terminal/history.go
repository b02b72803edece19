package terminal

import (
	"context"
	"slices"
	"strings"
)

// history are the prompts that can be brought back.
type history struct {
	// before reads the store, so it is called at the first look back and not when the conversation starts.
	before func(context.Context) []string // those of earlier conversations, until they were asked for
	list   []string                       // oldest first, each once
	at     int                            // which one is shown; len(list): what is being written
	draft  string                         // that, while an earlier one is shown
}

// all are the prompts, oldest first, those of earlier conversations included.
func (h *history) all(ctx context.Context) []string {
	if h.before != nil {
		// at moves with the prompts that are put in front of the others.
		before := slices.DeleteFunc(h.before(ctx), func(text string) bool { return slices.Contains(h.list, text) })
		h.before, h.list, h.at = nil, append(before, h.list...), h.at+len(before)
	}
	return h.list
}

// add remembers a prompt that was sent.
func (h *history) add(text string) {
	// A prompt that is sent twice in a row is remembered once, as shells do with HISTCONTROL=ignoredups.
	if n := len(h.list); n == 0 || h.list[n-1] != text {
		h.list = append(h.list, text)
	}
	h.leave()
}

// leave ends the search through the history: the person has changed the shown prompt, so it is a new draft.
func (h *history) leave() { h.at = len(h.list) }

// step goes to the next earlier (-1) or later (+1) prompt. After the last one it returns the draft; now is the text in the prompt, which
// becomes the draft when stepping begins.
func (h *history) step(ctx context.Context, by int, now string) (text string, ok bool) {
	list := h.all(ctx)
	if h.at == len(list) {
		h.draft = now
	}
	at := h.at + by
	switch {
	case at < 0 || at > len(list):
		return "", false
	case at == len(list):
		h.at = at
		return h.draft, true
	}
	h.at = at
	return list[at], true
}

// search is a search backwards through the prompts, as shells have it on Ctrl-R.
type search struct {
	query string
	draft string   // what was being written
	list  []string // oldest first
	at    int      // the prompt that is shown; len(list): none
}

// find shows the newest prompt at or before the one that is shown, less skip, that holds the query in any case of its
// letters; where there is none what is shown stays. skip is 1 for the next older one.
func (m *composing) find(skip int) {
	s := m.search
	query := strings.ToLower(s.query)
	for i := min(s.at-skip, len(s.list)-1); i >= 0; i-- {
		if strings.Contains(strings.ToLower(s.list[i]), query) {
			s.at = i
			m.bring(s.list[i])
			return
		}
	}
}

// searchKey is what a key does during a search; false: the search has ended, and the key does what it always does.
func (m *composing) searchKey(key, text string) bool {
	s := m.search
	switch {
	case key == "ctrl+r":
		m.find(1)
	case key == "backspace":
		if r := []rune(s.query); len(r) > 0 {
			s.query = string(r[:len(r)-1])
		}
		// A shorter query may be found in a newer prompt, so the search begins at the end again.
		s.at = len(s.list)
		m.find(0)
	case key == "esc", key == "ctrl+c":
		m.put(s.draft)
		m.search = nil
	case key == "enter", key == "tab":
		m.search = nil
	case text != "":
		s.query += text
		m.find(0)
	default:
		m.search = nil
		return false
	}
	return true
}
