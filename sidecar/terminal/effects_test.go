package terminal

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
)

// The words about a hunk follow what was decided before it: a definition and its use need each other, a mistake is named with
// the hunk that brings it, and the verdict is said again once a decision has changed it.
func TestEachHunkSaysWhatItDoesUnderTheDecisionsSoFar(t *testing.T) {
	old := "package a\n\nfunc old() {}\n\n\n\n\n\n\nvar _ = old\n\n\n\n\n\n\n\nvar x int = 1\n"
	text := strings.ReplaceAll(old, "old", "new")
	text = strings.Replace(text, "int = 1", `int = ""`, 1)
	set := change.New("c", []change.File{{Path: "/p/a.go", Kind: change.Edit, Old: old, New: text}})
	judge := func(set *change.Set) *change.Verdict {
		v := &change.Verdict{Certainty: change.Fresh}
		now := old
		if len(set.Files) > 0 {
			now = set.Files[0].New
		}
		has := func(s string) bool { return strings.Contains(now, s) }
		bad := func(m string) {
			v.Introduced = append(v.Introduced, change.Problem{Path: "/p/a.go", Line: 3, Column: 1, Severity: change.SeverityError, Message: m})
		}
		for _, name := range []string{"old", "new"} {
			if has("_ = "+name) && !has("func "+name) {
				bad("undefined: " + name)
			}
		}
		if has(`int = ""`) {
			bad("not an int")
		}
		return v
	}
	set = set.WithVerdict(judge(set))
	if len(set.Files[0].Hunks) != 3 {
		t.Fatal(set.Files[0].Hunks)
	}
	for name, c := range map[string]struct {
		keys string
		want []string
		not  []string
	}{
		"all": {"yyy", []string{
			"hunk 1: needs hunk 2 · if you reject it: introduces 1 (a.go:3:1 undefined: new)",
			"hunk 2: needs hunk 1 · if you reject it: introduces 1 (a.go:3:1 undefined: old)",
			"hunk 3: introduces 1 (a.go:3:1 not an int)",
		}, []string{"so far"}},
		"the definition is rejected": {"nny", []string{
			"with your decisions so far: fixes 0 errors, introduces 2",
			"hunk 2: needs hunk 1 · introduces 1 (a.go:3:1 undefined: new)",
			"with your decisions so far: fixes 0 errors, introduces 1",
		}, []string{"hunk 2: needs hunk 1 · if you reject"}},
	} {
		var out bytes.Buffer
		term := New(Options{Out: &out, Cwd: "/p", Approve: Ask, Keys: &script{keys: c.keys}, Width: 200,
			Check: func(_ context.Context, _ string, set *change.Set) *change.Verdict { return judge(set) }})
		if _, err := term.AskPermission(context.Background(), permission.Request{Permission: "edit", Change: set}); err != nil {
			t.Fatal(name, err)
		}
		term.Close()
		for _, w := range c.want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%s: %q is not in\n%s", name, w, out.String())
			}
		}
		for _, w := range c.not {
			if strings.Contains(out.String(), w) {
				t.Errorf("%s: %q is in\n%s", name, w, out.String())
			}
		}
	}
}
