package lspbridge

import (
	"strings"
	"testing"
)

func TestSignature(t *testing.T) {
	for _, c := range []struct {
		path, text string // the symbol is named f, its body holds BODY
		kind       int
		line       int // of the last one of its head
		leaks      bool
	}{
		{"a.ts", "export function f(a: number): number {\n  BODY\n}\n", kindFunction, 0, false},
		{"a.ts", "export function f(\n  a = ') {',\n  b: (x: string) => void,\n): Promise<\n  string\n> {\n  BODY\n}\n", kindFunction, 5, false},
		{"a.ts", "export function f(a: number) {\n  BODY\n}\n", kindFunction, 0, true},
		{"a.ts", "export function f(a: number): {\n  b: { c: string };\n} {\n  BODY\n}\n", kindFunction, 2, false},
		{"a.ts", "export function f(a: number): A | {\n  b: string\n} & { c: '{' } {\n  BODY; g = x as {\n }\n}\n", kindFunction, 2, false},
		{"a.ts", "export function f(a: unknown): a is {\n  b: string\n}[] {\n  BODY\n}\n", kindFunction, 2, false},
		{"a.ts", "export function f(): (a: {\n  b: string\n}) => {\n  c: string\n} {\n  BODY\n}\n", kindFunction, 4, false},
		{"a.ts", "export function f(): Map<string, {\n  b: string\n}> {\n  BODY\n}\n", kindFunction, 2, false},
		{"a.ts", "declare function f(): {\n  b: string\n};\n", kindFunction, 2, false},
		{"a.ts", "export const f: A = (a): {\n  b: string\n} => {\n  BODY\n};\n", kindFunction, 2, false},
		{"a.ts", "export const f = (a: number) =>\n  BODY;\n", kindFunction, 0, true},
		{"a.ts", "export const f: Handler = (a) => {\n  BODY;\n};\n", kindFunction, 0, false},
		{"a.ts", "class A {\n  f(a: number) {\n    BODY\n  }\n}\n", kindConstructor, 1, false},
		{"a.js", "class A {\n  f(a) {\n    BODY\n  }\n}\n", kindConstructor, 1, true},
		{"a.py", "def f(a: int) -> int:\n    BODY\n", kindFunction, 0, false},
		{"a.py", "def f(\n    a: int,\n    b=\"(\",\n):\n    BODY\n", kindFunction, 3, true},
		{"a.py", "class A:\n    def f(self) -> None:\n        self.BODY = 1\n", kindMethod, 1, true},
		{"a.h", "inline int f(int n)\n{\n  BODY;\n}\n", kindFunction, 1, false},
		{"a.h", "template <class T>\nT f(T n) { \n BODY; }\n", kindFunction, 1, true},
		{"a.h", "inline auto f() {\n BODY; }\n", kindFunction, 0, true},
		{"a.rs", "pub fn f<'a>(x: &'a str) -> &'a str {\n    BODY\n}\n", kindFunction, 0, false},
		{"a.rs", "pub fn f(\n    x: &'static str,\n    y: u8,\n) {\n    BODY\n}\n", kindFunction, 3, false},
	} {
		i := strings.Index(c.text, "f(")
		if i < 0 || strings.HasSuffix(c.text[:i], "def") {
			i = strings.Index(c.text, " f") + 1
		}
		s := Symbol{Name: "f", Kind: c.kind, Selection: Range{OffsetPosition(c.text, i), OffsetPosition(c.text, i+1)}, Range: Range{OffsetPosition(c.text, strings.LastIndex(c.text[:i], "\n")+1), OffsetPosition(c.text, len(c.text)-1)}}
		if line, leaks := signature(c.path, c.text, s); line != c.line || leaks != c.leaks {
			t.Errorf("%s %q: the head ends on line %d, leaks %v", c.path, c.text, line, leaks)
		}
	}
}
