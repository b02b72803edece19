package replace

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// In a literal of several lines a line with other blanks than the quoted one is another line: it is neither removed nor changed. One that is quoted
// to the byte is changed, at any indentation; so is code beside the literal, with other blanks too.
func TestBlanksInLongLiteralsAreText(t *testing.T) {
	marks := [][2]string{{`x = """`, `"""`}, {"x = '''", "'''"}, {"const x = `", "`;"}, {`def f(): """of f`, `"""`}, {"var x = tag`a b", "`"}, {"x = f('`', `a", "`"},
		{"x = `a ${f(`b ${c}`)}", "`"}, {"x = `${f({", "})}`"}, {"cat <<EOF | tr a b", "EOF"}, {"x = <<~'END', 1", "  END"}, {"$x = <<<EOT", "EOT;"}, {`auto x = R"(`, `)";`}, {`auto x = u8R"y(a)"`, `)y";`},
		{`let x = r#"a "b"`, `"#;`}, {`let x = br##"a "# b`, `"##;`}, {`var x = @"a ""b""`, `";`}, {`let x = #"""`, `"""#`}, {"x = '`'; y = `", "`"}}
	refused, changed, code := 0, 0, 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 12))
		mark := marks[r.IntN(len(marks))]
		have := 1 + r.IntN(4)
		said := 1 + r.IntN(4)
		row := func(blanks int) string { return "alpha" + strings.Repeat(" ", blanks) + "beta gamma" }
		file := fmt.Sprintf("before(1)\ncall(one,  two)\n%s\n  first words\n  %s\n  last words\n%s\nafter(2)\n", mark[0], row(have), mark[1])
		old, new := "  "+row(said)+"\n  last words\n", "  last words\n"
		if r.IntN(2) == 0 {
			new = strings.Replace(old, "beta", "delta", 1)
		}
		if r.IntN(3) == 0 {
			old, new = strings.TrimSuffix(old, "\n"), strings.TrimSuffix(new, "\n")
		}
		shifted := r.IntN(3) == 0 // may be refused for that
		if shifted {
			old, new = strings.ReplaceAll(old, "  last", "   last"), strings.ReplaceAll(new, "  last", "   last")
		}
		res, err := Apply(file, old, new, r.IntN(4) == 0)
		switch {
		case have != said && err == nil:
			t.Fatalf("seed %d: %q was written for %q\nfile %q\nnow %q", seed, row(have), row(said), file, res.Text)
		case have != said:
			refused++
		case err != nil && !shifted:
			t.Fatalf("seed %d: a line as quoted: %v\nfile %q\nold %q\nnew %q", seed, err, file, old, new)
		case err == nil:
			changed++
		}
		if res, err := Apply(file, "before(1)\ncall(one, two)\n", "before(1)\ncall(one, three)\n", false); err != nil || !strings.Contains(res.Text, "three") {
			t.Fatalf("seed %d: code beside a literal: %v\n%q", seed, err, res.Text)
		}
		code++
	}
	if refused < 500 || changed < 200 || code < 500 {
		t.Fatalf("%d refused, %d changed, %d beside: the test has lost its cases", refused, changed, code)
	}
}

// A line with other blanks in a literal that stays as it was quoted stays in the file too, while a line beside it is changed.
func TestLineOfLongLiteralStays(t *testing.T) {
	file := "x = `\n  one   two\n  three four\n`\n"
	res, err := Apply(file, "  one two\n  three four\n", "  one two\n  three five\n", false)
	if want := "x = `\n  one   two\n  three five\n`\n"; err != nil || res.Text != want {
		t.Fatalf("%v\n%q", err, res.Text)
	}
}

// Marks that begin no literal make no line stricter: a lone backquote, and what looks like a here document and ends nowhere.
func TestMarksThatBeginNoLiteral(t *testing.T) {
	for _, first := range []string{"// it's a ` alone", "x = 1 << y", "out << \"a\" << end;", `x = r"a#b"`, "x = `a`", `R"a long delimiter, that is not one (" )`, "x = {`${a}`}"} {
		file := first + "\none(1,  2)\nlast\n"
		if res, err := Apply(file, "one(1, 2)\nlast", "last", false); err != nil || res.Text != first+"\nlast\n" {
			t.Errorf("%s: %v\n%q", first, err, res.Text)
		}
	}
}

// The literals that a grammar knows count, and where it knows all of them no others do. It is asked only where blanks decide.
func TestLiteralsOfGrammar(t *testing.T) {
	file := "a = 'x\n one  two\n'\nb = `x\n three  four\n`\n"
	asked := 0
	in := func(ok bool) Literals {
		return func(text string) ([][2]int, bool) {
			asked++
			return [][2]int{{strings.Index(text, "'"), strings.LastIndex(text, "'")}}, ok
		}
	}
	for _, c := range []struct {
		literals Literals
		old, new string
		ok       bool
	}{
		{nil, " one two\n", "", true},
		{in(true), " one two\n", "", false},
		{in(true), " one two\n'\n", " one two\n''\n", true},
		{in(true), " three four\n", "", true},
		{in(false), " three four\n", "", false},
		{in(false), " one two\n", "", false},
	} {
		before := asked
		res, err := ApplyIn(c.literals, file, c.old, c.new, false)
		if (err == nil) != c.ok {
			t.Errorf("%q to %q: %v\n%q", c.old, c.new, err, res.Text)
		}
		if !c.ok && asked == before {
			t.Errorf("%q to %q: nobody asked for the literals", c.old, c.new)
		}
	}
	before := asked
	if _, err := ApplyIn(in(true), file, " one  two\n", "", false); err != nil || asked != before {
		t.Errorf("an exact quotation: %v, asked %d times", err, asked-before)
	}
}
