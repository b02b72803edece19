package acp

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// selection is where the person is, as the editor last said. The model learns of it when a prompt says @selection.
type selection struct {
	buffers *editors.Buffers

	mu  sync.Mutex
	now protocol.SelectionChanged // guarded by mu
}

func (s *selection) didChange(p protocol.SelectionChanged) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = p
}

const (
	maxSelection = 64 << 10 // bytes of selected text that go into a prompt
	maxSelected  = 20       // selections that are told of
)

var atSelection = regexp.MustCompile(`(^|[\s(,;:"'])@selection\b`)

// prepare makes of an editor's prompt what the session is told: slash commands stand for their words, and @selection
// brings along what is selected now.
func (es *editorSession) prepare(parts []provider.Part) []provider.Part {
	parts = es.expandCommand(parts)
	for _, p := range parts {
		if p.Type == provider.PartText && !p.Synthetic && atSelection.MatchString(p.Text) {
			return append(parts, provider.Part{Type: provider.PartText, Synthetic: true, Text: es.selection.selected(es.Info().Cwd)})
		}
	}
	return parts
}

// selected says what @selection stands for.
func (s *selection) selected(cwd string) string {
	s.mu.Lock()
	now := s.now
	s.mu.Unlock()
	if now.TextDocument == nil {
		return "(@selection: the user's editor shows no document, so nothing is selected.)"
	}
	name := place(now.TextDocument.URI)
	if rel, err := filepath.Rel(cwd, name); err == nil && filepath.IsLocal(rel) {
		name = rel
	}
	if len(now.Selections) == 0 {
		return fmt.Sprintf("(@selection: the user has %s open; nothing is selected.)", name)
	}
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
			from, to := editors.PositionOffset(whole, r.Start), editors.PositionOffset(whole, r.End)
			text = whole[min(from, to):max(from, to)]
		case i == 0:
			text = now.Text
		}
		if left := maxSelection - b.Len(); len(text) > left {
			text, cut = strings.ToValidUTF8(text[:max(left, 0)], ""), true
		}
		b.WriteString(selectionText(name, r, text, cut))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

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

// document is a text as this editor shows it, else as it is on the disk.
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
