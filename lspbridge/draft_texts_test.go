package lspbridge

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/change"
)

// Every question about a draft lays its texts over the documents and takes them off again, so the server's versions continue between the
// question for the actions and the one for an action's edit. The text is the same in both, and the edit is right.
func TestAnActionOfferedForADraftCanBeCarriedOut(t *testing.T) {
	m, root := project(t, "gopls", map[string]string{"go.mod": "module x\n\ngo 1.24\n", "a.go": "package x\n"})
	path := filepath.Join(root, "a.go")
	const text = "package x\n\nvar Loud = strings.ToUpper(\"a\")\n"
	ctx := WithTexts(longer(t), []Proposal{{Path: path, Text: text}})
	d := m.Check(longer(t), []Proposal{{Path: path, Text: text}}) // waits until gopls knows the project
	if d.Certainty != change.Fresh || len(d.Introduced) != 1 {
		t.Fatalf("%s %q: %q", d.Certainty, d.Reason, messages(d.Introduced))
	}
	for round := range 3 {
		list, err := m.CodeActions(ctx, path, ProblemRange(d.Introduced[0]), []string{"quickfix"}, d.Introduced)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(list, func(a Action) bool { return strings.Contains(a.Title, "Add import") })
		if i < 0 {
			t.Fatalf("round %d: no import is offered: %+v", round, list)
		}
		edits, err := m.ResolveAction(ctx, list[i])
		if err != nil || len(edits) != 1 || !strings.Contains(edits[0].New, `import "strings"`) || edits[0].Old != text {
			t.Fatalf("round %d: %v %+v", round, err, edits)
		}
		// The draft's text has changed since: the same action's positions are of a text that is gone.
		other := WithTexts(longer(t), []Proposal{{Path: path, Text: "// one line more\n" + text}})
		if edits, err := m.ResolveAction(other, list[i]); err == nil && !strings.HasPrefix(edits[0].New, "// one line more\npackage x\n") {
			t.Errorf("round %d: an old action was carried out on another text: %q", round, edits[0].New)
		}
	}
}
