package replace

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A line whose literals have other blanks than the quoted ones is another line: it is never removed, replaced or joined with the change, whatever
// else of the quotation is loose. The file has such lines beside each other, as a table of strings or a drawing does.
func TestBlanksInLiteralsAreText(t *testing.T) {
	forms := []string{"\tpadding = tick ? '%s' : '%s|'", "\tdraw(\"_%s_\", \"%s\")", "\tusage := `-v%sverbose%s`", "\tx = re.sub(r'a%sb', f'%s', x)", "\treturn s.replace(/a%sb/, \"%s\")",
		"\tEcho(\"it's\", \"%s\", 'a%sb')", "\ts := \"a \\\"%s\\\" %s\""}
	changed, kept := 0, 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 11))
		form := forms[r.IntN(len(forms))]
		blanks := func() string { return []string{" ", "  ", "   ", "\t", " \t", "    "}[r.IntN(6)] }
		drawn := func() string { return fmt.Sprintf(form, blanks(), blanks()) }
		file := []string{"func draw(a, b) {"}
		for range 1 + r.IntN(4) {
			file = append(file, "\twrite(dist)", drawn(), fmt.Sprintf("\tflush(%d)", r.IntN(3)))
		}
		file = append(file, "}", "")
		said := file[2]
		if r.IntN(3) > 0 {
			said = drawn()
		}
		quoted := []string{"\twrite(dist)", said, "\tflush(0)"}[r.IntN(2) : 2+r.IntN(2)]
		var wanted []string
		for _, line := range quoted {
			if line != said {
				wanted = append(wanted, line)
			} else if r.IntN(2) == 0 {
				wanted = append(wanted, strings.Replace(line, "(", "(changed, ", 1)+" // changed")
			}
		}
		how := [...]func(string) string{ // outside of literals, in both texts
			func(s string) string { return s }, func(s string) string { return s + " " }, func(s string) string { return strings.Replace(s, "\t", "    ", 1) }, strings.TrimSpace,
			func(s string) string { return strings.Replace(strings.Replace(s, "(", "( ", 1), " = ", "  = ", 1) },
		}[r.IntN(5)]
		loose := func(lines []string) string { return strings.Join(each(lines, how), "\n") }
		text := strings.Join(file, "\n")
		res, err := Apply(text, loose(quoted), loose(wanted), false)
		if err != nil {
			kept++
			continue
		}
		changed++
		now := strings.Split(res.Text, "\n")
		for _, line := range file {
			if gone := !slices.Contains(now, line); gone && trim(line) != trim(said) {
				t.Fatalf("seed %d: %q went for %q\nold %q\nnew %q\nfile %q", seed, line, said, loose(quoted), loose(wanted), text)
			}
		}
		// A change beside the literal leaves it to the byte.
		for _, line := range now {
			if strings.HasSuffix(line, "// changed") && !strings.Contains(strings.ReplaceAll(strings.ReplaceAll(line, "( changed, ", "("), "(changed, ", "("), literalsOf(said)) {
				t.Fatalf("seed %d: %q became %q", seed, said, line)
			}
		}
	}
	if changed < 500 || kept < 500 {
		t.Errorf("%d changes and %d refusals prove little", changed, kept)
	}
}

// literalsOf is the part of a line from its first literal to its last one.
func literalsOf(line string) string {
	return line[strings.IndexAny(line, "\"'`/"):][:strings.LastIndexAny(line, "\"'`/")-strings.IndexAny(line, "\"'`/")+1]
}

// Outside of literals blanks are what separates words, and what only looks like the beginning of a literal is none.
func TestCollapseOutsideOfLiterals(t *testing.T) {
	for in, want := range map[string]string{
		"  a  =  1 ":                   "a = 1",
		"a  = 'x  y'   + \"  \"":       "a = 'x  y' + \"  \"",
		"don't  say  we  can't  ":      "don't say we can't",
		"the users'  files  are":       "the users' files are",
		"f(b'a  b',  r\"c\td\")":       "f(b'a  b', r\"c\td\")",
		"a  /  b  /  c":                "a / b / c",
		"x = /a  b/.test( /\\/  /  )":  "x = /a  b/.test( /\\/  / )",
		"s := \"a \\\"  b\"  // c  \"": "s := \"a \\\"  b\" // c \"",
		"\"a  b\n  c\"  d":             "\"a b c\" d",
		"// it's  5'  and  6'":         "// it's 5'  and  6'", // as if it were one
		"//  comment":                  "// comment",
		"\"unclosed  \\":               "\"unclosed \\",
		"'":                            "'",
		"x \"\n\"a  b\"  c":            "x \" \"a  b\" c", // a literal ends on its line
		"f(\"\\\\\",  \"a  b\")":       "f(\"\\\\\", \"a  b\")",
	} {
		if got := collapse(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// Words in a literal may change beside each other, but not where its blanks are others than quoted.
func TestMergeOfWordsInLiterals(t *testing.T) {
	for _, c := range [][4]string{
		{`f(" ", x)`, `f("  ", x)`, `f(x)`, ""},
		{`f(" ", x)`, `f("  ", x)`, `f(" ", y)`, `f("  ", y)`},
		{`say("a b c")`, `say("a2 b c")`, `say("a b2 c")`, `say("a2 b2 c")`},
		{"x \"\nf(\" \", x)", "x \"\nf(\"  \", x)", "x \"\nf(x)", ""},
	} {
		if got, ok := mergeWords(c[0], c[1], c[2]); ok != (c[3] != "") || ok && got != c[3] {
			t.Errorf("%q: %q, %t", c, got, ok)
		}
	}
	if r, err := Apply("x = f(\"a b\", c); y\n", "a  b\", c)", "a  b\", d)", false); err == nil {
		t.Errorf("a quotation that begins in a literal: %q", r.Text)
	}
}
