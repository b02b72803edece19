package evidence

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools/change"
)

// wordServer is a language server whose symbols are words: it finds and renames them in all texts. Formatting turns leading
// blanks into tabs; organising imports sorts the lines that begin with import.
type wordServer struct {
	texts map[string]string
	off   map[string]bool // abilities that it lacks
}

func (s wordServer) at(path string, p lspbridge.Position) string {
	line := strings.Split(s.texts[path], "\n")[p.Line]
	for _, w := range regexp.MustCompile(`\w+`).FindAllStringIndex(line, -1) {
		if w[0] <= p.Character && p.Character < w[1] {
			return line[w[0]:w[1]]
		}
	}
	return ""
}

func (s wordServer) References(_ context.Context, path string, p lspbridge.Position) (out []lspbridge.Location, err error) {
	if s.off["references"] {
		return nil, errors.New("the server is loading")
	}
	name := s.at(path, p)
	for at, text := range s.texts {
		for i, line := range strings.Split(text, "\n") {
			for _, w := range regexp.MustCompile(`\b`+name+`\b`).FindAllStringIndex(line, -1) {
				out = append(out, lspbridge.Location{Path: at, Range: lspbridge.Range{Start: lspbridge.Position{Line: i, Character: w[0]}}})
			}
		}
	}
	return out, nil
}

func (s wordServer) Rename(_ context.Context, path string, p lspbridge.Position, to string) (out []lspbridge.FileEdit, err error) {
	name := regexp.MustCompile(`\b` + s.at(path, p) + `\b`)
	for at, text := range s.texts {
		if now := name.ReplaceAllString(text, to); now != text {
			out = append(out, lspbridge.FileEdit{Path: at, Kind: "edit", Old: text, New: now})
		}
	}
	return out, nil
}

// laid is the text of the context, which only the functions about new texts get.
func laid(ctx context.Context, path string) string {
	for _, p := range lspbridge.Texts(ctx) {
		if p.Path == path {
			return p.Text
		}
	}
	return ""
}

func (s wordServer) Format(ctx context.Context, path string) ([]lspbridge.FileEdit, error) {
	text := laid(ctx, path)
	return []lspbridge.FileEdit{{Path: path, Kind: "edit", Old: text, New: regexp.MustCompile(`(?m)^ +`).ReplaceAllString(text, "\t")}}, nil
}

func (s wordServer) CodeActions(_ context.Context, path string, _ lspbridge.Range, only []string, _ []change.Problem) ([]lspbridge.Action, error) {
	return []lspbridge.Action{{Title: path, Kind: only[0]}}, nil
}

func (s wordServer) ResolveAction(ctx context.Context, a lspbridge.Action) ([]lspbridge.FileEdit, error) {
	text := laid(ctx, a.Title)
	lines := strings.SplitAfter(text, "\n")
	var imports []int
	for i, l := range lines {
		if strings.HasPrefix(l, "import ") {
			imports = append(imports, i)
		}
	}
	sorted := make([]string, len(imports))
	for k, i := range imports {
		sorted[k] = lines[i]
	}
	slices.Sort(sorted)
	for k, i := range imports {
		lines[i] = sorted[k]
	}
	return []lspbridge.FileEdit{{Path: a.Title, Kind: "edit", Old: text, New: strings.Join(lines, "")}}, nil
}

// setOf proposes new texts over old ones.
func setOf(old, now map[string]string) *change.Set {
	var files []change.File
	for _, path := range []string{"/p/a.go", "/p/b.go", "/p/c.go"} {
		if text, ok := now[path]; ok {
			files = append(files, change.File{Path: path, Kind: change.Edit, Old: old[path], New: text})
		}
	}
	return change.New("c", files)
}

var words3 = map[string]string{
	"/p/a.go": "package p\n\nfunc Load(n int) int {\n\treturn n\n}\n\nfunc Other() int {\n\treturn 1\n}\n",
	"/p/b.go": "package p\n\nvar x = Load(1)\n\nvar y = Other()\n",
	"/p/c.go": "package p\n\nvar z = Load(2)\n",
}

// with is one of the texts with something replaced, all of it.
func with(path, from, to string) string { return strings.ReplaceAll(words3[path], from, to) }

// A rename that leaves a place out, or a hunk with one more change, is not folded with the rest.
func TestOnlyWhatTheServerMakesIsFolded(t *testing.T) {
	servers := wordServer{texts: words3}
	renamed := map[string]string{}
	for path := range words3 {
		renamed[path] = with(path, "Load", "Fetch")
	}
	for name, c := range map[string]struct {
		change func(map[string]string)
		title  string
		hunks  int
	}{
		"all places":    {func(map[string]string) {}, "verified rename Load → Fetch, 3 places", 3},
		"one left out":  {func(m map[string]string) { delete(m, "/p/c.go") }, "verified rename Load → Fetch, 2 of 3 places; the others are in hunks with other changes, or were not renamed", 2},
		"one with more": {func(m map[string]string) { m["/p/c.go"] = strings.Replace(m["/p/c.go"], "2", "3", 1) }, "verified rename Load → Fetch, 2 of 3 places; the others are in hunks with other changes, or were not renamed", 2},
		"another change beside it": {func(m map[string]string) { m["/p/a.go"] = strings.Replace(m["/p/a.go"], "return 1", "return 2", 1) },
			"verified rename Load → Fetch, 3 places", 3},
	} {
		t.Run(name, func(t *testing.T) {
			now := map[string]string{}
			for k, v := range renamed {
				now[k] = v
			}
			c.change(now)
			_, groups := Find(t.Context(), servers, setOf(words3, now), "/p", nil)
			if len(groups) == 0 || groups[0].Title != c.title || len(groups[0].Hunks) != c.hunks || !groups[0].Verified {
				t.Errorf("%+v", groups)
			}
		})
	}
}

// Several renames meet in one line, a type takes its members with it, and two declarations of one name are renamed apart from each
// other: each place is found, and nothing else is said to be removed.
func TestRenamesThatMeetAreFolded(t *testing.T) {
	old := map[string]string{
		"/p/a.go": "package p\n\ntype Cache struct {\n\tsize int\n}\n\nfunc (c *Cache) Len() int { return c.size }\n",
		"/p/b.go": "package p\n\nfunc Make() *Cache { return &Cache{size: 1} }\n\n// Twice doubles.\nfunc Twice(c *Cache) int { return 2 * c.Len() }\n",
	}
	now := map[string]string{}
	for path, text := range old {
		now[path] = strings.NewReplacer("Cache", "Store", "size", "length").Replace(text)
	}
	find := func() (titles, uses []string) {
		list, groups := Find(t.Context(), wordServer{texts: old}, setOf(old, now), "/p", nil)
		for _, g := range groups {
			titles = append(titles, g.Title)
		}
		for _, u := range list {
			uses = append(uses, u.Name+" "+u.What)
		}
		return titles, uses
	}
	titles, uses := find()
	if want := []string{"verified rename Cache → Store, 5 places; size → length, 3 places"}; !slices.Equal(titles, want) {
		t.Errorf("groups %q", titles)
	}
	if want := []string{"Cache removed", "Cache.size removed"}; !slices.Equal(uses, want) {
		t.Errorf("uses %q", uses)
	}
	// A change beside the names is not part of the renames, and the method in which it is has changed.
	now["/p/a.go"] = strings.Replace(now["/p/a.go"], "c.length }", "c.length + 1 }", 1)
	titles, uses = find()
	if len(titles) == 0 || !strings.HasPrefix(titles[0], "verified rename Cache → Store, 4 of 5 places") {
		t.Errorf("groups %q", titles)
	}
	if want := []string{"Cache removed", "Cache.size removed", "Cache.Len body"}; !slices.Equal(uses, want) {
		t.Errorf("uses %q", uses)
	}
}

// White space is formatting only where the formatter agrees, and lines of imports are organised only where the server says so.
func TestFormattingAndImportsAreDoneAgain(t *testing.T) {
	old := map[string]string{"/p/a.go": "package p\n\nimport \"b\"\nimport \"a\"\n\nfunc F() {\n    x()\n}\n\nfunc G() {\n\ty()\n}\n"}
	servers := wordServer{texts: old}
	for name, c := range map[string]struct{ new, want string }{
		"both":            {"package p\n\nimport \"a\"\nimport \"b\"\n\nfunc F() {\n\tx()\n}\n\nfunc G() {\n\ty()\n}\n", "verified formatting, 1 hunk|verified organised imports, 2 hunks"},
		"other blanks":    {"package p\n\nimport \"b\"\nimport \"a\"\n\nfunc F() {\n\t\tx()\n}\n\nfunc G() {\n\ty()\n}\n", ""},
		"another import":  {"package p\n\nimport \"b\"\nimport \"evil\"\n\nfunc F() {\n    x()\n}\n\nfunc G() {\n\ty()\n}\n", ""},
		"with a new call": {"package p\n\nimport \"b\"\nimport \"a\"\n\nfunc F() {\n\tx()\n}\n\nfunc G() {\n\tz()\n}\n", "verified formatting, 1 hunk"},
	} {
		t.Run(name, func(t *testing.T) {
			_, groups := Find(t.Context(), servers, setOf(old, map[string]string{"/p/a.go": c.new}), "/p", nil)
			var titles []string
			for _, g := range groups {
				titles = append(titles, g.Title)
			}
			if got := strings.Join(titles, "|"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// What is known of uses, in numbers and in words; a server that does not answer leaves them unknown and not zero.
func TestUsesOfChangedDeclarations(t *testing.T) {
	now := map[string]string{"/p/a.go": strings.Replace(with("/p/a.go", "n int)", "n, m int)"), "return 1", "return 2", 1), "/p/b.go": with("/p/b.go", "Load(1)", "Load(1, 2)")}
	set := setOf(words3, now)
	uses, groups := Find(t.Context(), wordServer{texts: words3}, set, "/p", nil)
	var lines []string
	for i := range uses {
		lines = append(lines, uses[i].String())
	}
	want := []string{
		"public function Load is declared differently: 2 uses in 2 files, 1 of them in this proposal; 1 outside may be affected; other projects may use it",
		"public function Other changed inside: 1 use in 1 file, 0 of them in this proposal; 1 outside may be affected; other projects may use it",
		"variable x changed inside: no other use is known in this project",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q", lines)
	}
	if len(groups) != 1 || groups[0].Verified || groups[0].Kind != change.GroupTogether || len(groups[0].Hunks) != 2 {
		t.Errorf("the declaration and its use are not one decision: %+v", groups)
	}
	uses, _ = Find(t.Context(), wordServer{texts: words3, off: map[string]bool{"references": true}}, set, "/p", nil)
	if len(uses) != 3 || !strings.Contains(uses[0].String(), "its uses are not known (the server is loading)") {
		t.Errorf("%+v", uses)
	}
	uses, _ = Find(t.Context(), nil, set, "/p", nil)
	if len(uses) != 3 || uses[0].Unknown == "" {
		t.Errorf("%+v", uses)
	}
}

// Which part of a declaration changed, and who can name it, by language.
func TestWhatOfADeclarationChanged(t *testing.T) {
	for _, c := range []struct{ path, old, now, want string }{
		{"/p/a.go", "package a\n\nfunc F(a int) interface{} {\n\treturn 1\n}\n", "package a\n\nfunc F(a int) interface{} {\n\treturn 2\n}\n", "public F body"},
		{"/p/a.go", "package a\n\nfunc F(a int) interface{} {\n\treturn 1\n}\n", "package a\n\nfunc F(a string) interface{} {\n\treturn 1\n}\n", "public F signature"},
		{"/p/a.go", "package a\n\nfunc f() {}\n", "package a\n", "f removed"},
		{"/p/a.go", "package main\n\nfunc F() {}\n", "package main\n", "F removed"},
		{"/p/internal/a.go", "package a\n\nfunc F() {}\n", "package a\n", "F removed"},
		{"/p/a.go", "package a\n\ntype T struct{ A int }\n", "package a\n\ntype T struct{ A string }\n", "public T.A signature"},
		{"/p/a.py", "def f(a):\n    return 1\n", "def f(a):\n    return 2\n", "public f body"},
		{"/p/a.py", "def f(a):\n    return 1\n", "def f(a, b):\n    return 1\n", "public f signature"},
		{"/p/a.py", "class C:\n    def m(self):\n        return 1\n", "class C:\n    def m(self):\n        return 2\n", "public C.m body"},
		{"/p/a.ts", "export function f(a: number): void {\n  g(1);\n}\n", "export function f(a: number): void {\n  g(2);\n}\n", "public f body"},
		{"/p/a.ts", "function f(a: number) {\n  g(1);\n}\n", "function f(a: string) {\n  g(1);\n}\n", "f signature"},
		{"/p/a.rs", "pub fn f() -> i32 {\n    1\n}\n", "pub fn f() -> i32 {\n    2\n}\n", "public f body"},
		{"/p/a.go", "package a\n\nfunc F() {\nx()\n}\n", "package a\n\nfunc F() {\n\tx()\n}\n", ""},
		{"/p/a.go", "package a\n\ntype T struct {\n\tA int\n}\n", "package a\n\ntype T struct {\n\tA int // the first\n}\n", ""},
		{"/p/a.go", "package a\n\nfunc F() {\n\tx()\n}\n", "package a\n\nfunc F() {\n\t// calls x\n\tx()\n}\n", ""},
		{"/p/a.py", "def f(a):\n    return 1\n", "def f(a):\n    return 1  # one\n", ""},
		{"/p/a.py", "def f(a):\n    return '# 1'\n", "def f(a):\n    return '# 2'\n", "public f body"},
		{"/p/a.go", "package main\n\nfunc main() { x() }\n", "package main\n\nfunc main() { y() }\n", ""},
		{"/p/a.go", "package a\n\ntype T struct{ A int }\n\nfunc (t T) M(u T) {}\n", "package a\n\ntype U struct{ A int }\n\nfunc (t U) M(u U) {}\n", "public T removed"},
		{"/p/a.go", "package a\n\ntype T struct{ A int }\n\nfunc (t T) M() {}\n", "package a\n\ntype U struct{ A int }\n\nfunc (t U) M(n int) {}\n", "public T removed, public T.M signature"},
		{"/p/a.go", "package a\n\ntype T struct{ A int }\n", "package a\n\ntype U[X any] struct{ A int }\n", "public T removed, public T.A removed"},
		{"/p/a_test.go", "package a\n\nfunc TestF() {}\n", "package a\n", ""},
	} {
		set := change.New("c", []change.File{{Path: c.path, Kind: change.Edit, Old: c.old, New: c.now}})
		uses, _ := Find(t.Context(), nil, set, "/p", nil)
		var got []string
		for _, u := range uses {
			s := u.Name + " " + u.What
			if u.Public {
				s = "public " + s
			}
			got = append(got, s)
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q\n→ %q\ngot %q, want %q", c.path, c.old, c.now, got, c.want)
		}
	}
}
