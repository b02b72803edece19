package terminal

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

const everything = "# Title\n\nSome **bold**, *slanted* and `code` in a paragraph that is longer than a line.\n\n- one item that needs a second line to be said in whole\n- two\n  - nested\n\n3. three\n4. four\n\n" +
	"| Name | Count |\n|:--|--:|\n| apples | 3 |\n| pears and plums and all the rest of them | 14 |\n\n```go\nfunc f() int { return 1 } // a comment\n```\n\n> quoted\n\n- [x] done\n\n~~no~~ [words](https://a.b/c) <https://d.e>\n\n---\n\nend\\* &amp; &lt;\n"

func TestMarkdown(t *testing.T) {
	const want = `# Title

Some bold, slanted and ` + "`code`" + ` in
a paragraph that is longer than
a line.

• one item that needs a second
  line to be said in whole
• two
  • nested

3. three
4. four

Name                     │ Count
─────────────────────────┼──────
apples                   │     3
pears and plums and all  │    14
the rest of them         │

  func f() int { return 1 } // a
   comment

│ quoted

• ☑ done

no words (https://a.b/c)
https://d.e

────────────────────────────────

end* & <
`
	if got := renderMarkdown(everything, 32, false); got != want {
		t.Errorf("got\n%s", got)
	}
	for _, l := range strings.Split(renderMarkdown(everything, 32, true), "\n") {
		if w := ansi.StringWidth(l); w > 32 {
			t.Errorf("%d columns: %q", w, l)
		}
		if i := strings.LastIndex(l, "\x1b["); i >= 0 && !strings.HasPrefix(l[i:], "\x1b[0m") {
			t.Errorf("a style is open at the end of %q", l)
		}
	}
}

func TestStylesOfMarkdown(t *testing.T) {
	for source, want := range map[string]string{
		"a **b** c":              "a \x1b[1mb\x1b[0m c\n",
		"**a *b* c**":            "\x1b[1ma \x1b[0m\x1b[1;3mb\x1b[0m\x1b[1m c\x1b[0m\n",
		"```go\nreturn 1\n```":   "  \x1b[35mreturn\x1b[0m \x1b[33m1\x1b[0m\n",
		"```diff\n+a\n-b\n c```": "  \x1b[32m+a\x1b[0m\n  \x1b[31m-b\x1b[0m\n   c```\n",
		"```cobol\nADD 1.\n```":  "  ADD 1.\n",
	} {
		if got := renderMarkdown(source, 40, true); got != want {
			t.Errorf("%q: %q, want %q", source, got, want)
		}
	}
}

// Nothing that a model writes acts on the terminal, whatever it is spelt as.
func TestMarkdownActsOnNothing(t *testing.T) {
	for _, source := range []string{"a\x1b[2Jb", "&#27;[2J", "&#x1b;]0;t&#7;", "[a](<&#27;[2J>)", "![&#27;](x)", "`\x1b[2J`", "```\n\x1b[2J\n```", "<b\x1b[2J>", "| \x1b[2J |\n|---|\n| &#155;x |", "\u202eabc", "<http://a/\x1b[2J>", "&#8238;"} {
		if got := renderMarkdown(source, 40, false); strings.ContainsAny(got, "\x1b\x07\u009b\u202e") {
			t.Errorf("%q gives %q", source, got)
		}
	}
}

// What is final stays as it was, and the pieces together say all that the whole says.
func TestMarkdownAsItStreams(t *testing.T) {
	whole := strings.Fields(ansi.Strip(renderMarkdown(everything, 60, false)))
	for _, size := range []int{1, 3, 7, 1000} {
		var m markdownStream
		final, shown := "", ""
		for rest := everything; rest != ""; {
			n := min(size, len(rest))
			final += m.add(rest[:n], 60, false)
			shown = final + m.rest(false)(60)
			rest = rest[n:]
		}
		all := final + m.finish(60, false)
		if all != shown {
			t.Errorf("pieces of %d: the end changes what was shown:\n%s\n%s", size, shown, all)
		}
		if got := strings.Fields(all); strings.Join(got, " ") != strings.Join(whole, " ") {
			t.Errorf("pieces of %d:\n%v\n%v", size, got, whole)
		}
	}
}

func TestWhatOfMarkdownIsFinal(t *testing.T) {
	for source, want := range map[string]string{
		"a paragraph":                         "",
		"a paragraph\n\nan":                   "", // the second line may still become the end of the first block
		"a paragraph\n\nanother\n":            "a paragraph\n\n",
		"- a\n\n  still a\n":                  "",
		"- a\n\n  still a\n\nb\n":             "- a\n\n  still a\n\n",
		"```\na\n\nb\n":                       "",
		"```\na\n\nb\n```\n":                  "```\na\n\nb\n```\n",
		"````\n```\n\nb\n````\n":              "````\n```\n\nb\n````\n",
		"~~~\n```\n\nb\n":                     "",
		"a ```not a fence``` here\n\nnext\nx": "a ```not a fence``` here\n\n",
	} {
		if got := source[:finalMarkdown(source)]; got != want {
			t.Errorf("%q: %q, want %q", source, got, want)
		}
	}
}

// A long paragraph arrives in many small pieces, each of which renders all of it: that must stay unnoticeable.
func BenchmarkMarkdownTail(b *testing.B) {
	tail := strings.Repeat("some words and `code` and **more** ", 60)
	for b.Loop() {
		m := markdownStream{open: tail}
		_ = m.rest(true)(80)
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add(everything, 5, 30)
	f.Add("|a|\n|-|\n|", 2, 1)
	f.Fuzz(func(t *testing.T, source string, size, width int) {
		if size < 1 || size > 1000 || width < 0 || width > 300 || len(source) > 2000 {
			return
		}
		var m markdownStream
		out := ""
		for rest := source; rest != ""; rest = rest[min(size, len(rest)):] {
			out += m.add(rest[:min(size, len(rest))], width, true)
			_ = m.rest(true)(width)
		}
		out += m.finish(width, true)
		for _, r := range ansi.Strip(out) {
			if r < 0x20 && r != '\n' || r == 0x7f || r >= 0x80 && r < 0xa0 {
				t.Fatalf("%q kept %U in %q", source, r, out)
			}
		}
	})
}
