package symbol

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each file of testdata is outlined: name path, kind, the lines it takes, and why it cannot be cut out.
func TestOutline(t *testing.T) {
	if !hasParser {
		t.Skip("built without cgo: no grammars")
	}
	for _, c := range []struct{ path, text, want string }{
		{"a.go", `package p

// A is
// a type.
type A struct {
	x, y int // both
	// z is alone.
	z string
}

//go:noinline
func (a *A[K]) M(
	n int) {
	var local = 1
	type inner struct{}
}

func f() {} // trailing
const (
	// C1 is one.
	C1 = iota
	C2
)

var one, two = 1, 2
var only = 3

type I interface {
	Do() error
}
func (T) N() {}; func oneLine() {}
`, `A struct 3-9
A.x field 6 it is declared together with others in one statement
A.y field 6 it is declared together with others in one statement
A.z field 7-8
A.M method 11-16
A.M.local variable 14 local
A.M.inner struct 15 local
f function 18
C1 constant 20-21
C2 constant 22
one variable 25 it is declared together with others in one statement
two variable 25 it is declared together with others in one statement
only variable 26
I interface 28-30
I.Do method 29
T.N method 31 it shares its lines with other code
oneLine function 31 it shares its lines with other code
`},
		{"a.ts", `/** Doc. */
@Dec()
export class A<T> {
  private x: number = 1;

  // About m.
  m(): void;
  m(a?: number): void {
    const inner = 1;
  }
  // Decorated.
  @Log({ a: 1 })
  n() {}
  constructor() {}
}
export const f = async (a: number) => {
  return a;
};
const p = 1, q = 2;
export function over(a: string): void;
export function over(a: number): void;
export function over(a: any) {}
declare module "mod" {
  export function h(): void;
}
namespace N { export type Q = 1; }
interface I {
  a: number;
  b(): void
}
export default function named() {}
type U = { k: string };
enum E { X, Y }
`, `A class 1-15
A.x property 4
A.m method 6-10
A.m.inner constant 9 local
A.n method 11-13
A.constructor constructor 14
f function 16-18
p constant 19 it is declared together with others in one statement
q constant 19 it is declared together with others in one statement
over function 20-22
mod namespace 23-25
mod.h function 24
N namespace 26
N.Q class 26 it shares its lines with other code
I interface 27-30
I.a property 28
I.b method 29
named function 31
U class 32
U.k property 32 it shares its lines with other code
E enum 33
E.X enumMember 33 it shares its lines with other code
E.Y enumMember 33 it shares its lines with other code
`},
		{"a.py", `#!/usr/bin/env python
# License

# About X.
X: int = 1

# c
@dec
@other(1)
class A(B):
    """Doc."""
    y = 2

    @property
    def z(self):
        def inner():
            pass
        return inner

async def f(): pass
a = b = 3
`, `X variable 4-5
A class 7-18
A.y variable 12
A.z method 14-18
A.z.inner function 16-17 local
f function 20
a variable 21
`},
		{"a.rs", `/// Doc.
#[derive(Debug)]
pub struct S<T> { a: T }

impl<T> Tr for S<T> {
    /// New.
    #[inline]
    pub fn new() -> Self { let x = 1; S { a } }
    const C: i32 = 1;
}
mod m { pub trait T { fn g(); } }
`, `S struct 1-3
S.a field 3 it shares its lines with other code
S.new function 6-8
S.C constant 9
m module 11
m.T interface 11 it shares its lines with other code
m.T.g function 11 it shares its lines with other code
`},
		{"a.c", `// A pair.
typedef struct pair {
	int a, b;
	char *name;
} pair;
struct S { int x; };
static int *f(int a)
{
	int local;
	return 0;
}
int x = 1, *y;
int g(void); /* proto */
#define M(a) (a)
`, `pair class 1-5
pair.pair.a field 3 it is declared together with others in one statement
pair.pair.b field 3 it is declared together with others in one statement
pair.pair.name field 4
S struct 6
S.x field 6 it shares its lines with other code
f function 7-11
f.local variable 9 local
x variable 12 it is declared together with others in one statement
y variable 12 it is declared together with others in one statement
g function 13
M function 14
`},
		{"a.java", `package p;
/** D. */
@A public class Q<T> {
  private final int a = 1, b;
  int c; // c
  Q() {}
  @Override
  public void m() { int l = 1; }
}
`, `Q class 2-9
Q.a field 4 it is declared together with others in one statement
Q.b field 4 it is declared together with others in one statement
Q.c field 5
Q.Q constructor 6
Q.m method 7-8
Q.m.l field 8 local it shares its lines with other code
`},
		{"E.java", "enum E {\n  // one\n  A,\n  B(2) {\n    void f() {}\n  };\n}\n", "E enum 1-7\nE.A enumMember 2-3\nE.B enumMember 4-6 it shares its lines with other code\nE.B.f method 5\n"},
		{"a.c", "enum E {\n  A = 1, // a\n  B\n};\n", "E enum 1-4\nE.A enumMember 2\nE.B enumMember 3\n"},
		{"a.sh", "#!/bin/bash\n# Says hello.\nhello() {\n  local who=$1\n}\nX=1\nexport Y=2\n", "hello function 2-5\nhello.who variable 4 local\nX variable 6\nY variable 7\n"},
		{"broken.go", "package p\n\nfunc good() {}\n\nfunc bad( {\n}\n\n\nfunc later() {}\n", ""},
	} {
		list, err := Outline(c.path, c.text)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for _, s := range list {
			a, b := strings.Count(c.text[:s.Start], "\n")+1, strings.Count(c.text[:s.End], "\n")+1
			fmt.Fprintf(&out, "%s %s %d", s, s.Kind, a)
			if b != a {
				fmt.Fprintf(&out, "-%d", b)
			}
			if s.Local {
				out.WriteString(" local")
			}
			if s.Fixed != "" {
				out.WriteString(" " + s.Fixed)
			}
			out.WriteByte('\n')
			if !strings.HasPrefix(c.text[s.At:], s.Name()) {
				t.Errorf("%s: the name of %s is not at %d", c.path, s, s.At)
			}
		}
		if got := out.String(); got != c.want && c.path != "broken.go" {
			t.Errorf("%s:\n%s\nwant\n%s", c.path, got, c.want)
		}
		if c.path == "broken.go" && !strings.HasPrefix(out.String(), "good function 3\n") {
			t.Errorf("%s:\n%s", c.path, out.String())
		}
	}
	if list, err := Outline("a.sh", "T{\U000659a6\n"); err != nil || len(list) != 0 { // took the process down
		t.Error(list, err)
	}
	if list, err := Outline("a.py", "\ufeffdef größe(x):\n    '日本'\n\ndef f(): pass\n"); err != nil || len(list) != 2 || list[0].Name() != "größe" || list[1].Name() != "f" {
		t.Error(list, err)
	}
	if _, err := Outline("a.txt", ""); !errors.Is(err, ErrNoGrammar) {
		t.Error(err)
	}
	if _, err := Outline("a.go", strings.Repeat("x", maxText+1)); !errors.Is(err, ErrTooBig) {
		t.Error(err)
	}
}

// Whatever a symbol spans is a text of its own: cut out and put back it is the same, and its edits leave the rest alone.
func TestOwnCode(t *testing.T) {
	if !hasParser {
		t.Skip("built without cgo: no grammars")
	}
	files, _ := filepath.Glob("../*/*.go")
	n := 0
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		list, err := Outline(path, text)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			if s.Fixed != "" {
				continue
			}
			n++
			decl, _ := Read(text, s)
			if again, err := Replace(text, s, decl); err != nil || again != text {
				t.Errorf("%s: replacing %s by itself: %v", path, s, err)
			}
			gone, err := Delete(text, s)
			if err != nil || len(gone) >= len(text) {
				t.Errorf("%s: deleting %s: %v", path, s, err)
			}
		}
	}
	if n < 500 {
		t.Errorf("only %d symbols were looked at", n)
	}
}

func TestEdits(t *testing.T) {
	if !hasParser {
		t.Skip("built without cgo: no grammars")
	}
	const src = "package p\n\n// F does.\nfunc F() {\n\tx()\n}\n\nfunc G() {}\n"
	const py = "class A:\n    # note\n    @dec\n    def f(self):\n        pass\n\n    def g(self):\n        pass\n"
	const group = "package p\n\nconst (\n\tA = 1\n\tB = 2\n)\n"
	for _, c := range []struct{ what, path, text, name, op, body, want string }{
		{"the comment stays", "a.go", src, "F", "replace", "func F() int {\n\treturn 1\n}\n", "package p\n\n// F does.\nfunc F() int {\n\treturn 1\n}\n\nfunc G() {}\n"},
		{"the comment is replaced", "a.go", src, "F", "replace", "// F is new.\nfunc F() {}", "package p\n\n// F is new.\nfunc F() {}\n\nfunc G() {}\n"},
		{"decorators stay", "a.py", py, "A.f", "replace", "def f(self):\n    return 1", strings.Replace(py, "        pass", "        return 1", 1)},
		{"decorators are replaced", "a.py", py, "f", "replace", "@other\ndef f(self):\n    return 1", strings.Replace(strings.Replace(py, "        pass", "        return 1", 1), "@dec", "@other", 1)},
		{"copied from the middle of a line", "a.py", py, "f", "replace", "def f(self):\n        return 1", strings.Replace(py, "        pass", "        return 1", 1)},
		{"indented already", "a.py", py, "g", "replace", "    def g(self):\n        return 1", "class A:\n    # note\n    @dec\n    def f(self):\n        pass\n\n    def g(self):\n        return 1\n"},
		{"line ends of the file", "a.go", strings.ReplaceAll(src, "\n", "\r\n"), "F", "replace", "func F() {\n}", strings.ReplaceAll("package p\n\n// F does.\nfunc F() {\n}\n\nfunc G() {}\n", "\n", "\r\n")},
		{"before, above the comment", "a.go", src, "F", "before", "func E() {}", "package p\n\nfunc E() {}\n\n// F does.\nfunc F() {\n\tx()\n}\n\nfunc G() {}\n"},
		{"after the last", "a.go", src, "G", "after", "func H() {}\n", src + "\nfunc H() {}\n"},
		{"after the last without a line's end", "a.go", "package p\n\nvar x = 1", "x", "after", "var y = 2", "package p\n\nvar x = 1\n\nvar y = 2"},
		{"in a group", "a.go", group, "A", "after", "C = 3", "package p\n\nconst (\n\tA = 1\n\tC = 3\n\tB = 2\n)\n"},
		{"a method after a method", "a.py", py, "A.g", "after", "def h(self):\n    pass", py + "\n    def h(self):\n        pass\n"},
		{"gone with its comment", "a.go", src, "F", "delete", "", "package p\n\nfunc G() {}\n"},
		{"the last one gone", "a.go", src, "G", "delete", "", "package p\n\n// F does.\nfunc F() {\n\tx()\n}\n"},
		{"one of a group gone", "a.go", group, "B", "delete", "", "package p\n\nconst (\n\tA = 1\n)\n"},
		{"one of two in a statement", "a.go", "package p\nvar a, b = 1, 2\n", "a", "delete", "", "error: a cannot be edited as a whole: it is declared together with others in one statement; use edit instead"},
		{"next to a mistake", "a.go", "package p\n\nfunc F() {\n\tx(\n}\n", "F", "replace", "func F() {}", "error: F cannot be edited as a whole: there is a syntax error in it or next to it; use edit instead"},
	} {
		list, err := Outline(c.path, c.text)
		if err != nil {
			t.Fatal(err)
		}
		found := Find(list, c.name)
		if len(found) != 1 {
			t.Errorf("%s: %d symbols named %s", c.what, len(found), c.name)
			continue
		}
		var got string
		switch c.op {
		case "replace":
			got, err = Replace(c.text, found[0], c.body)
		case "before":
			got, err = Before(c.text, found[0], c.body)
		case "after":
			got, err = After(c.text, found[0], c.body)
		case "delete":
			got, err = Delete(c.text, found[0])
		}
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != c.want {
			t.Errorf("%s:\n%q\nwant\n%q", c.what, got, c.want)
		}
	}
}

func TestNamePaths(t *testing.T) {
	list := []Symbol{{Path: []string{"f", "m"}, Local: true}, {Path: []string{"A", "m"}}, {Path: []string{"m"}}, {Path: []string{"B", "A", "m"}}}
	for path, want := range map[string]string{"m": "A.m m B.A.m f.m", "A.m": "A.m B.A.m", "A/m": "A.m B.A.m", "(*A).m": "A.m B.A.m", "A[T]::m()": "A.m B.A.m", "/A/m": "A.m", "x": "", "": "", "C.A.m": ""} {
		var got []string
		for _, s := range Find(list, path) {
			got = append(got, s.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s finds %q", path, got)
		}
	}
}

// Without a grammar the server's range is widened by lines, or nothing is done.
func TestLines(t *testing.T) {
	for _, c := range []struct{ what, path, text, rng, want string }{
		{"a template and its comment", "a.cpp", "int z;\n\n/// Doc.\ntemplate <typename T>\nstruct S {\n  int a;\n};\n", "struct S {\n  int a;\n}", "/// Doc.\ntemplate <typename T>\nstruct S {\n  int a;\n};"},
		{"a modifier before", "a.cpp", "static int x = 1; // one\n", "int x = 1", "static int x = 1;"},
		{"a block comment", "a.cs", "class A {\n  /* one\n   * two\n   */\n  [Attr]\n  void m() { }\n}\n", "void m() { }", "/* one\n   * two\n   */\n  [Attr]\n  void m() { }"},
		{"decorators", "a.kt", "@A\n@B(1)\nfun f() { }\n", "fun f() { }", "@A\n@B(1)\nfun f() { }"},
		{"an include is no comment", "a.cpp", "#include <a>\nint f() { }\n", "int f() { }", "int f() { }"},
		{"only the name", "a.lua", "X = 2\n", "X", "no: the server's range ends in the middle of a line"},
		{"two on a line", "a.lua", "a = 1; b = 2\n", "b = 2", "no: it shares its first line with other code"},
		{"half a body", "a.lua", "def f(a\n  b)\n", "def f(a", "no: its brackets do not match, so its end is not certain"},
	} {
		start := strings.Index(c.text, c.rng)
		s := Lines(c.path, c.text, []string{"x"}, "function", start, start+len(c.rng), start)
		got := c.text[s.Start:s.End]
		if s.Fixed != "" {
			got = "no: " + s.Fixed
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

func FuzzOutline(f *testing.F) {
	f.Add("package p\n\n// F.\nfunc (t *T) F() {}\n", 0)
	f.Add("@d\nclass A:\n  x = 1\n", 1)
	f.Add("export const f = () => 1, g;", 2)
	f.Add("struct S { int a; } s;\n", 3)
	f.Fuzz(func(t *testing.T, text string, lang int) {
		path := "a" + []string{".go", ".py", ".ts", ".c", ".rs", ".java", ".sh", ".tsx", ".js"}[(lang%9+9)%9]
		list, err := Outline(path, text)
		if err != nil {
			return
		}
		for _, s := range list {
			if s.Start > s.Deco || s.Deco > s.Bare || s.Bare > s.End || s.End > len(text) || len(s.Path) == 0 {
				t.Fatalf("%+v of %q", s, text)
			}
			if s.Fixed != "" {
				continue
			}
			if out, err := Delete(text, s); err != nil || len(out) > len(text)+1 {
				t.Fatalf("%v: %q", err, out)
			}
			if _, err := After(text, s, "x"); err != nil {
				t.Fatal(err)
			}
		}
	})
}
