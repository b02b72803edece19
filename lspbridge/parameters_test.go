package lspbridge

import (
	"strings"
	"testing"
)

// How calls follow a change of the parameters. "-" is where they cannot, or need not.
func TestArgumentsFollowParameters(t *testing.T) {
	for _, c := range []struct{ file, before, now, args, want string }{
		{"a.go", "a int", "a int, b string", "1", `1, ""`},
		{"a.go", "a, b int", "a, b, c int", "1, 2", "1, 2, 0"},
		{"a.go", "a, b int", "b, a int", "1, f(2, 3)", "f(2, 3), 1"},
		{"a.go", "a int, b int", "b int", `"x,y", g[T{1, 2}]`, "g[T{1, 2}]"},
		{"a.go", "a int", "ctx context.Context, a int", "1", "context.TODO(), 1"},
		{"a.go", "", "m map[string]int", "", "nil"},
		{"a.go", "a int", "", "1", ""},
		{"a.go", "a int", "b int", "1", "-"},             // renamed: calls do not name it
		{"a.go", "a int", "a string", "1", "-"},          // another type: what to pass is for a person
		{"a.go", "a int", "a int, s Settings", "1", "-"}, // the zero value depends on what Settings is
		{"a.go", "a ...int", "b string, a ...int", "1", "-"},
		{"a.go", "a int, b int", "a int", "xs...", "-"},
		{"a.go", "a int, b int", "a int", "pair()", "-"}, // one argument for two parameters
		{"a.ts", "a: number", "a: number, b?: string", "1", "1"},
		{"a.ts", "a: number", "a: number, b = 2", "1", "1"},
		{"a.ts", "a: number", "b: string, a: number", "1", "undefined, 1"},
		{"a.ts", "a: {x: number, y: string}, b: T", "b: T, a: {x: number, y: string}", "{x: 1, y: ','}, t", "t, {x: 1, y: ','}"},
		{"a.ts", "{x, y}: P", "{x, y}: P, b: T", "p", "-"},
		{"a.ts", "a: number", "b?: string, a: number", "1", "-"},
		{"a.py", "self, a", "self, a, b", "1", "1, None"},
		{"a.py", "a, b=1", "b=1", "1, 2", "2"},
		{"a.py", "*args", "a, *args", "1", "-"},
		{"a.c", "int a, char *b", "char *b, int a", "1, s", "s, 1"},
		{"a.c", "int a", "int a, int b", "1", "-"},
		{"a.rb", "a, b", "b, a", "1, 2", "2, 1"},
	} {
		list := func(s string) []string {
			items, _, ok := splitList("("+s+")", 0)
			if !ok {
				t.Fatalf("%q is no list", s)
			}
			return items
		}
		got := "-"
		if a, ok := matchParameters(c.file, list(c.before), list(c.now)); ok {
			if args, ok := a.apply(list(c.args)); ok {
				got = strings.Join(args, ", ")
			}
		}
		// An optional parameter that calls leave out changes nothing in them.
		if got != c.want {
			t.Errorf("%s: (%s) → (%s), call (%s): %q, want %q", c.file, c.before, c.now, c.args, got, c.want)
		}
	}
}

func TestOneEdit(t *testing.T) {
	for _, c := range []struct{ before, now, old, new string }{
		{"func parse(a int)", "func parseAll(a int)", "parse", "parseAll"},
		{"x := größe + 1", "x := grösse + 1", "größe", "grösse"},
		{"f(a)", "f(a, b)", "a", "a, b"},
		{"f()", "f(a)", "", "a"},
		{"aaaa", "aaa", "aaaa", "aaa"},
		{"", "a", "", "a"},
		{"func ", "func 0", "", "0"}, // at the end of the text
	} {
		e, ok := oneEdit(c.before, c.now)
		if !ok || e.old() != c.old || e.new() != c.new {
			t.Errorf("%q → %q: %q → %q, want %q → %q", c.before, c.now, e.old(), e.new(), c.old, c.new)
		}
	}
	if _, ok := oneEdit("same", "same"); ok {
		t.Error("equal texts differ")
	}
}

func FuzzOneEdit(f *testing.F) {
	f.Add("func f(a int)", "func f(a, b int)")
	f.Add("é(", "è[")
	f.Fuzz(func(t *testing.T, before, now string) {
		e, ok := oneEdit(before, now)
		if !ok {
			if before != now {
				t.Error("no edit between different texts")
			}
			return
		}
		if before[:e.from]+e.new()+before[e.to:] != now {
			t.Errorf("%q → %q is not %q in place of %q", before, now, e.new(), e.old())
		}
		if _, open, ok := e.parameterList(); ok {
			if before[open] != '(' {
				t.Errorf("%q[%d] opens no list", before, open)
			}
			_, _, _ = splitList(before, open)
			_, _, _ = splitList(now, open)
		}
	})
}
