package main

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/tools/permission"
)

// yes lets everything through.
type yes struct{}

func (yes) AskPermission(context.Context, permission.Request) (permission.Reply, error) {
	return permission.Reply{Kind: permission.Once}, nil
}

func TestATurnRunsWithTheSettingsThatWereThereWhenItBegan(t *testing.T) {
	atHome(t)
	cwd := scratch(t)
	a := app.New(app.Options{Place: app.NewWorkplace(version), Asker: yes{}, Ephemeral: true, NoLSP: true})
	defer a.Close()
	put(t, filepath.Join(cwd, "pillion.json"), `{"permission": {"read": "ask"}}`)
	if n := len(a.ConfigOf(cwd).Permission.Rules); n != 1 {
		t.Fatalf("%d rules", n)
	}
	put(t, filepath.Join(cwd, "pillion.json"), `{"permission": {"read": "ask", "bash": "deny"}}`)
	a.Project().Mentioned(t.Context(), agent.Entering{Session: agent.SessionInfo{Cwd: cwd}})
	if n := len(a.ConfigOf(cwd).Permission.Rules); n != 2 {
		t.Errorf("%d rules: a rule that was written before the prompt does not count in its turn", n)
	}
}
