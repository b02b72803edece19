package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent"
)

// The switch of "permission": "auto" in every shape that front ends have for it: an option, a mode for editors without
// options, and a slash command. It is off at first, is kept with the session, and is the person's alone.
func TestAutoIsSwitchedByThePerson(t *testing.T) {
	db := testStore(t)
	r := newRig(t, db, t.TempDir())
	r.start(reverting)
	now := func() string {
		t.Helper()
		s, ok := r.rt.Session(r.ed.vars["S"])
		if !ok {
			t.Fatal("no session")
		}
		return r.rt.Permission(s.Info())
	}
	if now() != agent.PermissionAsk {
		t.Fatal("it is on by default")
	}
	set := func(option, value string) string {
		t.Helper()
		answer, _ := json.Marshal(r.ed.request("session/set_config_option", fmt.Sprintf(`{"sessionId":"$S","configId":%q,"value":%q}`, option, value)))
		return string(answer)
	}
	if said := set("permission", "auto"); now() != "auto" || !strings.Contains(said, `"currentValue":"auto"`) || !strings.Contains(said, `"name":"Commands"`) {
		t.Errorf("by option: %s, %s", now(), said)
	}
	// A sub-agent's session follows the one it works for, whatever is written in its own head.
	s, _ := r.rt.Session(r.ed.vars["S"])
	if child := (agent.SessionInfo{Parent: s.Info().ID, Cwd: r.cwd}); r.rt.Permission(child) != agent.PermissionAuto {
		t.Error("a sub-agent asks where its parent does not")
	}
	if child := (agent.SessionInfo{Parent: "ses_gone", Cwd: r.cwd, Permission: agent.PermissionAuto}); r.rt.Permission(child) != agent.PermissionAsk {
		t.Error("a sub-agent has a choice of its own")
	}
	set("permission", "ask")
	if now() != agent.PermissionAsk {
		t.Error("it cannot be switched off")
	}
	r.ed.request("session/set_mode", `{"sessionId":"$S","modeId":"auto"}`)
	if now() != agent.PermissionAuto {
		t.Error("not by mode")
	}
	r.ed.request("session/set_mode", fmt.Sprintf(`{"sessionId":"$S","modeId":%q}`, s.Info().Agent))
	if now() != agent.PermissionAsk {
		t.Error("leaving the mode leaves it on")
	}
	r.ed.request("session/prompt", `{"sessionId":"$S","prompt":[{"type":"text","text":"/permissions auto"}]}`)
	if now() != agent.PermissionAuto {
		t.Error("not by command")
	}
	r.ed.send(`{"jsonrpc":"2.0","id":"bad","method":"session/set_config_option","params":{"sessionId":"$S","configId":"permission","value":"allow"}}`)
	r.ed.expect(`{"id":"bad","error":{"code":-32602}}`)
	if now() != agent.PermissionAuto {
		t.Error("a wrong value changed it")
	}
}
