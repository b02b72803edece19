package terminal

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/permission"
)

// second is the key that confirms one that allows more than once: no first, then the key again and yes.
func second(key string) string {
	if strings.Contains("APE", key) {
		return "n" + key + "y"
	}
	return ""
}

// A question shows the whole command, redirections and further lines too, with look-alikes marked, and each key lasts
// as long as it says.
func TestAQuestionShowsWhatRunsAndHowLongAnAnswerLasts(t *testing.T) {
	r := permission.Request{
		Permission: "bash", Patterns: []string{"echo hi", "l\u0455 x"}, Always: []string{"echo *"}, Title: "List files",
		Why: "it runs echo hi; outside the project it writes /tmp/x", Metadata: map[string]any{"command": "echo hi > /tmp/x\nl\u0455 x"},
	}
	for key, want := range map[string]permission.Reply{
		"y": {Kind: permission.Once, Asked: true},
		"A": {Kind: permission.Always, Scope: permission.ScopeSession, Asked: true},
		"P": {Kind: permission.Always, Scope: permission.ScopeProject, Asked: true},
		"E": {Kind: permission.Always, Scope: permission.ScopeEverywhere, Asked: true},
		"q": {Kind: permission.Reject, Asked: true},
	} {
		var out bytes.Buffer
		term := New(Options{Out: &out, Approve: Ask, Keys: &script{keys: "?" + key + second(key)}})
		got, err := term.AskPermission(context.Background(), r)
		if err != nil || got != want {
			t.Errorf("%s: %+v %v", key, got, err)
		}
		for _, text := range []string{"List files", "$ echo hi > /tmp/x\n", "    l\u0455‹U+0455› x\n", "writes /tmp/x", "P  always in this project: echo *", "E  always, in every project"} {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s: %q is not in\n%s", key, text, out.String())
			}
		}
		term.Close()
	}
	var out bytes.Buffer
	term := New(Options{Out: &out, Approve: Ask, Keys: &script{keys: "APEy"}})
	defer term.Close()
	r.Always, r.MustAsk = nil, true
	if got, err := term.AskPermission(context.Background(), r); err != nil || got.Kind != permission.Once || strings.Contains(out.String(), "always") {
		t.Errorf("what must be asked was allowed for longer: %+v %v", got, err)
	}
}

// --approve stands for the person's own rules. What a managed rule asks about waits for a person where there is one, and is refused where
// there is none, with words that name the rule.
func TestApproveDoesNotAnswerForManagedRules(t *testing.T) {
	for _, approve := range []Approve{Ask, All, IfClean, None} {
		for _, keys := range []Keys{nil, &script{keys: "y"}} {
			var out bytes.Buffer
			term := New(Options{Out: &out, Approve: approve, Keys: keys})
			got, err := term.AskPermission(t.Context(), permission.Request{Permission: "bash", Title: "make", Managed: "/etc/pillion/pillion.jsonc:3:5"})
			if err != nil {
				t.Fatal(err)
			}
			if keys != nil && approve != None {
				if got.Kind != permission.Once || !strings.Contains(out.String(), "Allow [") {
					t.Errorf("--approve %s with a person: %+v\n%s", approve, got, out.String())
				}
				continue
			}
			if got.Kind != permission.Reject || approve != None && !strings.Contains(got.Message, "/etc/pillion/pillion.jsonc:3:5") {
				t.Errorf("--approve %s, keys %v: %+v", approve, keys, got)
			}
		}
	}
}
