package terminal

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// paste puts pasted text into the prompt. A question that takes a key is never answered by it.
func (m *composing) paste(text string) tea.Cmd {
	m.focus.pasted()
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n") // a terminal sends a carriage return for the end of a line
	// Dropping a file on a terminal pastes its path.
	if m.PictureFile != nil && !strings.Contains(strings.TrimSpace(text), "\n") {
		if f, ok := m.PictureFile(strings.TrimSpace(text)); ok {
			m.attach(f)
			return nil
		}
	}
	if n := strings.Count(strings.TrimRight(text, "\n"), "\n") + 1; !m.focus.typing() && (n > foldLines || len(text) > foldBytes) {
		mark := fmt.Sprintf("[paste %d: %s]", len(m.folded)+1, textutil.Plural(n, "line"))
		m.folded = append(m.folded, fold{mark, text})
		text = mark
	}
	m.text.InsertString(text)
	m.history.leave()
	return m.complete()
}

// unfolded is a text with the pastes in place of their marks. A mark that was edited is not a mark any more, and stays
// as text.
func (m *composing) unfolded(text string) string {
	for _, f := range m.folded {
		text = strings.ReplaceAll(text, f.mark, f.text)
	}
	return text
}

// attach adds a picture to the prompt.
func (m *composing) attach(f provider.File) {
	m.pictures = append(m.pictures, f)
	m.text.InsertString(pictureMark(len(m.pictures)-1, f) + " ")
}

// pictureMark stands for a picture in the prompt, and stays in its text, so that the model knows which picture a sentence means.
func pictureMark(i int, f provider.File) string { return fmt.Sprintf("[picture %d: %s]", i+1, f.Name) }
