package lspbridge

import (
	"path/filepath"
	"strings"
	"testing"
)

// What a hand-made edit of a declaration leaves to be done, found by real servers: the uses of a name, the calls of a function
// with other parameters, in other files and in the edited one; nothing where the edit is not of a declaration.
func TestNextEdit(t *testing.T) {
	type want struct {
		title string
		files map[string]string // a part of each new text, by file
	}
	for name, c := range map[string]struct {
		server, file string
		files        map[string]string
		old, new     string // what the person replaces
		want         *want
	}{
		"a renamed function": {"gopls", "lib.go", map[string]string{"go.mod": "module x\n\ngo 1.24\n", "lib.go": "package x\n\nfunc Parse(s string) int { return len(s) }\n\nvar two = Parse(\"ab\")\n", "use.go": "package x\n\nvar n = Parse(\"Parse\") + Parse(\"\")\n"},
			"func Parse(", "func ParseAll(", &want{"Rename 3 other uses of Parse to ParseAll", map[string]string{"lib.go": "func ParseAll(s string) int { return len(s) }\n\nvar two = ParseAll(\"ab\")", "use.go": "var n = ParseAll(\"Parse\") + ParseAll(\"\")"}}},
		"an added parameter": {"gopls", "lib.go", map[string]string{"go.mod": "module x\n\ngo 1.24\n", "lib.go": "package x\n\ntype T struct{}\n\nfunc (t *T) Do(a int) int { return a }\n", "use.go": "package x\n\nvar n = new(T).Do(\n\t1,\n) + new(T).Do(new(T).Do(2))\n\nvar f = new(T).Do\n"},
			"Do(a int)", "Do(a int, deep bool)", &want{"Change 3 calls of Do in use.go", map[string]string{"use.go": "var n = new(T).Do(1, false) + new(T).Do(new(T).Do(2, false), false)\n\nvar f = new(T).Do\n"}}},
		"a call of itself": {"gopls", "lib.go", map[string]string{"go.mod": "module x\n\ngo 1.24\n", "lib.go": "package x\n\nvar a = f(1)\n\nfunc f(a int) int { return f(a - 1) }\n\nvar b = f(2)\n"},
			"f(a int)", "f(b string, a int)", &want{"Change 3 calls of f in lib.go", map[string]string{"lib.go": "var a = f(\"\", 1)\n\nfunc f(b string, a int) int { return f(\"\", a - 1) }\n\nvar b = f(\"\", 2)\n"}}},
		"a use": {"gopls", "use.go", map[string]string{"go.mod": "module x\n\ngo 1.24\n", "lib.go": "package x\n\nfunc Parse(s string) int { return len(s) }\n", "use.go": "package x\n\nvar n = Parse(\"\")\n"}, "= Parse(", "= ParseAll(", nil},
		"a TypeScript method, parameters swapped": {"typescript", "lib.ts", map[string]string{"tsconfig.json": "{}", "lib.ts": "export class C {\n  put(key: string, value: number) { return key + value; }\n}\n", "use.ts": "import { C } from './lib';\nnew C().put('a,b', 1);\n"},
			"put(key: string, value: number)", "put(value: number, key: string)", &want{"Change 1 call of put in use.ts", map[string]string{"use.ts": "put(1, 'a,b')"}}},
	} {
		t.Run(name, func(t *testing.T) {
			m, root := project(t, c.server, c.files)
			path := filepath.Join(root, c.file)
			before := c.files[c.file]
			now := strings.Replace(before, c.old, c.new, 1)
			write(t, path, now)
			got, err := m.NextEdit(longer(t), path, before)
			if err != nil {
				t.Fatal(err)
			}
			if c.want == nil || got == nil {
				if (c.want == nil) != (got == nil) {
					t.Fatalf("got %+v", got)
				}
				return
			}
			if got.Title != c.want.title {
				t.Errorf("title %q, want %q", got.Title, c.want.title)
			}
			texts := map[string]string{}
			for _, e := range got.Edits {
				texts[filepath.Base(e.Path)] = e.New
				if filepath.Base(e.Path) == c.file && e.Old != now {
					t.Errorf("the edit of %s is not of what the person sees: %q", c.file, e.Old)
				}
			}
			for file, part := range c.want.files {
				if !strings.Contains(texts[file], part) {
					t.Errorf("%s: %q is not in %q", file, part, texts[file])
				}
			}
			// What is overlaid for the question is gone after it: the server sees the person's text.
			if r := m.Diagnostics(longer(t), path); r.Path != path {
				t.Errorf("%+v", r)
			}
		})
	}
}
