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
		{"positions in the message do not count", "3 seen-at-a.go:12:5", "4 seen-at-a.go:13:5", "", "", 1},
	} {
		in, fixed, same := DiffDiagnostics(list(c.before), list(c.after))
		if show(in) != c.introduced || show(fixed) != c.fixed || same != c.unchanged {
			t.Errorf("%s: introduced %q, fixed %q, unchanged %d", c.name, show(in), show(fixed), same)
		}
	}
}
