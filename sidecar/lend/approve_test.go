package lend

import (
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/sidecar/terminal"
	"github.com/pillion-dev/pillion/tools/permission"
)

// --approve is an answer for the person's own rules; a managed rule wants a person, and says so where there is none.
func TestApproveDoesNotAnswerForManagedRules(t *testing.T) {
	for _, approve := range []terminal.Approve{terminal.All, terminal.IfClean, terminal.Ask} {
		l := &Server{approve: approve, dir: "/p"}
		got, err := l.AskPermission(t.Context(), permission.Request{Permission: "bash", Managed: "/etc/pillion/pillion.jsonc:3:5"})
		if err != nil || got.Kind != permission.Reject || !strings.Contains(got.Message, "/etc/pillion/pillion.jsonc:3:5") || strings.Contains(got.Message, "--approve all") {
			t.Errorf("--approve %s: %+v, %v", approve, got, err)
		}
	}
	l := &Server{approve: terminal.All}
	if got, err := l.AskPermission(t.Context(), permission.Request{Permission: "bash"}); err != nil || got.Kind != permission.Once {
		t.Errorf("a rule of the person's: %+v, %v", got, err)
	}
}
