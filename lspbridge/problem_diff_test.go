package lspbridge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/change"
)

func TestDiffDiagnostics(t *testing.T) {
	list := func(s string) (out []change.Problem) { // "3 message" per problem
		for one := range strings.SplitSeq(s, ",") {
			var line int
			var msg string
			if n, _ := fmt.Sscanf(one, "%d %s", &line, &msg); n == 2 {
				out = append(out, change.Problem{Message: msg, Severity: change.SeverityError, Line: line})
			}
		}
		return out
	}
	show := func(ds []change.Problem) string {
		var out []string
		for _, d := range ds {
			out = append(out, fmt.Sprintf("%d %s", d.Line, d.Message))
		}
		return strings.Join(out, ",")
	}
	for _, c := range []struct {
		name, before, after, introduced, fixed string
		unchanged                              int
	}{
		{"nothing", "", "", "", "", 0},
		{"moved by lines above", "3 x,9 y", "7 x,13 y", "", "", 2},
		{"one more of the same, the far one is new", "3 x", "3 x,40 x", "40 x", "", 1},
		{"one less of the same, the far one is fixed", "3 x,40 x", "4 x", "", "40 x", 1},
		{"another message", "3 x", "3 y", "3 y", "3 x", 0},
		{"two of the same are gone", "3 x,40 x", "", "", "3 x,40 x", 0},
		{"numbers of the message count", "3 int32", "3 int64", "3 int64", "3 int32", 0},
		{"names after a colon count", "3 a:x", "3 a:y", "3 a:y", "3 a:x", 0},
		{"a colon before a name counts", "3 a:x", "3 ax", "3 ax", "3 a:x", 0},
		{"a colon before a mark counts", "3 a:/", "3 a/", "3 a/", "3 a:/", 0},
		{"what follows a position counts", "3 a:5x", "3 a:5y", "3 a:5y", "3 a:5x", 0},
		{"marks after a position count", "3 a:5-", "3 a:5", "3 a:5", "3 a:5-", 0},
		{"a message may end in a colon", "3 expected:", "4 expected:", "", "", 1},
		{"any digits are positions", "3 a.go:90:09", "3 a.go:5", "", "", 1},
		{"positions in the message do not count", "3 seen-at-a.go:12:5", "4 seen-at-a.go:13:5", "", "", 1},
	} {
		in, fixed, same := DiffDiagnostics(list(c.before), list(c.after))
		if show(in) != c.introduced || show(fixed) != c.fixed || same != c.unchanged {
			t.Errorf("%s: introduced %q, fixed %q, unchanged %d", c.name, show(in), show(fixed), same)
		}
	}
}

// The same words of another severity, server, source or code are another problem.
func TestWhatMakesAProblemAnother(t *testing.T) {
	base := change.Problem{Severity: change.SeverityError, Server: "s", Source: "ab", Code: "c", Message: "m"}
	for name, alter := range map[string]func(*change.Problem){
		"severity":               func(p *change.Problem) { p.Severity = change.SeverityWarning },
		"server":                 func(p *change.Problem) { p.Server = "t" },
		"source":                 func(p *change.Problem) { p.Source = "x" },
		"code":                   func(p *change.Problem) { p.Code = "x" },
		"where the source ends":  func(p *change.Problem) { p.Source, p.Code = "a", "bc" },
		"where the code ends":    func(p *change.Problem) { p.Code, p.Message = "", "cm" },
		"where the server ends":  func(p *change.Problem) { p.Server, p.Source = "", "sab" },
		"nothing but the column": nil,
	} {
		other := base
		other.Column = 7
		want := 0
		if alter != nil {
			alter(&other)
			want = 1
		}
		if in, fixed, same := DiffDiagnostics([]change.Problem{base}, []change.Problem{other}); len(in) != want || len(fixed) != want || same != 1-want {
			t.Errorf("%s: introduced %v, fixed %v, unchanged %d", name, in, fixed, same)
		}
	}
}

// Two servers often report the same problem of one line; one server that says the same twice in a line means two problems.
func TestUniqueProblems(t *testing.T) {
	at := func(server string, column int, s change.Severity) change.Problem {
		return change.Problem{Path: "/a", Line: 3, Column: column, Server: server, Severity: s, Message: "x is unused."}
	}
	for _, c := range []struct {
		name string
		list []change.Problem
		want int
	}{
		{"two servers, another column", []change.Problem{at("s", 1, change.SeverityError), at("t", 5, change.SeverityError)}, 1},
		{"one server, another column", []change.Problem{at("s", 1, change.SeverityError), at("s", 5, change.SeverityError)}, 2},
		{"one server, another severity", []change.Problem{at("s", 1, change.SeverityWarning), at("s", 1, change.SeverityError)}, 1},
	} {
		got := unique(c.list)
		if len(got) != c.want || !got[0].IsError() {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// clangd says behind a message that it has a fix for it, and its index decides when.
func TestAFixIsNoPartOfAProblem(t *testing.T) {
	p := func(message string) []change.Problem {
		return []change.Problem{{Path: "/p/a.cc", Line: 1, Severity: change.SeverityError, Server: "clangd", Message: message}}
	}
	for _, suffix := range []string{" (fix available)", " (fixes available)"} {
		if in, fixed, same := DiffDiagnostics(p("Use of undeclared identifier 'x'"), p("Use of undeclared identifier 'x'"+suffix)); len(in)+len(fixed) > 0 || same != 1 {
			t.Errorf("%q: %v %v", suffix, in, fixed)
		}
	}
}
