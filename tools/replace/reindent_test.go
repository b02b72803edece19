package replace

import (
	"strings"
	"testing"
)

func TestReindentDeclarations(t *testing.T) {
	for _, c := range []struct {
		what, there, lines string
		beside             bool
		want               string // "refused" when the depth cannot be told
	}{
		{"dedented", "\tdef f(self):\n\t\tpass", "def f(self):\n    return 1", false, "\tdef f(self):\n\t\treturn 1"},
		{"copied from the middle of a line", "    def f(self):\n        pass", "def f(self):\n        return 1", false, "    def f(self):\n        return 1"},
		{"as it stands", "    def f(self):\n        pass", "    def f(self):\n        if x:\n            return 1", false, "    def f(self):\n        if x:\n            return 1"},
		{"four spaces in a file of tabs", "func f() {\n\tx()\n}", "func f() {\n    if a {\n        y()\n    }\n}", false, "func f() {\n\tif a {\n\t\ty()\n\t}\n}"},
		{"two spaces in a file of four", "def f():\n    x()\n    if y:\n        z()", "def f():\n  x()\n  if y:\n    w()", false, "def f():\n    x()\n    if y:\n        w()"},
		{"tabs in a file of spaces", "  f() {\n    x();\n  }", "\tf() {\n\t\ty();\n\t}", false, "  f() {\n    y();\n  }"},
		{"beside another, dedented", "    def f(self):\n        pass", "def g(self):\n    return 2", true, "    def g(self):\n        return 2"},
		{"beside another, from the middle of a line", "\tget() {\n\t\treturn 1\n\t}", "put() {\n\t\treturn 2\n\t}", true, "\tput() {\n\t\treturn 2\n\t}"},
		{"an overload less", "  over(a: string): void;\n  over(a: unknown) {\n    return a;\n  }", "over(a: unknown) {\n  return 1;\n}", false, "  over(a: unknown) {\n    return 1;\n  }"},
		{"three spaces in a file of two, nothing else in the body", "// C.\nf() {\n  x();\n}", "// C.\nf() {\n   y();\n}", false, "// C.\nf() {\n  y();\n}"},
		{"four spaces in a file of two, deeper", "  f() {\n    x();\n  }", "    f() {\n        y(1);\n    }", false, "  f() {\n    y(1);\n  }"},
		{"a first line that is continued shows no level", "f(a,\n  b) {\n  x();\n}", "f(a,\n    c) {\n  y();\n}", false, "f(a,\n    c) {\n  y();\n}"},
		{"blank lines stay empty", "\tf() {\n\t\tx()\n\t}", "f() {\n\n\tx()\n}", false, "\tf() {\n\n\t\tx()\n\t}"},
	} {
		got, ok := Reindent(nil, strings.Split(c.there, "\n"), strings.Split(c.lines, "\n"), c.beside)
		out := strings.Join(got, "\n")
		if !ok {
			out = "refused"
		}
		if out != c.want {
			t.Errorf("%s: got\n%q\nwant\n%q", c.what, out, c.want)
		}
	}
}
