package replace

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// What a refusal says, and which lines it names.
func TestRefusals(t *testing.T) {
	fifty := strings.Repeat("k()\n", 50)
	for _, c := range []struct {
		name, text, old, new string
		kind                 string
		lines                []int
		say                  []string
	}{
		{"identical", "a", "a", "a", Identical, nil, []string{"identical", "newString"}},
		{"empty", "a", "", "b", EmptyOld, nil, []string{"empty", "use write"}},
		{"exactly in three places", "k\nx\nk\nk\n", "k", "j", Multiple, []int{1, 3, 4}, []string{"matches 3 places (lines 1, 3, 4)", "provide more surrounding lines", "set replaceAll"}},
		{"twice in one line", "k k\n", "k", "j", Multiple, []int{1}, []string{"matches 2 places (line 1)"}},
		{"loosely in two places", "  k()\n\tk()\n", "    k()", "j()", Multiple, []int{1, 2}, []string{"nowhere exactly", "line_trimmed, lines 1, 2", "indentation"}},
		{"in very many places", fifty, "k()", "j()", Multiple, nil, []string{"50 places", "19, 20, …)"}},
		{"near miss", "package a\n\nfunc f() {\n\tprintln(\"hello\")\n}\n", "func f() {\n\tprintln(\"hullo, world\")\n\treturn\n", "x", NotFound, []int{3},
			[]string{"closest match at lines 3–5", `differs in line 4: the file has "println(\"hello\")", oldString has "println(\"hullo, world\")"`}},
		{"one line, nearly", "alpha beta gamma\ndelta\n", "alpha beta gamna delta", "x", NotFound, []int{1}, []string{"closest match at line 1", "gamna"}},
		{"what looks the same", "the caf\u0065\u0301 around the corner\n", "the caf\u00e9 around the corner", "x", NotFound, []int{1}, []string{"(where they differ U+0065 U+0301 and U+00E9)"}},
		{"another alphabet", "const n\u0430me = 1\n", "const name = 1", "x", NotFound, []int{1}, []string{"(where they differ U+0430 and U+0061)"}},
		{"case", "Alpha Beta\n", "alpha beta", "x", NotFound, []int{1}, []string{`the file has "Alpha Beta"`}},
		{"file ends first", "the first line\nthe second line\n", "the first line\nthe second line\nthe third line", "x", Conflict, []int{1}, []string{"lines 1–2", "The file has there:\nthe first line\nthe second line\n", "Quote the lines"}},
		{"nothing like it", "a\nb\n", "something quite different", "x", NotFound, nil, []string{"nor anything close", "read the file again"}},
		{"line numbers quoted", "a\nb\n", "1: a\n2: c", "x", NotFound, nil, []string{"line numbers", "leave them out"}},
		{"oversize", "a\nb\nc\nd\n", "a\\nb\\nc\\nd", "X", Oversize, []int{1}, []string{"lines 1–4", "much larger", "quote all of them"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Apply(c.text, c.old, c.new, false)
			var e *Error
			if !errors.As(err, &e) || e.Kind != c.kind {
				t.Fatalf("%v", err)
			}
			if c.lines != nil && !slices.Equal(e.Lines, c.lines) {
				t.Errorf("lines %v, want %v", e.Lines, c.lines)
			}
			for _, s := range c.say {
				if !strings.Contains(e.Error(), s) {
					t.Errorf("%q does not say %q", e.Message, s)
				}
			}
		})
	}
}

func TestResultTellsWhatWasDone(t *testing.T) {
	r, err := Apply("a\r\n\tk( x)\r\nb\r\n\tk( x)\r\n  k( x)\r\n", "k( x) ", "one()\ntwo()", true)
	if err != nil {
		t.Fatal(err)
	}
	want := Result{
		Text:     "a\r\n\tone()\r\n\ttwo()\r\nb\r\n\tone()\r\n\ttwo()\r\n  one()\r\n  two()\r\n",
		Stage:    "line_trimmed",
		Spans:    []Span{{3, 9, 2, 2}, {14, 20, 4, 4}, {22, 29, 5, 5}},
		Inside:   []Span{{3, 17, 2, 3}, {22, 36, 5, 6}, {38, 54, 7, 8}},
		Replaced: "\tk( x)",
		Written:  "\tone()\n\ttwo()",
	}
	if fmt.Sprint(r) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v", r, want)
	}
	r, err = Apply("a\nb\nc\n", "b\n", "", false)
	if err != nil || r.Replaced != "" || r.Written != "" || r.Spans[0] != (Span{2, 4, 2, 2}) || r.Inside[0] != (Span{2, 2, 2, 2}) {
		t.Errorf("%+v %v", r, err)
	}
}

// A short old in a large file times a long new would fill the memory.
func TestAllIsNotABomb(t *testing.T) {
	_, err := Apply(strings.Repeat("a\n", 100_000), "a", strings.Repeat("b", 100_000), true)
	var e *Error
	if !errors.As(err, &e) || e.Kind != Oversize || !strings.Contains(e.Message, "100000 places") {
		t.Fatal(err)
	}
}

// Where the budget ends, the answer is a refusal that says so, not a guess.
func TestBudget(t *testing.T) {
	var text, quoted strings.Builder
	for i := range 1990 {
		fmt.Fprintf(&text, "line number %d of the text\n", i)
		fmt.Fprintf(&quoted, "line number %d of the text\n", i+i%2*5000)
	}
	_, err := Apply(text.String(), quoted.String(), "x", false)
	var e *Error
	if !errors.As(err, &e) || e.Kind != NotFound || !strings.Contains(e.Message, "too much text") {
		t.Fatal(err)
	}
}

func TestReindent(t *testing.T) {
	for _, c := range []struct{ name, old, have, new, want string }{
		{"the same", "  a\n b", "  a\n b", "x\n y", "x\n y"},
		{"a prefix more", "a\n  b", "\ta\n\t  b", "a\n\n    c", "\ta\n\n\t    c"},
		{"a prefix less", "    a\n      b", "  a\n    b", "    x\n        y\nz", "  x\n      y\nz"},
		{"tabs for spaces at a depth of one", "    a", "\ta", "    x\n        y", "\tx\n\t\ty"},
		{"tabs for spaces, quoted at another depth", "    a", "\t\ta", "    x\n        y\nz", "\t\tx\n\t\t\ty\n\tz"},
		{"spaces for tabs, quoted at another depth", "\ta", "        a", "\tx\n\t\ty", "        x\n            y"},
		{"two spaces for a tab", "\ta", "  a", "\tx\n\t\ty", "  x\n    y"},
		{"tabs for spaces from another base", "a\n    b", "\ta\n\t\tb", "x\n    y\n        z", "\tx\n\t\ty\n\t\t\tz"},
		{"alignment that is no full tab", "    a\n        b", "\ta\n\t\tb", "    x\n          y", "\tx\n\t\t  y"},
		{"only the first line", "a\n\tb\n\tc", "\ta\n\tb\n\tc", "x\n\ty\nz", "\tx\n\ty\nz"},
		{"only the first line, the rest in tabs", "a\n        b\n    c", "\ta\n\t\tb\n\tc", "x\n        y\n    z", "\tx\n\t\ty\n\tz"},
		{"no rule: as the lines quoted alike", "a\n  b\n    c\n      d", "\t\ta\n b\n\tc\nd", "x\n    y\n  z", "\t\tx\n\ty\n z"},
		{"quoted flat: what stays stands where it stood", "if x {\ny()\n}\nz()", "\tif x {\n\t\ty()\n\t}\n\tz()", "if x {\ny()\nq()\n}\nz(1)", "\tif x {\n\t\ty()\n\t\tq()\n\t}\n\tz(1)"},
		{"quoted flat: a changed line where the old one stood", "if x {\ny()\n}", "\tif x {\n\t\ty()\n\t}", "if x {\nz()\n}", "\tif x {\n\t\tz()\n\t}"},
		{"quoted flat: a deeper one stays deeper", "if x {\ny()\n}", "  if x {\n    y()\n  }", "if x {\nfor {\n  z()\n}\n}", "  if x {\n    for {\n      z()\n    }\n  }"},
		{"a line that says another thing", "a\n  q\nc", "  a\n  b\n  c", "x\n  y", "<conflict>"},
		{"deep by chance or at the file's depth, and no line is in both", "a\nb", "  a\n  b", "  x\n    y", "<conflict>"},
		{"blank lines", "a\n\nb", "\ta\n\n\tb", "a\n\n\t\nb", "\ta\n\n\t\n\tb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := "<conflict>"
			if lines, ok := Merge(strings.Split(c.old, "\n"), strings.Split(c.have, "\n"), strings.Split(c.new, "\n")); ok {
				var texts []string
				for _, l := range lines {
					texts = append(texts, l.Text)
				}
				got = strings.Join(texts, "\n")
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// indentation_flexible proposes what is equal without the common indentation, closest first.
func TestIndentationFlexible(t *testing.T) {
	q := newQuery("\tif x\n\t\ty\nif x\n    y\n  if x\n      y\n", "if x\n    y")
	if got := indentationFlexible(q); len(got) != 1 || got[0].line != 2 {
		t.Errorf("exactly as quoted: %+v", got)
	}
	q = newQuery("\tif x\n\t\ty\n  if x\n      y\n", "if x\n    y")
	if got := indentationFlexible(q); len(got) != 1 || got[0].line != 2 {
		t.Errorf("shifted: %+v", got)
	}
}

func TestDistance(t *testing.T) {
	parts := []string{"", "a", "abc", "é", "日本", "\xff", "\xfe", "aaaa", "bbbb", strings.Repeat("xyz", 30), "q", strings.Repeat("é", 70)}
	for i := range parts {
		for j := range parts {
			for k := range parts {
				a, b := parts[i]+parts[j]+parts[k], parts[k]+parts[i]+"b"
				if got, want := distance(a, b), slowDistance(runes(a), runes(b)); got != want {
					t.Fatalf("%q %q: %d, want %d", a, b, got, want)
				}
			}
		}
	}
}

// Inputs that make a naive cascade quadratic or worse take time in proportion to their length: eight times the text, at most thirty times as
// long with other caches, where a quadratic form takes 64 times. Less than a twentieth of a second is too short to tell.
func TestBoundedTime(t *testing.T) {
	cost := func(name string, size int) time.Duration {
		c := hard(func(s string) string { return strings.Repeat(s, size/len(s)) })[name]
		least := time.Hour
		for range 3 {
			start := cpuTime()
			_, _ = Apply(c[0], c[1], "new", false)
			if least = min(least, cpuTime()-start); least > 2*time.Second {
				break // long enough to tell
			}
		}
		return least
	}
	for name := range hard(func(s string) string { return s }) {
		t.Run(name, func(t *testing.T) {
			short, long := cost(name, 1<<17), cost(name, 1<<20)
			if long > 50*time.Millisecond && long > 30*max(short, 10*time.Millisecond) {
				t.Errorf("128 KB: %v, 1 MB: %v", short, long)
			}
		})
	}
}

// hard are texts of as much as fill gives and quotations that cost the stages most.
func hard(fill func(string) string) map[string][2]string {
	return map[string][2]string{
		"equal lines, long quotation":      {fill("a\n"), strings.Repeat("a\n", 50_000) + "b"},
		"empty lines":                      {fill("\n"), strings.Repeat(" \n", 20_000) + "b"},
		"anchors everywhere":               {fill("{\nx y z\n}\n"), "{\nqqqqqqqq\n}"},
		"anchors around long lines":        {fill("{\n" + strings.Repeat("abcdefgh", 500) + "\n}\n"), "{\n" + strings.Repeat("hgfedcba", 500) + "\n}"},
		"two huge lines":                   {"{\n" + fill("ab") + "\n}\n", "{\n" + fill("ba")[1:] + "\n}"},
		"many words in one line":           {fill("a "), strings.Repeat("a  ", 50_000) + "b"},
		"many overlapping matches in line": {fill("a "), strings.Repeat("a  ", 1000)},
		"reflowed":                         {fill("a b\n"), strings.Repeat("a\nb ", 30_000) + "c"},
		"backslashes":                      {fill("\\\\n\\t\n"), strings.Repeat("\\\\n\\t\n", 30_000) + "z"},
		"boundaries":                       {fill("ab"), "  " + strings.Repeat("ab", 1000) + "  "},
		"nested blocks":                    {fill("a\n") + fill("b\n"), "a\n" + strings.Repeat("q\n", 1000) + "b"},
		"no match at all":                  {fill("some words on a line 0123\n"), "something else on a line 4567\nand more"},
		"context":                          {fill("s\nx1\nx2\ne\n"), "s\nx1\nqq\ne"},
		"white space":                      {fill(" \t"), "\u00a0x"},
		"quotes that nothing closes":       {fill("\\\" "), "\\\"  x"},
		"strings in one line":              {fill(`\\n\\t\\"`), `\\n\\q`},
		"one string beside another":        {fill(`f('a b', "c d") `), `f('a b',  "c d")`},
		"literals of several lines":        {fill("x = `a  b\n'` '`;\n") + "end  of it\n", "end of it"},
		"marks of long literals":           {fill("x << a, \"\"\" `${ } r#\" R\"q(\na\n") + "end  of it\n", "end of it"},
		"templates in templates":           {fill("`${") + "\nend  of it\n", "end of it"},
		"divisions in one line":            {fill("a / b "), "a  /  b /  c"},
		"one letter off in long lines":     {fill(strings.Repeat("x", 20_000) + "\n"), "x\n" + strings.Repeat("x", 20_000) + "y\nx"},
		"deep indentation":                 {fill(strings.Repeat("\t", 200) + "x\n"), "\tx\n\t\ty\n"},
		"indented differently":             {fill("  k()\n\tk()\n"), "    k()"},
	}
}

func bench(b *testing.B, text, old string) {
	b.ReportAllocs()
	for b.Loop() {
		_, _ = Apply(text, old, "new", false)
	}
}

// older is a file of so many lines in which a block stands once that was quoted in an older state.
func older(lines int) (text, old, new string) {
	var s strings.Builder
	for i := range lines {
		if i == lines/2 {
			s.WriteString("func target() {\n\tkept one\n\tkept two\n\tadded since\n\tadded too\n\tchanged\n}\n")
		}
		fmt.Fprintf(&s, "func f%d(a int) { return a + %d } // of many\n", i, i)
	}
	return s.String(), "func target() {\n\tkept one\n\tkept two\n\tchanged\n}", "func target() {\n\tkept one\n\tkept two\n\tnew\n}"
}

func TestOlderStateIsMerged(t *testing.T) {
	text, old, new := older(1000)
	r, err := Apply(text, old, new, false)
	if err != nil || r.Stage != "similar_block" || r.Text != strings.Replace(text, "\tchanged\n", "\tnew\n", 1) {
		t.Fatalf("%s %v", r.Stage, err)
	}
}

// A block found loosely must explain the quotation clearly better than every other one: else the quoted one may be that other, edited
// since. Each case has been a wrong text.
func TestTwoBlocksExplainTheQuotation(t *testing.T) {
	for name, c := range map[string]struct{ text, old, new string }{
		"one quoted line of two stands here, the other there beside a line like it": {
			"interface A {\n  schema?: string;\n\n  /** where it is sought */\n  path?: string;\n\n}\n\ninterface B {\n  schema2?: string;\n}\n",
			"  schema?: string;\n}", "  schema?: string;\n\n  other?: number;\n}"},
		"a twin with a blank line more, and one with a line less": {
			"func a() {\n\tstart(func() bool {\n\t\treturn false\n\t}, stop)\n\tduration := since(start)\n\n\t// It should return immediately.\n\tif duration > limit {\n\t}\n}\n\n" +
				"func b() {\n\tstart(func() bool {\n\t\treturn false\n\t}, stop)\n\tduration := since(start)\n\tif duration > limit {\n\t}\n}\n",
			"\tstart(func() bool {\n\t\treturn false\n\t}, stop)\n\tduration := since(start)\n\t// It should return immediately.\n",
			"\tstart(func() bool {\n\t\treturn false\n\t})\n\tduration := since(start)\n\t// It should return immediately.\n"},
		"what is added begins like what it stands behind, which is reworded": {
			"rules:\n  - path: one/selection.go\n    text: \"G404.Get\"\n    linters:\n      - gosec\n  - path: another/file.go\n",
			"  - path: one/selection.go\n    text: \"G404\"\n    linters:\n      - gosec",
			"  - path: one/selection.go\n    text: \"G404\"\n    linters:\n      - gosec\n  - path: two/streaming.go\n    text: \"G404\"\n    linters:\n      - gosec"},
	} {
		if r, err := Apply(c.text, c.old, c.new, false); err == nil {
			t.Errorf("%s: by %s\n%s", name, r.Stage, r.Text)
		}
	}
}

// A bracket of another block does not say how deep new lines belong.
func TestABracketAtAnotherDepthIsNoEvidence(t *testing.T) {
	text := "\tparse() {\n\t\tfor (x) {\n\t\t\tconst snippet = include(name);\n\t\t\tconst code = chunks[name];\n\n\t\t\tthis.replace(snippet, code);\n\n\n\t}\n"
	old := "\t\t\tconst snippet = include(name);\n\t\t\tconst code = chunks[name];\n\n\t\t\tthis.replace(snippet, code);\n\n\t\t}\n"
	r, err := Apply(text, old, strings.Replace(old, "\t\t\tthis.replace(snippet, code);", "\t\treturn code;", 1), false)
	if want := strings.Replace(text, "\t\t\tthis.replace(snippet, code);", "\t\treturn code;", 1); err == nil && r.Text != want {
		t.Errorf("%q", r.Text)
	}
}

// Words at the margin are not evidence either: tabs and spaces are told apart by the bracket alone.
func TestABracketTellsTabsWhereWordsStandAtTheMargin(t *testing.T) {
	text := "Styles: yes\nLen: 770917\n`)\n\n\t}\n\n}\n"
	old := "Styles: yes\nLen: 770917\n`)\n\n    }\n\n}"
	new := strings.Replace(old, "`)\n\n", "`)\n\n        if never {\n            log()\n        }\n", 1)
	r, err := Apply(text, old, new, false)
	if want := strings.Replace(text, "`)\n\n", "`)\n\n\t\tif never {\n\t\t\tlog()\n\t\t}\n", 1); err == nil && r.Text != want {
		t.Errorf("%q", r.Text)
	}
}

func BenchmarkSimilarBlock10000Lines(b *testing.B) {
	text, old, new := older(10_000)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = Apply(text, old, new, false)
	}
}

func BenchmarkHardMegabyte(b *testing.B) {
	for name, c := range hard(func(s string) string { return strings.Repeat(s, 1<<20/len(s)) }) {
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) { bench(b, c[0], c[1]) })
	}
}
