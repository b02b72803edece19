package replace

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// refusedAs is the kind of the refusal, "" for none.
func refusedAs(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// Not every abbreviation is a comment, and not every line that begins with dots is one.
func TestAbbreviationsWithoutAComment(t *testing.T) {
	file := "f(\n  one,\n  two,\n  three,\n  four\n)\n"
	for line, kind := range map[string]string{
		"... existing code ...":      Conflict,
		"...(rest of the arguments)": Conflict,
		"...rest":                    "",
		"...previous,":               "",
		"... other, ...more,":        "",
	} {
		r, err := Apply(file, "  one,\n  two,\n  three,\n", "  1,\n  "+line+"\n", false)
		if refusedAs(err) != kind || kind == "" && r.Text != "f(\n  1,\n  "+line+"\n  four\n)\n" {
			t.Errorf("%s: %q, %v", line, r.Text, err)
		}
	}
}

// Typographic quotes are the model's own only where the file has a quoted line without them, and none of them among the lines that it quotes.
func TestTypographyThatIsMeant(t *testing.T) {
	for _, c := range [][4]string{
		{"say(\"a\")\nsay(“b”)\nend()\n", "say(“a”)\nsay(“b”)\nend()", "say(“a”)\nsay(“b”)\nsay(“c”)\nend()", "say(\"a\")\nsay(“b”)\nsay(“c”)\nend()\n"},
		{"say(\"a\")\nsay(‘b’)\nend()\n", "say(“a”)\nsay(‘b’)\nend()", "say(“a”)\nsay(‘b’)\nsay(‘c’)\nend()", "say(\"a\")\nsay(‘b’)\nsay(‘c’)\nend()\n"},
		{"first(1)\nsay(\"a\")\nprint(x, y)\nlast(2)\nmore(3)\n", "first(1)\nsay(\"a\")\nprint(x, “y”)\nlast(2)\nmore(3)", "first(1)\nsay(\"a\")\nprint(x, “y”)\nsay(“c”)\nlast(2)\nmore(3)",
			"first(1)\nsay(\"a\")\nprint(x, y)\nsay(“c”)\nlast(2)\nmore(3)\n"},
	} {
		if r, err := Apply(c[0], c[1], c[2], false); err != nil || r.Text != c[3] {
			t.Errorf("%q, %v; want %q", r.Text, err, c[3])
		}
	}
}

// Lines without a word, as under headings or around comments, are refused like others where they are not as quoted.
func TestSimilarBlocksOfRules(t *testing.T) {
	minus, equal, star := strings.Repeat("-", 20), strings.Repeat("=", 20), strings.Repeat("*", 20)
	file := "a\n" + minus + "\n" + equal + "\n" + star + "\nb\n"
	if r, err := Apply(file, minus+"\n"+equal+"\n!!\n"+star, minus+"\n"+equal+"\n##\n"+star, false); err == nil {
		t.Errorf("%q", r.Text)
	}
}

// A file that shows its unit once, if at all, does not tell whether new lines are steps in another unit or meant as they are.
func TestOneStepProvesNoUnit(t *testing.T) {
	if r, err := Apply(" k\n {\n }\n x = y + z\n", "    x = y + z", "    x = y\n        + z", false); refusedAs(err) != Conflict {
		t.Errorf("%q, %v", r.Text, err)
	}
}

// Quoted without its indentation, a first line that comes back at the file's depth is the file's; what is removed beside it proves nothing.
func TestLastBracketTakesThePlaceOfSome(t *testing.T) {
	r, err := Apply("f {\n\tg {\n\t}\n\tx = 1\n}\n", "} \n\tx = 1 \n}", "\t}", false)
	if want := "f {\n\tg {\n\t}\n"; err != nil || r.Text != want {
		t.Errorf("%q, %v", r.Text, err)
	}
}

// Quoted at the margin, the new lines' own steps are levels of the file, tabs or spaces, and the two are never mixed.
func TestStepsOfLinesQuotedAtTheMargin(t *testing.T) {
	block := func(step string) string { return "a\nif k {\n" + step + "z\n}\nb" }
	for width := 1; width <= 9; width++ {
		in := strings.Repeat(" ", width)
		r, err := Apply("{\n\ta\n\tb\n}\n", "a\nb", block(in), false)
		switch width {
		case 2, 3, 4, 8:
			if want := "{\n\ta\n\tif k {\n\t\tz\n\t}\n\tb\n}\n"; err != nil || r.Text != want {
				t.Errorf("steps of %d: %q, %v", width, r.Text, err)
			}
		default: // who knows how many levels that is
			if refusedAs(err) != Conflict {
				t.Errorf("steps of %d: %q, %v", width, r.Text, err)
			}
		}
		file := "{\n" + in + "a\n" + in + "if k {\n" + in + in + "b\n" + in + "}\n}\n"
		r, err = Apply(file, "a\nif k {", "a\nif k {\n\tz", false)
		if want := strings.Replace(file, "{\n"+in+in, "{\n"+in+in+"z\n"+in+in, 1); width <= 4 && (err != nil || r.Text != want) {
			t.Errorf("a tab for %d spaces: %q, %v", width, r.Text, err)
		}
		// How deep a level is, this file does not show.
		if r, err = Apply("{\n"+in+"a\n"+in+"b\n}\n", "a\nb", block("\t"), false); err == nil && strings.Contains(r.Text, "\t") {
			t.Errorf("a tab behind %d spaces: %q", width, r.Text)
		}
	}
}

// New lines that begin with numbers in a row are refused, although nothing quoted comes back in them.
func TestNumbersInARowBeforeNewLines(t *testing.T) {
	_, err := Apply("a()\nbody()\nc()\n", "a()\nbody()\n", "12: load(path)\n13: check(sum)\n14: store(key)\n", false)
	if refusedAs(err) != Conflict || !strings.Contains(err.Error(), "line numbers") {
		t.Error(err)
	}
	if r, err := Apply("a()\nbody()\nc()\n", "a()\nbody()\n", "12: load(path)\n14: check(sum)\n18: store(key)\n", false); err != nil {
		t.Errorf("keys of a table: %q, %v", r.Text, err)
	}
}

// A comment is no literal, although it begins with a slash and ends with one.
func TestBlanksInComments(t *testing.T) {
	file := "\t/* the  cache   is  full */\n\tdrop()\n"
	r, err := Apply(file, "/* the cache is full */\ndrop()", "/* the cache is full */\ndrop(all)", false)
	if want := "\t/* the  cache   is  full */\n\tdrop(all)\n"; err != nil || r.Text != want {
		t.Errorf("%q, %v", r.Text, err)
	}
}

// A literal ends on its line, so a quote that is alone on the line before begins none.
func TestLiteralsBehindALoneQuote(t *testing.T) {
	if got, ok := mergeWords("5\"\n\"a b\"\n\"5", "5\"\n\"a  b\"\n\"5", "5\"\n\"a c\"\n\"5"); ok {
		t.Errorf("blanks of a literal that both changed: %q", got)
	}
}

// A last line quoted in part takes new lines before it where the change leaves it as quoted, and not where it would take the rest along.
func TestNewLinesBeforeALinePartlyQuoted(t *testing.T) {
	file := "if foo(a) {\n\tbar(x, y) // z\n}\n"
	r, err := Apply(file, "if foo(a) {\n\tbar(x, y)  ", "if foo(b) {\n\tadded()\n\tbar(x, y)", false)
	if want := "if foo(b) {\n\tadded()\n\tbar(x, y) // z\n}\n"; err != nil || r.Text != want {
		t.Errorf("%q, %v", r.Text, err)
	}
	if r, err = Apply(file, "if foo(a) {\n\tbar(x, y)  ", "if foo(b) {\n\tbar(x, y)\n\tadded()", false); refusedAs(err) != Conflict {
		t.Errorf("the comment behind another line: %q, %v", r.Text, err)
	}
}

// Below a line that opens no block nothing says how deep the next one is: new lines there are not moved.
func TestReindentBelowALineThatOpensNoBlock(t *testing.T) {
	lines := []string{"foo", "  baz", "  if x {", "    y", "  }"}
	if got, ok := Reindent(nil, []string{"foo", "      bar"}, lines, false); !ok || !slices.Equal(got, lines) {
		t.Errorf("%q, %t", got, ok)
	}
	if got, ok := Reindent(nil, []string{"foo {", "      bar"}, append([]string{"foo {"}, lines[1:]...), false); !ok || got[1] != "      baz" {
		t.Errorf("below one that does: %q, %t", got, ok)
	}
}
