package check

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools/change"
)

// The findings of an answer are read whatever Markdown the model puts around them; what names no line of the project is not one.
func TestFindingsOfAnAnswer(t *testing.T) {
	lines := func(path string) (int, bool) {
		n, ok := map[string]int{"/p/a.go": 50, "/p/my dir/b c.py": 9, "/p/empty": 0}[path]
		return n, ok
	}
	for name, c := range map[string]struct {
		answer string
		want   []string
	}{
		"as asked":           {"- a.go:3: error: the file is not closed\n- a.go:7-9: warning: races", []string{"a.go:3-3 error the file is not closed", "a.go:7-9 warning races"}},
		"bold and code":      {"1. **`a.go:3`** — **Bug**: not closed", []string{"a.go:3-3 error not closed"}},
		"bold after it":      {"- a.go:3: error: **x** is wrong\n- a.go:4: **High:** y", []string{"a.go:3-3 error **x** is wrong", "a.go:4-4 error y"}},
		"a heading":          {"### a.go:12 Leaks\n\nIt is never closed.\n\nOtherwise fine.", []string{"a.go:12-12 warning Leaks"}},
		"a link":             {"* [a.go:3](a.go#L3): nit: rename it", []string{"a.go:3-3 information rename it"}},
		"GitHub's lines":     {"- a.go:L3-L5: too long", []string{"a.go:3-5 warning too long"}},
		"a column":           {"a.go:3:17: unused", []string{"a.go:3-3 warning unused"}},
		"more lines":         {"- a.go:3: leaks\n  It is opened here\n  and never closed.\n\nAll else is good.", []string{"a.go:3-3 warning leaks\n  It is opened here\n  and never closed."}},
		"code in it":         {"- a.go:3: leaks:\n  ```go\n  a.go:9: not a finding\n  ```\n- a.go:4: x", []string{"a.go:3-3 warning leaks:\n  ```go\n  a.go:9: not a finding\n  ```", "a.go:4-4 warning x"}},
		"blanks":             {"- my dir/b c.py:9: wrong", []string{"my dir/b c.py:9-9 warning wrong"}},
		"absolute":           {"- /p/a.go:1: wrong", []string{"a.go:1-1 warning wrong"}},
		"beyond the end":     {"- a.go:49-99: wrong", []string{"a.go:49-50 warning wrong"}},
		"no such file, line": {"- z.go:1: wrong\n- a.go:51: wrong\n- a.go:0: wrong\n- ../a.go:1: wrong\n- at 10:30: we met", nil},
		"one made up":        {"- a.go:3: leaks\n- z.go:1: made up\n  of nothing\n- a.go:4: x", []string{"a.go:3-3 warning leaks", "a.go:4-4 warning x"}},
		"empty file":         {"- empty:1: is empty", []string{"empty:1-1 warning is empty"}},
		"nothing":            {"No findings. I read a.go:3 and all that uses it.", nil},
		"only a place":       {"- a.go:3", nil},
	} {
		got := []string{}
		for _, f := range ParseFindings("/p", c.answer, lines) {
			r, _ := filepath.Rel("/p", f.Path)
			got = append(got, fmt.Sprintf("%s:%d-%d %s %s", r, f.Line, f.EndLine, f.Severity, f.Message))
		}
		if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s:\n%q\nwant\n%q", name, got, c.want)
		}
	}
}

func FuzzParseFindings(f *testing.F) {
	f.Add("- a.go:3: error: x\n  y\n```\nz")
	f.Add("**`a.go:1-2`** \n\n#")
	f.Fuzz(func(t *testing.T, answer string) {
		for _, x := range ParseFindings("/p", answer, func(string) (int, bool) { return 10, true }) {
			if x.Line < 1 || x.EndLine < x.Line || x.EndLine > 10 || strings.TrimSpace(x.Message) == "" || !strings.HasPrefix(x.Path, "/p") {
				t.Errorf("%+v", x)
			}
		}
	})
}

// Problems on changed lines come first, the gravest of them before the others; those that the change brought about elsewhere follow.
func TestFindingsOnChangedLinesComeFirst(t *testing.T) {
	p := &Plan{Root: "/p", Dir: "/p", Files: []lspbridge.Proposal{{Path: "/p/a.go", Old: "1\n2\n3\n4\n", Text: "1\nTWO\n3\n4\nfive\n"}}}
	problem := func(path string, line, end int, s change.Severity) change.Problem {
		return change.Problem{Path: path, Line: line, Column: 1, EndLine: end, EndColumn: 1, Severity: s, Message: fmt.Sprint(line), Server: "gopls"}
	}
	got := p.Findings(change.Verdict{Introduced: []change.Problem{
		problem("/p/b.go", 1, 1, change.SeverityError), problem("/p/a.go", 3, 3, change.SeverityError), problem("/p/a.go", 5, 5, change.SeverityWarning),
		problem("/p/a.go", 2, 3, change.SeverityError), problem("/p/a.go", 1, 2, change.SeverityHint),
	}})
	var order []string
	for _, f := range got {
		order = append(order, fmt.Sprintf("%s:%d-%d %v", filepath.Base(f.Path), f.Line, f.EndLine, f.Changed))
	}
	if s := strings.Join(order, ", "); s != "a.go:2-2 true, a.go:5-5 true, a.go:3-3 false, b.go:1-1 false, a.go:1-1 false" {
		t.Error(s)
	}
	if n, ok := p.Lines("/p/a.go"); n != 5 || !ok {
		t.Error(n, ok)
	}
}
