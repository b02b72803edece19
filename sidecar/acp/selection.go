package acp

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// selection is where the person is in this editor. A model learns of it only when a prompt says @selection.
type selection struct {
	buffers *editors.Buffers

	mu sync.Mutex
	// Positions in it count from 0, in UTF-16 code units.
	now protocol.SelectionChanged // guarded by mu
}

// didChange stores the latest selection.
func (s *selection) didChange(p protocol.SelectionChanged) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = p
}

// Limits of what @selection adds to a prompt.
const (
	maxSelection = 64 << 10 // bytes of selected text that go into a prompt
	maxSelected  = 20       // selections that the prompt names
)

// atSelection finds the word; "me@selection.org" does not match.
var atSelection = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(^|[\s(,;:"'])@selection\b`) })

// selected is the text that @selection stands for: the file, the lines from 1, and the selected text.
func (s *selection) selected(cwd string) string {
	s.mu.Lock()
	now := s.now
	s.mu.Unlock()
	if now.TextDocument == nil {
		return "(@selection: the user's editor shows no document, so nothing is selected.)"
	}
	name := displayPath(now.TextDocument.URI)
	if rel, err := filepath.Rel(cwd, name); err == nil && filepath.IsLocal(rel) {
		name = rel
	}
	if len(now.Selections) == 0 {
		return fmt.Sprintf("(@selection: the user has %s open; nothing is selected.)", name)
	}
	// The text is read when the prompt comes: the notification may be older than the last edit.
	whole, open := s.document(now.TextDocument.URI)
	var b strings.Builder
	for i, r := range now.Selections {
		if i == maxSelected {
			fmt.Fprintf(&b, "(and %d more selections)\n", len(now.Selections)-i)
			break
		}
		text, cut := "", false
		switch {
		case open:
			// An editor may send a selection with its start behind its end.
			from, to := editors.PositionOffset(whole, r.Start), editors.PositionOffset(whole, r.End)
			text = whole[min(from, to):max(from, to)]
		// The notification carries the text of the first selection only.
		case i == 0:
			text = now.Text
		}
		// The limit is one for all selections together.
		if left := maxSelection - b.Len(); len(text) > left {
			text, cut = strings.ToValidUTF8(text[:max(left, 0)], ""), true
		}
		b.WriteString(selectionText(name, r, text, cut))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// selectionText describes one selection. A selection that ends before the first character of a line does not include
// that line.
func selectionText(name string, r protocol.Range, text string, cut bool) string {
	first, last := r.Start.Line+1, r.End.Line+1
	if r.Start == r.End {
		return fmt.Sprintf("(@selection: the user's cursor is in %s, line %d, character %d; nothing is selected.)\n", name, first, r.Start.Character+1)
	}
	lines := fmt.Sprintf("line %d", first)
	if last > first && r.End.Character == 0 {
		last-- // whole lines
	}
	if last > first {
		lines = fmt.Sprintf("lines %d-%d", first, last)
	}
	note := ""
	if cut {
		note = " (its beginning)"
	}
	return fmt.Sprintf("@selection is %s, %s%s:\n%s\n", name, lines, note, fenced(text))
}

// document is a text as this editor shows it, else as it is on disk; ok is false for what is not a file, or too large.
func (s *selection) document(uri string) (text string, ok bool) {
	path, isFile := editors.URIPath(uri)
	if !isFile {
		return "", false
	}
	if b, open := s.buffers.Buffer(path); open {
		return b.Text, true
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > editors.MaxAsked {
		return "", false
	}
	raw, err := os.ReadFile(path)
	return string(raw), err == nil
}
