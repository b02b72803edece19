package symbol

import (
	"fmt"
	"strings"
)

// Revision is a text before and after a change. Old is empty for a new file.
type Revision struct {
	Path     string // its name tells the language; it is not opened
	Name     string // what a person calls it
	Old, New string
}

// maxParsed is how much Syntax parses of all texts together, in bytes.
const maxParsed = 4 << 20

// Syntax says in a sentence what parsing alone tells about changed texts: a word for the time until a language server has answered. It is
// "" when it tells nothing. A text that had a syntax error before the change is not judged.
func Syntax(texts []Revision) string {
	var broken []string
	parsed, left := 0, maxParsed
	for _, t := range texts {
		if left -= len(t.New); left < 0 {
			break
		}
		line, breaks, clean := breaks(t.Path, t.Old, t.New)
		if breaks {
			broken = append(broken, fmt.Sprintf("%s (at or before line %d)", t.Name, line))
		}
		// A longer text that broke is said, but one that did not is most often not parsed as a whole.
		if clean && len(t.New) <= longText {
			parsed++
		}
	}
	switch {
	case len(broken) > 0:
		return "parsing alone finds a syntax error that this change introduces in " + strings.Join(broken, " and in ")
	case parsed == 0:
		return ""
	case parsed == len(texts):
		return "parsing alone finds no syntax error"
	}
	return fmt.Sprintf("parsing alone finds no syntax error in %d of %d files", parsed, len(texts))
}
