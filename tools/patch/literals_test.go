package patch

import (
	"strings"
	"testing"
)

// A hunk that a similar block was found for rewrites no line of a literal of several lines that has other blanks than it quotes: blanks are text
// there. The file's name tells the language.
func TestBlanksInLiteralsOfAFile(t *testing.T) {
	file := "begin of it\necho 'one of the words\n  two  more of them\n  the last ones'\nadded since\nend of it all\n"
	text := "*** Begin Patch\n*** Update File: f.sh\n@@\n begin of it\n echo 'one of the words\n-  two more of them\n   the last ones'\n end of it all\n*** End Patch"
	for known, want := range map[bool]string{true: "", false: strings.Replace(file, "  two  more of them\n", "", 1)} {
		p, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if known {
			p.Literals = func(path, text string) ([][2]int, bool) {
				if path != "f.sh" || text+"\n" != file {
					t.Errorf("asked for %s: %q", path, text)
				}
				return [][2]int{{strings.Index(text, "'"), strings.LastIndex(text, "'")}}, true
			}
		}
		changes, err := p.Apply(func(string) (string, bool, error) { return file, true, nil })
		got := ""
		if err == nil {
			got = changes[0].New
		}
		if got != want {
			t.Errorf("known %v: %q, %v", known, got, err)
		}
	}
}
