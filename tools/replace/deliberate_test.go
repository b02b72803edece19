package replace

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the table of docs/opencode.md")

// deliberate explains where the two columns of cascade differ, for the page: in which edits, what OpenCode does, what happens here, and
// the cases of cascade that show it. The first is the example on the page.
var deliberate = []struct {
	edit, openCode, here string
	cases                []string
}{
	{"a line of the file that oldString leaves out", "not found, or replaced with the block", "stays",
		[]string{"a line that was not quoted stays", "a parameter that was not quoted stays", "a line that the file has already is not added twice"}},
	{"a new line beside a line that oldString leaves out", "replaced with the block", "refused",
		[]string{"what is added beside a line that was not quoted"}},
	{"a similar block whose changed lines are not as quoted", "replaced whole", "refused",
		[]string{"block anchor, middle misquoted", "escaped in the file too"}},
	{"a block that begins and ends as quoted, with nothing long enough between to know it by", "replaced whole", "refused",
		[]string{"block anchor, one line more in the file", "block anchor, one line less in the file", "block anchor, two lines with a newline", "block anchor, exactly 0.65",
			"block anchor, code points", "block anchor, indentation", "block anchor, swallows a long line", "context, half of the middle"}},
	{"several similar blocks", "the most similar, or the first", "refused",
		[]string{"block anchor, tie", "block anchor, best of two", "context, best of two", "context, two as good"}},
	{"a quoted line that the block lacks is in another block", "the block is replaced", "refused",
		[]string{"block anchor, a telling line stands in another block"}},
	{"two exact matches", "a looser stage may choose one", "refused", []string{"exact twice, one deeper"}},
	{"several loose matches, one at the quoted indentation", "the first whose text is unique", "that one", []string{"line trimmed, two places, one at the very indentation"}},
	{"several loose matches", "the first whose text is unique", "refused", []string{"line trimmed, two places, different indentation", "white space, twice in a line"}},
	{"oldString is only white space", "inserted at empty lines", "refused",
		[]string{"white space only, empty file", "white space only, blank lines", "white space only, blank lines, all"}},
	{"oldString and newString differ only in CR", "lines are written", "refused", []string{"identical but for CR"}},
	{"oldString and newString escaped once too often", "newString is written escaped", "newString is unescaped too", []string{"escaped quotes"}},
	{"typographic quotes and dashes in the file", "not found", "found; the file keeps its own", []string{"typographic quotes in a line", "typography that the change makes, and one that it does not", "typographic dash inside a line"}},
	{"lines quoted at another indentation", "newString is written as quoted", "newString gets the file's indentation",
		[]string{"indentation lacks", "indentation too deep", "spaces for tabs", "tabs for spaces", "four for two", "flat quotation of two lines", "first line without indentation, blank at the end",
			"new deeper than quoted", "blank line in new stays empty", "line trimmed, all", "white space, one line"}},
	{"replaceAll, and the lines are at several indentations", "only those with the text of the first", "all, each at its own", []string{"line trimmed, all, each at its indentation"}},
	{"lines quoted without indentation, and newString, which keeps none of them, as deep as the file", "newString is written as quoted", "refused",
		[]string{"new already at the file's indentation"}},
	{"other white space inside lines than quoted", "as in newString", "the file's own, where newString does not change it", []string{"white space, inside a line", "white space, tab for blank"}},
	{"line numbers copied along in every line", "not found", "removed, where the rest is in the file exactly", []string{"line numbers"}},
	{"blanks around oldString that the file does not have", "written into the file", "left out where newString has them too", []string{"boundary, blanks shared with new"}},
	{"oldString begins or ends with a line break and newString does not", "the new text is glued to the next line", "refused",
		[]string{"line break at the beginning, not in new", "line break at the end, not in new"}},
	{"oldString without its line's indentation, which comes back below new lines", "only the first line is indented", "all lines get the file's indentation",
		[]string{"without the indentation, comes back below a new line"}},
	{"oldString begins or ends with a line break, found inside a line", "replaced there", "refused", []string{"boundary, newlines around", "boundary, newlines shared with new"}},
	{"oldString of several lines begins with indentation, found inside a line", "replaced there", "refused", []string{"boundary, two lines inside"}},
	{"oldString found inside a longer word", "replaced", "refused", []string{"boundary, within a word", "white space, not within a word"}},
	{"replaceAll, and one of the places is inside a longer word", "replaced too", "that place is left",
		[]string{"boundary, once within a word, once not, all", "boundary, overlapping the end of a word, all"}},
	{"oldString ends in a newline, the lines match loosely", "one newline too many", "the file's own newline, or none",
		[]string{"final newline quoted, blank at a line's end", "final newline quoted, file has none", "final newline quoted, nothing new", "final newline quoted, nothing new, file has none",
			"final newline quoted, nothing new, neighbours, all", "CRLF, final newline quoted"}},
	{"whole lines of a CRLF file", "the last CR is lost", "kept", []string{"CRLF, whole lines in the middle", "CRLF, line trimmed keeps the CR"}},
	{"the file has newString already", "written a second time", "refused", []string{"made already, a line added", "made already, within a line", "made already, quoted loosely", "made already, lines put into a block"}},
	{"newString has a comment for lines that it does not repeat", "they are removed", "refused", []string{"new text abbreviated", "new text abbreviated with dots", "new text abbreviated, of lines that are alike", "dots for one line, beside another change"}},
	{"line numbers in newString only", "written", "refused", []string{"numbers in the new text only"}},
	{"typographic characters in all of both texts, ASCII in the file", "not found, or written", "newString is written in ASCII", []string{"typographic quotes in new lines too", "three dots as one character in new lines only", "a quote in new lines only, three dots as one character in the quotation", "a dash in new lines only", "no-break spaces in new lines too"}},
	{"mixed line endings", "new lines are CRLF", "unchanged lines keep theirs, new ones follow the lines they replace", []string{"mixed, LF lines"}},
	{"the same lines once in CRLF, once in LF", "those in CRLF", "refused", []string{"mixed, the same text with either ending"}},
}

const differencesBegin, differencesEnd = "<!-- generated: go test ./tools/replace -run TestDifferences -update -->\n", "<!-- end -->\n"

// Every difference from OpenCode is explained on the page, and what the page says comes out of both programs.
func TestDifferencesArePublished(t *testing.T) {
	byName := map[string]int{}
	for i, c := range cascade {
		byName[c.name] = i
	}
	explained := map[string]bool{}
	var b strings.Builder
	b.WriteString("| edit, multiedit | OpenCode 1.18 | Pillion | for example |\n|---|---|---|---|\n")
	for _, d := range deliberate {
		kinds := map[string]bool{}
		for _, name := range d.cases {
			i, ok := byName[name]
			if !ok || explained[name] {
				t.Fatalf("%q: not in the table, or explained twice", name)
			}
			explained[name] = true
			c := cascade[i]
			text, kind := openCode(c.text, c.old, c.new, c.all)
			theirs := outcome(text, kind)
			_, got := ours(c.text, c.old, c.new, c.all)
			if theirs == got {
				t.Errorf("%q: both give %q", name, got)
			}
			refused := strings.HasPrefix(got, "<")
			if refused != (d.here == "refused") {
				t.Errorf("%q: %q, the page says %q", name, got, d.here)
			}
			if refused {
				kinds["`"+strings.Trim(got, "<>")+"`"] = true
			}
		}
		here := d.here
		if len(kinds) > 0 {
			var names []string
			for _, kind := range []string{Identical, NotFound, Multiple, Oversize, Conflict} {
				if kinds["`"+kind+"`"] {
					names = append(names, "`"+kind+"`")
				}
			}
			here += " (" + strings.Join(names, ", ") + ")"
		}
		c := cascade[byName[d.cases[0]]]
		_, got := ours(c.text, c.old, c.new, c.all)
		shown := func(s string) string {
			if strings.HasPrefix(s, "<") {
				return "refuses"
			}
			return fmt.Sprintf("`%q`", s)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | `%q` → `%q` in `%q`: OpenCode %s, Pillion %s |\n", d.edit, d.openCode, here, c.old, c.new, c.text, shown(c.openCode), shown(got))
	}
	for _, c := range cascade {
		if c.want != same && c.want != c.openCode && !explained[c.name] {
			t.Errorf("%q differs from OpenCode, and deliberate does not say why", c.name)
		}
	}
	const path = "../../docs/opencode.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(page), differencesBegin)
	was, tail, ok2 := strings.Cut(rest, differencesEnd)
	switch {
	case !ok1 || !ok2:
		t.Fatalf("%s has no place for the table", path)
	case was == b.String():
	case *update:
		if err := os.WriteFile(path, []byte(head+differencesBegin+b.String()+differencesEnd+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table in %s is old; run go test ./tools/replace -run TestDifferences -update", path)
	}
}
