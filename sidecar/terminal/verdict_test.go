package terminal

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
)

// --approve clean: only a fresh verdict without an error is a yes, and only for changes of files that no person must see.
func TestOnlyACleanVerdictIsAYes(t *testing.T) {
	e, w := change.Problem{Path: "/p/a.go", Line: 3, Column: 1, Severity: change.SeverityError, Message: "no such thing"}, change.Problem{Severity: change.SeverityWarning}
	edit := func(v *change.Verdict) permission.Request {
		return permission.Request{Permission: "edit", Change: &change.Set{ID: "c", Verdict: v}}
	}
	protected := edit(&change.Verdict{Certainty: change.Fresh})
	protected.Why = ".git/config is protected"
	for name, c := range map[string]struct {
		r    permission.Request
		says string // "" for a yes
	}{
		"clean":             {edit(&change.Verdict{Certainty: change.Fresh, Fixed: []change.Problem{e}}), ""},
		"a warning":         {edit(&change.Verdict{Certainty: change.Fresh, Introduced: []change.Problem{w}}), ""},
		"an error":          {edit(&change.Verdict{Certainty: change.Fresh, Introduced: []change.Problem{e}}), "a.go:3:1: no such thing"},
		"behind warnings":   {edit(&change.Verdict{Certainty: change.Fresh, Introduced: []change.Problem{w, w, w, w, w, e}}), "a.go:3:1: no such thing"},
		"partial":           {edit(&change.Verdict{Certainty: change.Partial, Reason: "still indexing"}), "partial: still indexing"},
		"partial and wrong": {edit(&change.Verdict{Certainty: change.Partial, Introduced: []change.Problem{e}}), "introduces 1"},
		"pending":           {edit(&change.Verdict{Certainty: change.Pending}), "pending"},
		"unavailable":       {edit(&change.Verdict{Certainty: change.Unavailable, Reason: "no server"}), "no server"},
		"not checked":       {edit(nil), "no language server has looked"},
		"protected":         {protected, "no user can answer"},
		"a command":         {permission.Request{Permission: "bash", Title: "ls"}, "no user can answer"},
	} {
		term := New(Options{Out: io.Discard, Cwd: "/p", Approve: IfClean})
		reply, err := term.AskPermission(context.Background(), c.r)
		if err != nil {
			t.Fatal(name, err)
		}
		if yes := reply.Kind == permission.Once; yes != (c.says == "") || !yes && (reply.Kind != permission.Reject || !strings.Contains(reply.Message, c.says)) {
			t.Errorf("%s: %+v", name, reply)
		}
	}
}
