package main

import (
	"path/filepath"
	"testing"

	"github.com/pillion-dev/pillion/agent"
)

func TestATurnRunsWithTheSettingsThatWereThereWhenItBegan(t *testing.T) {
	atHome(t)
	cwd := scratch(t)
	a := newApp(appOptions{place: newWorkplace(version), asker: yes{}, ephemeral: true, noLSP: true})
	defer a.close()
	put(t, filepath.Join(cwd, "pillion.json"), `{"permission": {"read": "ask"}}`)
	if n := len(a.configOf(cwd).Permission.Rules); n != 1 {
		t.Fatalf("%d rules", n)
	}
	put(t, filepath.Join(cwd, "pillion.json"), `{"permission": {"read": "ask", "bash": "deny"}}`)
	a.enter(t.Context(), agent.Entering{Session: agent.SessionInfo{Cwd: cwd}})
	if n := len(a.configOf(cwd).Permission.Rules); n != 2 {
		t.Errorf("%d rules: a rule that was written before the prompt does not count in its turn", n)
	}
}
