package terminal

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
)

// A proposal of five hunks: two that belong together, two that are a verified rename, and one of its own between them.
func grouped() *change.Set {
	set := change.New("c", []change.File{
		{Path: "/p/a.go", Kind: change.Edit, Old: "1\n-\n2\n-\n3\n", New: "one\n-\ntwo\n-\nthree\n"},
		{Path: "/p/b.go", Kind: change.Edit, Old: "4\n-\n5\n", New: "four\n-\nfive\n"},
	})
	return set.WithEvidence(&change.Evidence{
		Attempts: 2,
		Checks:   []change.Check{{Command: "go test", Status: change.EvidenceFailed, ExitCode: 1, Tests: []change.TestResult{{Name: "TestX", Suite: "p", Status: change.EvidenceFailed}}}},
		Groups: []change.Group{
			{Kind: change.GroupRename, Title: "verified rename A → B, 2 places", Hunks: []string{"1.1", "2.1"}, Verified: true},
			{Kind: change.GroupTogether, Title: "C and its use", Hunks: []string{"1.2", "2.2"}},
		},
	})
}

// What belongs together is one question, what is verified is asked last and in one line, and o opens either.
func TestHunksOfAGroupAreOneDecision(t *testing.T) {
	for name, c := range map[string]struct {
		keys string
		want map[string]change.DecisionKind
		not  string // not printed
	}{
		"each as one":                 {"yyy", map[string]change.DecisionKind{"1.1": change.Accept, "2.1": change.Accept, "1.2": change.Accept, "2.2": change.Accept, "1.3": change.Accept}, "+one"},
		"no to the rename":            {"yyn", map[string]change.DecisionKind{"1.1": change.Reject, "2.1": change.Reject, "1.2": change.Accept, "2.2": change.Accept, "1.3": change.Accept}, "+one"},
		"no to what belongs together": {"nyy", map[string]change.DecisionKind{"1.1": change.Accept, "2.1": change.Accept, "1.2": change.Reject, "2.2": change.Reject, "1.3": change.Accept}, "+one"},
		"opened":                      {"oyynoyn", map[string]change.DecisionKind{"1.2": change.Accept, "1.3": change.Accept, "2.2": change.Reject, "1.1": change.Accept, "2.1": change.Reject}, "nothing of this"},
		"the rest unseen":             {"yay", map[string]change.DecisionKind{"1.1": change.Accept, "2.1": change.Accept, "1.2": change.Accept, "2.2": change.Accept, "1.3": change.Accept}, "+one"},
		"stopped":                     {"yq", map[string]change.DecisionKind{"1.1": change.Reject, "2.1": change.Reject, "1.2": change.Accept, "2.2": change.Accept, "1.3": change.Reject}, "+one"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			term := New(Options{Out: &out, Cwd: "/p", Approve: Ask, Keys: &script{keys: c.keys}, Width: 200})
			reply, err := term.AskPermission(context.Background(), permission.Request{Permission: "edit", Change: grouped(), CallID: "x"})
			if err != nil {
				t.Fatal(err)
			}
			term.Close()
			for id, want := range c.want {
				if got := reply.Decisions.Hunks[id].Kind; got != want {
					t.Errorf("hunk %s: %q, want %q\n%s", id, got, want, out.String())
				}
			}
			if len(reply.Decisions.Hunks) != 5 {
				t.Errorf("%d decisions", len(reply.Decisions.Hunks))
			}
			for _, want := range []string{"FAILED: go test (exit 1, 0.0 s, 1 of 1 test failed).", "failed: TestX (p)", "2 earlier attempts went back to the agent", "verified rename A → B, 2 places"} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not in\n%s", want, out.String())
				}
			}
			if strings.Contains(out.String(), c.not) {
				t.Errorf("%q is in\n%s", c.not, out.String())
			}
		})
	}
}

// Names of tests and words of the agent come from outside: they cannot move the cursor or turn the line around.
func TestEvidenceHidesNothing(t *testing.T) {
	var out bytes.Buffer
	term := New(Options{Out: &out, Cwd: "/p", Approve: Ask, Keys: &script{keys: "y"}, Width: 200})
	set := change.New("c", []change.File{{Path: "/p/a", Kind: change.Edit, Old: "1\n", New: "2\n"}}).WithEvidence(&change.Evidence{
		Insists: "all \x1b[2Jfine\u202e", Checks: []change.Check{{Command: "x\rPassed", Status: change.EvidenceFailed, Tests: []change.TestResult{{Name: "T\x1b[1A", Status: change.EvidenceFailed}}}}})
	if _, err := term.AskPermission(context.Background(), permission.Request{Permission: "edit", Change: set}); err != nil {
		t.Fatal(err)
	}
	term.Close()
	if strings.ContainsAny(out.String(), "\x1b\r\u202e") {
		t.Errorf("%q", out.String())
	}
}
