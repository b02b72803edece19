package symbol

import (
	"strings"
	"testing"
)

func TestSyntax(t *testing.T) {
	const good, bad = "package a\n\nfunc f() {\n}\n", "package a\n\nfunc f( {\n}\n"
	long := good + strings.Repeat("// words\n", longText/9+1)
	for _, c := range []struct {
		name  string
		texts []Revision
		want  string
	}{
		{"nothing", nil, ""},
		{"no error", []Revision{{"/p/a.go", "a.go", good, good + "// more\n"}}, "parsing alone finds no syntax error"},
		{"one is no code", []Revision{{"/p/a.go", "a.go", good, good + "// more\n"}, {"/p/a.words", "a.words", "", bad}}, "parsing alone finds no syntax error in 1 of 2 files"},
		{"none is code", []Revision{{"/p/a.words", "a.words", "", bad}}, ""},
		{"an error", []Revision{{"/p/a.go", "a.go", good, bad}}, "parsing alone finds a syntax error that this change introduces in a.go (at or before line 3)"},
		{"in a new file", []Revision{{"/p/b.go", "b.go", "", bad}, {"/p/a.go", "a.go", good, bad}},
			"parsing alone finds a syntax error that this change introduces in b.go (at or before line 3) and in a.go (at or before line 3)"},
		{"it was there before", []Revision{{"/p/a.go", "a.go", bad, bad + "// more\n"}}, ""},
		{"too long to parse for good news", []Revision{{"/p/a.go", "a.go", good, long}}, ""},
		{"not for bad news", []Revision{{"/p/a.go", "a.go", good, bad + strings.TrimPrefix(long, good)}},
			"parsing alone finds a syntax error that this change introduces in a.go (at or before line 3)"},
	} {
		if got := Syntax(c.texts); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
