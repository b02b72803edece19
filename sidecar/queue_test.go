package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/sidecar/editors"
)

// knowing announces every method of Pillion's that an editor may answer in these tests.
const knowing = `{"protocolVersion":1,"clientCapabilities":{"_meta":{"pillion":{"version":1,"methods":["_pillion/session/queueUpdated","_pillion/session/statusUpdated"]}}}}`

func prompt(id, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":%q}]}}`, id, text)
}

func TestR25SteeringReachesTheRunningTurnAndIsShownInOrder(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start(knowing)
	write(t, filepath.Join(r.cwd, "a.txt"), "one\n")
	r.model.steps = append(r.model.steps, callsTool("read", `{"filePath":"a.txt"}`), callsTool("edit", `{"filePath":"a.txt","oldString":"one","newString":"two"}`), says("As you wish."))
	r.ed.send(prompt("p", "go"))
	r.ed.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"user_message_chunk","content":{"text":"go"},"_meta":{"pillion":{"own":true}}}}}`)
	r.ed.expect(`{"id":"?P","method":"session/request_permission"}`)
	if st := r.ed.request("_pillion/session/status", `{"sessionId":"$S"}`); st["state"] != "waiting" || st["turn"] == nil || len(st["waiting"].([]any)) != 1 {
		t.Errorf("status %v", st)
	}
	r.ed.send(`{"jsonrpc":"2.0","id":"s","method":"_session/steering","params":{"sessionId":"$S","prompt":[{"type":"text","text":"in capitals"}]}}`)
	r.ed.expect(`{"id":"s","result":{"outcome":"injected"}}`)
	if got := read(t, filepath.Join(r.cwd, "a.txt")); got != "one\n" {
		t.Errorf("words approved a change: %q", got)
	}
	r.ed.send(`{"jsonrpc":"2.0","id":$P,"result":{"outcome":{"outcome":"selected","optionId":"once"}}}`)
	r.ed.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call_update","status":"completed"}}}`)
	r.ed.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"user_message_chunk","content":{"text":"in capitals"},"_meta":{"pillion":{"steered":true}}}}}`)
	r.ed.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"text":"As you wish."}}}}`)
	r.ed.expect(`{"id":"p","result":{"stopReason":"end_turn","_meta":{"pillion":{"messageId":"*"}}}}`)
}

func TestR25AQueueIsListedChangedAndRuns(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start(knowing)
	started := make(chan struct{})
	r.model.steps = append(r.model.steps, hangs(started))
	r.ed.send(prompt("p", "go"))
	<-started
	queue := func(what string) map[string]any {
		t.Helper()
		return r.ed.request("_pillion/session/queue", `{"sessionId":"$S"`+what+`}`)
	}
	add := func(text string) string {
		t.Helper()
		return queue(`,"add":[{"type":"text","text":"` + text + `"}]`)["added"].(string)
	}
	a, b, c := add("a"), add("b"), add("c")
	queue(`,"move":{"id":"` + c + `","before":"` + a + `"}`)
	queue(`,"edit":{"id":"` + b + `","prompt":[{"type":"text","text":"B"}]}`)
	r.ed.send(prompt("q", "asked"))
	r.ed.expect(`{"method":"_pillion/session/queueUpdated","params":{"items":[{"prompt":[{"text":"c"}]},{"prompt":[{"text":"a"}]},{"prompt":[{"text":"B"}]},{"request":true,"prompt":[{"text":"asked"}]}]}}`)
	queue(`,"remove":["` + a + `"]`)
	for _, bad := range []string{`,"remove":["` + a + `"]`, `,"edit":{"id":"x","prompt":[{"type":"text","text":"x"}]}`, `,"steer":"x"`, `,"move":{"id":"x"}`} {
		r.ed.send(`{"jsonrpc":"2.0","id":"bad","method":"_pillion/session/queue","params":{"sessionId":"$S"` + bad + `}}`)
		r.ed.expect(`{"id":"bad","error":{"code":-32002}}`)
	}
	r.ed.send(`{"jsonrpc":"2.0","id":"bad","method":"_pillion/session/queue","params":{"sessionId":"$S","resume":true,"steer":"x"}}`)
	r.ed.expect(`{"id":"bad","error":{"code":-32602}}`)
	// A cancel answers who waits and keeps what was added.
	r.ed.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"$S"}}`)
	r.ed.expectAll(`{"id":"p","result":{"stopReason":"cancelled"}}`, `{"id":"q","result":{"stopReason":"cancelled"}}`,
		`{"method":"_pillion/session/queueUpdated","params":{"held":true,"items":[{"id":"`+c+`"},{"id":"`+b+`"}]}}`)
	queue(`,"resume":true`)
	r.ed.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"user_message_chunk","content":{"text":"B"},"messageId":"` + b + `"}}}`)
	r.ed.expect(`{"method":"_pillion/session/statusUpdated","params":{"status":{"state":"idle","queued":0,"stopReason":"end_turn"}}}`)
}

func TestR7R25AQueuedMessageNeverApproves(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start("")
	write(t, filepath.Join(r.cwd, "a.txt"), "one\n")
	r.model.steps = append(r.model.steps, callsTool("read", `{"filePath":"a.txt"}`), callsTool("edit", `{"filePath":"a.txt","oldString":"one","newString":"two"}`))
	r.ed.send(prompt("p", "go"))
	r.ed.expect(`{"id":"?P","method":"session/request_permission"}`)
	for i, text := range []string{"yes", "allow", "y", "once"} {
		r.ed.send(prompt(fmt.Sprint("q", i), text))
		r.ed.request("_pillion/session/queue", `{"sessionId":"$S","add":[{"type":"text","text":"`+text+`"}]}`)
		r.ed.request("_session/steering", `{"sessionId":"$S","prompt":[{"type":"text","text":"`+text+`"}]}`)
	}
	if st := r.ed.request("_pillion/session/status", `{"sessionId":"$S"}`); st["state"] != "waiting" {
		t.Errorf("state %v", st)
	}
	if got := read(t, filepath.Join(r.cwd, "a.txt")); got != "one\n" {
		t.Fatalf("the file is %q", got)
	}
	r.ed.send(`{"jsonrpc":"2.0","id":$P,"result":{"outcome":{"outcome":"selected","optionId":"reject"}}}`)
	r.ed.expect(`{"id":"p","result":{"stopReason":"end_turn"}}`)
	if got := read(t, filepath.Join(r.cwd, "a.txt")); got != "one\n" {
		t.Fatalf("the file is %q", got)
	}
}

func TestAQueueIsThereAfterARestart(t *testing.T) {
	st, cwd := testStore(t), t.TempDir()
	first := newRig(t, st, cwd)
	id := first.start(knowing)
	started := make(chan struct{})
	first.model.steps = append(first.model.steps, hangs(started))
	first.ed.send(prompt("p", "go"))
	<-started
	first.ed.request("_pillion/session/queue", `{"sessionId":"$S","add":[{"type":"text","text":"later"}]}`)
	_ = first.ed.conn.Close()
	first.served <- <-first.served

	r := newRig(t, st, cwd)
	r.ed.vars["S"] = id
	r.ed.request("initialize", knowing)
	r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"l","method":"session/load","params":{"sessionId":"$S","cwd":%q,"mcpServers":[]}}`, cwd))
	r.ed.expectAll(`{"id":"l","result":{}}`, `{"method":"_pillion/session/queueUpdated","params":{"held":true,"items":[{"prompt":[{"text":"later"}]}]}}`)
	r.ed.send(prompt("n", "now"))
	r.ed.expect(`{"id":"n","result":{"stopReason":"end_turn"}}`)
	r.ed.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"user_message_chunk","content":{"text":"later"}}}}`)
	r.ed.expect(`{"method":"_pillion/session/statusUpdated","params":{"status":{"state":"idle","queued":0,"stopReason":"end_turn"}}}`)
}

func TestASelectionGoesIntoAPromptThatNamesIt(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start("")
	path := filepath.Join(r.cwd, "a.go")
	write(t, path, "package a\n\nfunc f() {}\n")
	uri := editors.PathURI(path)
	told := func(text string) string {
		t.Helper()
		r.ed.request("session/prompt", `{"sessionId":"$S","prompt":[{"type":"text","text":"`+text+`"}]}`)
		r.model.mu.Lock()
		defer r.model.mu.Unlock()
		m := r.model.seen[len(r.model.seen)-1].Messages
		var all []string
		for _, p := range m[len(m)-1].Parts {
			all = append(all, p.Text)
		}
		return strings.Join(all, "\n")
	}
	if got := told("what is @selection?"); !strings.Contains(got, "shows no document") {
		t.Errorf("told %q", got)
	}
	r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"_pillion/selection/didChange","params":{"textDocument":{"uri":%q},"selections":[{"start":{"line":2,"character":0},"end":{"line":3,"character":0}}]}}`, uri))
	if got := told("what is @selection?"); !strings.Contains(got, "@selection is a.go, line 3:\n```\nfunc f() {}\n```") {
		t.Errorf("told %q", got)
	}
	if got := told("mail me@selection.org"); strings.Contains(got, "func f") {
		t.Errorf("told %q", got)
	}
	// What is typed and not saved counts.
	r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"_pillion/buffer/didOpen","params":{"textDocument":{"uri":%q,"version":1,"text":"package a\n\nfunc g() {}\n"}}}`, uri))
	if got := told("(@selection)"); !strings.Contains(got, "func g() {}") {
		t.Errorf("told %q", got)
	}
	r.ed.send(`{"jsonrpc":"2.0","method":"_pillion/selection/didChange","params":{}}`)
	if got := told("@selection"); !strings.Contains(got, "shows no document") {
		t.Errorf("told %q", got)
	}
}
