package gofix

import (
	"bytes"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// In code that gofmt has formatted and that parses, brackets and indentation agree. Else the first disagreement would not be the mistake.
func TestFormattedCodeHasNoDisagreement(t *testing.T) {
	files, wrong := 0, 0
	for _, dir := range []string{"fmt", "go/types", "go/parser", "net/http", "encoding/json", "text/template", "os/exec", "cmd/compile/internal/ssa"} {
		names, _ := filepath.Glob(filepath.Join(shared().goroot, "src", filepath.FromSlash(dir), "*.go"))
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if len(b) > 200<<10 {
				continue // generated
			}
			if formatted, err := format.Source(b); err != nil || !bytes.Equal(formatted, b) {
				continue
			}
			files++
			l := layout{text: string(b), path: name}
			l.read()
			if l.places > 0 {
				wrong++
				t.Errorf("%s: %d disagreements, %+v", name, l.places, l.out[0])
			}
		}
	}
	if files < 100 {
		t.Skipf("the sources of the standard library have %d files here", files)
	}
}

// The bracket that ⟦ ⟧ encloses is lost. The best fix puts it back where it was, also where closing the block later would parse as well.
func TestALostBracketIsFoundByTheIndentation(t *testing.T) {
	for _, text := range []string{
		"func f() string {\n\treturn \"\"\n⟦}⟧\n\ntype t struct {\n\tn int\n}\n\nfunc g() *t { return &t{1} }\n",
		"func f(a, b bool) int {\n\tif a &&\n\t\tb {\n\t\treturn 1\n\t⟦}⟧\n\treturn 2\n}\n",
		"func f(a bool) (n int) {\n\tif a {\n\t\tn = 1\n\t⟦}⟧ else {\n\t\tn = 2\n\t}\n\treturn n\n}\n",
		"func f(a int) int {\nagain:\n\tfor {\n\t\tswitch a {\n\t\tcase 1:\n\t\t\tfor a < 9 {\n\t\t\t\ta++\n\t\t\t⟦}⟧\n\t\tdefault:\n\t\t\tbreak again\n\t\t}\n\t}\n\treturn a\n}\n",
		"type t struct{ n, m int }\n\nfunc f() []t {\n\treturn []t{\n\t\t{n: 1, m: 2⟦}⟧,\n\t\t{n: 3, m: 4},\n\t}\n}\n",
		"type t struct{ n int }\n\nfunc g(a int, b t, c int) int { return a + b.n + c }\n\nfunc f() int {\n\treturn g(1, t{n: 2⟦}⟧, 3)\n}\n",
		"func g(f func(), n int) {}\n\nfunc f() {\n\tg(func() {\n\t\tg(nil, 1)\n\t⟦}⟧, 2)\n}\n",
		"func g(a ...int) int { return len(a) }\n\nfunc f() int {\n\tn := g(1, g(2)⟦)⟧\n\treturn n\n}\n",
		"func g(a ...any) bool { return len(a) > 0 }\n\nfunc f(b *int) {\n\tif !g(1, &b⟦)⟧ {\n\t\tg(1)\n\t}\n}\n",
		"func g(a ...int) []int { return a }\n\nfunc f() {\n\tfor _, n := range g(1, 2⟦)⟧ {\n\t\tg(n)\n\t}\n}\n",
		"func f(a []int, i int) int {\n\tswitch a[i⟦]⟧ {\n\tcase 1:\n\t\treturn 2\n\t}\n\treturn 3\n}\n",
		"func f() string {\n\treturn `\n}` + func() string {\n\t\treturn \"\"\n\t⟦}⟧()\n}\n",
	} {
		whole := "package m\n\n" + strings.NewReplacer("⟦", "", "⟧", "").Replace(text)
		before, rest, _ := strings.Cut(text, "⟦")
		_, after, _ := strings.Cut(rest, "⟧")
		m := moduleOf(t, map[string]string{"go.mod": "module m\n\ngo 1.22\n", "a.go": "package m\n\n" + before + after})
		found := m.fixes(t.Context(), filepath.Join(m.root, "a.go"), 0)
		if len(found) == 0 {
			t.Errorf("no fix for\n%s", text)
		} else if got := found[0].Files[filepath.Join(m.root, "a.go")]; got != whole {
			t.Errorf("%s: %s\n%s", text, found[0].Title, got)
		}
	}
}

// A bracket that is one too many, and a block that is not opened.
func TestASurplusBracketIsFoundByTheIndentation(t *testing.T) {
	for wrong, want := range map[string]string{
		"func f(a bool) int {\n\tif a {\n\t\treturn 1\n\t}\n\t}\n\treturn 2\n}\n\nfunc g() {}\n": "func f(a bool) int {\n\tif a {\n\t\treturn 1\n\t}\n\t\n\treturn 2\n}\n\nfunc g() {}\n",
		"func f(a bool) int {\n\tif a\n\t\treturn 1\n\t}\n\treturn 2\n}\n\nfunc g() {}\n":        "func f(a bool) int {\n\tif a {\n\t\treturn 1\n\t}\n\treturn 2\n}\n\nfunc g() {}\n",
		"func g(a ...int) {}\n\nfunc f() {\n\tg(1))\n}\n":                                        "func g(a ...int) {}\n\nfunc f() {\n\tg(1)\n}\n",
	} {
		m := moduleOf(t, map[string]string{"go.mod": "module m\n\ngo 1.22\n", "a.go": "package m\n\n" + wrong})
		found := m.fixes(t.Context(), filepath.Join(m.root, "a.go"), 0)
		if len(found) == 0 || found[0].Files[filepath.Join(m.root, "a.go")] != "package m\n\n"+want {
			t.Errorf("%s\n%+v", wrong, found)
		}
	}
}
