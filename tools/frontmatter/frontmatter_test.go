package frontmatter

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		src, body, key, value string
		bodyLine              int
	}{
		"head and body":      {"---\nname: x\ndescription: does y\n---\n\nDo it.\n", "Do it.", "description", "does y", 6},
		"no head":            {"\nDo it.\n", "Do it.", "name", "", 2},
		"crlf and mark":      {"\xef\xbb\xbf---\r\nname: x\r\n---\r\nDo it.\r\n", "Do it.", "name", "x", 4},
		"colon in a value":   {"---\ndescription: Use it when: asked. Examples: <a>\nname: y\n---\nB", "B", "description", "Use it when: asked. Examples: <a>", 5},
		"lists of arguments": {"---\nargument-hint: [from] [to]\n---\nB", "B", "argument-hint", "[from] [to]", 4},
		"quote and colon":    {"---\ndescription: it's here: now\n---\nB", "B", "description", "it's here: now", 4},
		"a block":            {"---\ndescription: |\n  one\n  two\n---\nB", "B", "description", "one\ntwo\n", 6},
		"empty head":         {"---\n---\nB", "B", "name", "", 3},
		"dashes below":       {"---\nname: x\n---\nB\n---\nC", "B\n---\nC", "name", "x", 4},
	} {
		d, err := Parse([]byte(c.src))
		if err != nil || d.Body != c.body || d.Text(c.key) != c.value || d.BodyLine != c.bodyLine {
			t.Errorf("%s: %+v %q, %v", name, d, d.Text(c.key), err)
		}
	}
}

func TestMistakesHaveTheirLine(t *testing.T) {
	for src, line := range map[string]int{
		"---\nname: x\n":                   1,
		"---\nname: x\nlist: [1, 2\n---\n": 3,
		"---\n- a\n- b\n---\n":             2,
		"---\na: &x 1\nb: *x\n---\n":       3,
		"---\na: " + strings.Repeat("[", 50) + strings.Repeat("]", 50) + "\n---\n": 2,
	} {
		_, err := Parse([]byte(src))
		if err == nil {
			t.Errorf("%q is taken", src)
			continue
		}
		if got, msg := Place(err); got < line || got > line+1 || msg == "" {
			t.Errorf("%q: line %d (%s), want %d", src, got, msg, line)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("---\nname: x\n---\nbody"))
	f.Add([]byte("---\na: b: c\n---\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		d, err := Parse(src)
		if err == nil && strings.TrimSpace(d.Body) != d.Body {
			t.Errorf("body %q", d.Body)
		}
	})
}
