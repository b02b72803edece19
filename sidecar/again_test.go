package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/store"
	"github.com/pillion-dev/pillion/tools/permission"
)

// cutOff leaves a session whose editor went away while an edit waited for it, and opens it again on the same store.
func cutOff(t *testing.T, st *store.Store, meanwhile func(path string)) (*rig, string) {
	t.Helper()
	cwd := t.TempDir()
	path := filepath.Join(cwd, "a.txt")
	write(t, path, "head\n-\none\n-\ntwo\n")
	first := newRig(t, st, cwd)
	id := first.start(knowing)
	first.model.steps = append(first.model.steps, callsTool("read", `{"filePath":"a.txt"}`),
		callsTool("multiedit", `{"filePath":"a.txt","edits":[{"oldString":"one","newString":"ONE"},{"oldString":"two","newString":"TWO"}]}`))
	first.ed.send(prompt("p", "shout"))
	first.ed.expect(`{"id":"?P","method":"session/request_permission","params":{"toolCall":{"_meta":{"pillion":{"files":[{"hunks":[{"id":"?H1"},{"id":"?H2"}]}]}}}}}`)
	_ = first.ed.conn.Close()
	first.served <- <-first.served
	if got := read(t, path); got != "head\n-\none\n-\ntwo\n" {
		t.Fatalf("written without a decision: %q", got)
	}
	meanwhile(path)
	r := newRig(t, st, cwd)
	r.ed.vars = map[string]string{"S": id, "H1": first.ed.vars["H1"], "H2": first.ed.vars["H2"]}
	return r, path
}

func (r *rig) reopen() {
	r.t.Helper()
	r.ed.request("initialize", knowing)
	r.ed.request("session/load", fmt.Sprintf(`{"sessionId":"$S","cwd":%q,"mcpServers":[]}`, r.cwd))
}

// toldNext is what the model reads with the next prompt.
func (r *rig) toldNext() string {
	r.t.Helper()
	r.ed.request("session/prompt", `{"sessionId":"$S","prompt":[{"type":"text","text":"continue"}]}`)
	r.model.mu.Lock()
	defer r.model.mu.Unlock()
	return fmt.Sprintf("%+v", r.model.seen[len(r.model.seen)-1].Messages)
}

func TestAPendingApprovalSurvivesAReconnect(t *testing.T) {
	r, path := cutOff(t, testStore(t), func(path string) { write(t, path, "zero\nhead\n-\none\n-\ntwo\n") })
	r.reopen()
	r.ed.expect(`{"id":"?P","method":"session/request_permission","params":{"sessionId":"$S","toolCall":{"content":[{"type":"diff","oldText":"zero\nhead\n-\none\n-\ntwo\n","newText":"zero\nhead\n-\nONE\n-\nTWO\n"},"*"],"_meta":{"pillion":{"files":[{"hunks":[{"id":"$H1","oldStart":4},{"id":"$H2","oldStart":6}]}]}}}}}`)
	r.ed.send(`{"jsonrpc":"2.0","id":$P,"result":{"outcome":{"outcome":"selected","optionId":"once","_meta":{"pillion":{"hunks":{"$H1":{"decision":"reject","comment":"the first stays"}}}}}}}`)
	r.ed.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call_update","status":"completed"}}}`)
	r.ed.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"agent_thought_chunk"}}}`) // the model has been told
	if got := read(t, path); got != "zero\nhead\n-\none\n-\nTWO\n" {
		t.Errorf("the file is %q", got)
	}
	if got := r.toldNext(); !strings.Contains(got, "The user has now accepted this change") || !strings.Contains(got, "the first stays") {
		t.Errorf("the model read %s", got)
	}
	// It is not asked once more.
	r.ed.request("session/close", `{"sessionId":"$S"}`)
	r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"l","method":"session/load","params":{"sessionId":"$S","cwd":%q,"mcpServers":[]}}`, r.cwd))
	r.ed.expect(`{"id":"l","result":{}}`)
	r.toldNext()
	for len(r.ed.in) > 0 {
		if m, line := r.ed.receive(); m["method"] == "session/request_permission" {
			t.Errorf("asked once more: %s", line)
		}
	}
}

func TestAPendingApprovalThatNoLongerFitsIsSaid(t *testing.T) {
	r, path := cutOff(t, testStore(t), func(path string) { write(t, path, "head\n-\nmine\n-\ntwo\n") })
	r.reopen()
	m := r.ed.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"agent_thought_chunk"}}}`)
	if text := fmt.Sprint(m); !strings.Contains(text, "no longer fits") {
		t.Errorf("said %s", text)
	}
	if got := r.toldNext(); !strings.Contains(got, "no longer fits") {
		t.Errorf("the model read %s", got)
	}
	if got := read(t, path); got != "head\n-\nmine\n-\ntwo\n" {
		t.Errorf("the file is %q", got)
	}
}

func TestAPendingApprovalCanBeRejectedOrLeftAgain(t *testing.T) {
	st := testStore(t)
	r, path := cutOff(t, st, func(string) {})
	r.reopen()
	r.ed.expect(`{"id":"?P","method":"session/request_permission"}`)
	_ = r.ed.conn.Close() // and gone again: it waits on
	r.served <- <-r.served

	again := newRig(t, st, r.cwd)
	again.ed.vars = r.ed.vars
	again.reopen()
	again.ed.expect(`{"id":"?P","method":"session/request_permission"}`)
	again.ed.send(`{"jsonrpc":"2.0","id":$P,"result":{"outcome":{"outcome":"cancelled"}}}`)
	m := again.ed.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"agent_thought_chunk"}}}`)
	if text := fmt.Sprint(m); !strings.Contains(text, "dismissed") {
		t.Errorf("said %s", text)
	}
	if got := read(t, path); got != "head\n-\none\n-\ntwo\n" {
		t.Errorf("the file is %q", got)
	}
	if got := again.toldNext(); !strings.Contains(got, "dismissed") {
		t.Errorf("the model read %s", got)
	}
}

// A sub-agent's question survives as well, and two at once: each is asked, each decision is carried out.
func TestASubAgentsPendingApprovalSurvives(t *testing.T) {
	st, cwd := testStore(t), t.TempDir()
	a, b := filepath.Join(cwd, "a.txt"), filepath.Join(cwd, "b.txt")
	write(t, a, "one\n")
	write(t, b, "two\n")
	first := newRig(t, st, cwd)
	id := first.start(knowing)
	byTask := func(_ context.Context, req *provider.Request, emit func(provider.Event) error) error {
		text := fmt.Sprintf("%+v", req.Messages)
		file, old := "a.txt", "one"
		if strings.Contains(text, "change b") {
			file, old = "b.txt", "two"
		}
		call := callsTool("read", fmt.Sprintf(`{"filePath":%q}`, file))
		if strings.Contains(text, "1: "+old) {
			call = callsTool("edit", fmt.Sprintf(`{"filePath":%q,"oldString":%q,"newString":"new"}`, file, old))
		}
		return call(t.Context(), req, emit)
	}
	both := func(_ context.Context, _ *provider.Request, emit func(provider.Event) error) error {
		for i, what := range []string{"a", "b"} {
			call := fmt.Sprint("task", i)
			_ = emit(provider.Event{Type: provider.EventToolStart, Index: i, CallID: call, Name: "task"})
			_ = emit(provider.Event{Type: provider.EventToolEnd, Index: i, CallID: call, Name: "task", Text: fmt.Sprintf(`{"description":"job %s","prompt":"change %s","subagent_type":"general"}`, what, what)})
		}
		return emit(provider.Event{Type: provider.EventStop, Stop: provider.StopTools})
	}
	first.model.steps = append(first.model.steps, both, byTask, byTask, byTask, byTask)
	first.ed.send(prompt("p", "let others do it"))
	first.ed.expect(`{"method":"session/request_permission"}`)
	first.ed.expect(`{"method":"session/request_permission"}`)
	_ = first.ed.conn.Close()
	first.served <- <-first.served

	r := newRig(t, st, cwd)
	r.ed.vars["S"] = id
	r.reopen()
	asked := map[string]bool{}
	for range 2 {
		m := r.ed.expect(`{"id":"?P","method":"session/request_permission","params":{"sessionId":"$S"}}`)
		text := fmt.Sprint(m)
		option := "once"
		if strings.Contains(text, "b.txt") {
			option = "reject"
		}
		asked[option] = strings.Contains(text, "[job ")
		r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":$P,"result":{"outcome":{"outcome":"selected","optionId":%q}}}`, option))
		r.ed.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"agent_thought_chunk"}}}`)
	}
	if !asked["once"] || !asked["reject"] {
		t.Errorf("asked %v", asked)
	}
	if x, y := read(t, a), read(t, b); x != "new\n" || y != "two\n" {
		t.Errorf("the files are %q and %q", x, y)
	}
	if got := r.toldNext(); !strings.Contains(got, "(job a") || !strings.Contains(got, "The user has now accepted this change") || !strings.Contains(got, "(job b") || !strings.Contains(got, "The user has now rejected this change") {
		t.Errorf("the model read %s", got)
	}
}

// A reopened approval is asked by the gate again, whatever the rules have come to allow, and a rule that denies wins.
func TestAReopenedApprovalPassesTheGate(t *testing.T) {
	for name, c := range map[string]struct {
		action permission.Action
		asked  bool
		says   string
	}{
		"allowed meanwhile": {permission.Allow, true, "You rejected"},
		"denied meanwhile":  {permission.Deny, false, "a rule now denies it"},
	} {
		t.Run(name, func(t *testing.T) {
			r, path := cutOff(t, testStore(t), func(string) {})
			*r.rules = append(*r.rules, permission.Rule{Permission: "edit", Pattern: "*", Action: c.action, Origin: "test"})
			r.reopen()
			if c.asked {
				r.ed.expect(`{"id":"?P","method":"session/request_permission","params":{"options":[{"optionId":"once"},{"optionId":"reject"}]}}`)
				r.ed.send(`{"jsonrpc":"2.0","id":$P,"result":{"outcome":{"outcome":"selected","optionId":"reject"}}}`)
			}
			m := r.ed.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"agent_thought_chunk"}}}`)
			if text := fmt.Sprint(m); !strings.Contains(text, c.says) {
				t.Errorf("said %s, want %q", text, c.says)
			}
			if got := read(t, path); got != "head\n-\none\n-\ntwo\n" {
				t.Errorf("the file is %q", got)
			}
		})
	}
}
