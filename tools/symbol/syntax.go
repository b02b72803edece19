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

// What Syntax parses, in bytes: of one text only to say that it has no error (about 4 ms), and of all of them.
const (
	maxQuickParse = 64 << 10
	maxParsed     = 4 << 20
)

// Syntax says in a sentence what parsing alone tells about changed texts: a word for the time until a language server has answered. It is
// "" when it tells nothing. A text that had a syntax error before the change is not judged.
func Syntax(texts []Revision) string {
	var broken []string
	left := maxParsed
	for _, t := range texts {
		if left -= len(t.New); left < 0 {
			break
		}
		if line, breaks := Breaks(t.Path, t.Old, t.New); breaks {
			broken = append(broken, fmt.Sprintf("%s (at or before line %d)", t.Name, line))
		}
	}
	if len(broken) > 0 {
		return "parsing alone finds a syntax error that this change introduces in " + strings.Join(broken, " and in ")
	}
	parsed := 0
	left = maxParsed
	for _, t := range texts {
		if left -= len(t.New); left < 0 || len(t.New) > maxQuickParse {
			continue
		}
		if bad, ok := Broken(t.Path, t.New); ok && !bad {
			parsed++
		}
	}
	switch parsed {
	case 0:
		return ""
	case len(texts):
		return "parsing alone finds no syntax error"
	}
	return fmt.Sprintf("parsing alone finds no syntax error in %d of %d files", parsed, len(texts))
}
