package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/sidecar/acp"
	"github.com/pillion-dev/pillion/sidecar/editors"
)

// second is another editor on the same sidecar; open is the session its first session/new joins.
func (r *rig) second(open string) *editor {
	r.t.Helper()
	a, b := pipes()
	s := acp.NewConnection(r.host, b, editors.NewBuffers(nil), open)
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background()) }()
	e := newEditor(r.t, a)
	e.vars = map[string]string{"S": r.ed.vars["S"], "CWD": r.cwd}
	r.t.Cleanup(func() {
		_ = a.Close()
		<-served
	})
	return e
}

func (e *editor) load(t testing.TB, cwd string) {
	t.Helper()
	e.request("initialize", knowing)
	e.request("session/load", fmt.Sprintf(`{"sessionId":"$S","cwd":%q,"mcpServers":[]}`, cwd))
}

func TestTwoReadersSeeTheSameNumberedEvents(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start(knowing)
	two := r.second("")
	two.load(t, r.cwd)
	if n := two.request("_pillion/session/status", `{"sessionId":"$S"}`)["readers"]; n != float64(2) {
		t.Errorf("%v readers", n)
	}
	write(t, filepath.Join(r.cwd, "a.txt"), "one\n")
	r.model.steps = append(r.model.steps, callsTool("read", `{"filePath":"a.txt"}`), says("It says one."))
	r.ed.send(prompt("p", "read it"))
	seen := func(e *editor) []string {
		var out []string
		for {
			m, _ := e.receive()
			if m["method"] == "session/update" {
				u := m["params"].(map[string]any)["update"].(map[string]any)
				meta, _ := u["_meta"].(map[string]any)
				p, _ := meta["pillion"].(map[string]any)
				if p["seq"] == nil || u["sessionUpdate"] == "tool_call_update" && u["content"] == nil {
					continue // a slow reader may get several states of one call as the last of them
				}
				out = append(out, fmt.Sprint(p["seq"], u["sessionUpdate"], u["content"]))
				if c, ok := u["content"].(map[string]any); ok && c["text"] == "It says one." {
					return out
				}
			}
		}
	}
	a, b := seen(r.ed), seen(two)
	if strings.Join(a, "\n") != strings.Join(b, "\n") || len(a) < 4 {
		t.Errorf("one saw\n%s\nthe other\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
	}
	r.ed.expect(`{"id":"p","result":{"stopReason":"end_turn"}}`)
	// Prompts of both run, one after the other.
	two.send(prompt("q", "and now me"))
	r.ed.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"user_message_chunk","content":{"text":"and now me"}}}}`)
	two.expect(`{"id":"q","result":{"stopReason":"end_turn"}}`)
}

func TestTheFirstOfTwoDecisionsCounts(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start(knowing)
	two := r.second("")
	two.load(t, r.cwd)
	path := filepath.Join(r.cwd, "a.txt")
	write(t, path, "one\n")
	r.model.steps = append(r.model.steps, callsTool("read", `{"filePath":"a.txt"}`), callsTool("edit", `{"filePath":"a.txt","oldString":"one","newString":"two"}`))
	r.ed.send(prompt("p", "go"))
	r.ed.expect(`{"id":"?P","method":"session/request_permission"}`)
	two.expect(`{"id":"?P","method":"session/request_permission"}`)
	two.send(`{"jsonrpc":"2.0","id":$P,"result":{"outcome":{"outcome":"selected","optionId":"reject"}}}`)
	r.ed.expectAll(`{"method":"$/cancel_request","params":{"requestId":`+r.ed.vars["P"]+`}}`,
		`{"method":"session/update","params":{"update":{"sessionUpdate":"agent_thought_chunk","content":{"text":"[info] Another window answered first: rejected. Your decision in this window was not used.\n"}}}}`)
	r.ed.send(`{"jsonrpc":"2.0","id":$P,"result":{"outcome":{"outcome":"selected","optionId":"once"}}}`) // too late
	r.ed.expect(`{"id":"p","result":{"stopReason":"end_turn"}}`)
	if got := read(t, path); got != "one\n" {
		t.Errorf("the file is %q", got)
	}
	r.ed.request("session/list", `{}`) // alive
}

func TestAnApprovalAndATurnOutliveTheEditorWhenAnotherReads(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	id := r.start(knowing)
	path := filepath.Join(r.cwd, "a.txt")
	write(t, path, "one\n")
	r.model.steps = append(r.model.steps, callsTool("read", `{"filePath":"a.txt"}`), callsTool("edit", `{"filePath":"a.txt","oldString":"one","newString":"two"}`), says("Changed."))
	r.ed.send(prompt("p", "go"))
	r.ed.expect(`{"id":"?P","method":"session/request_permission"}`)
	two := r.second(id)
	two.request("initialize", knowing)
	two.request("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, r.cwd)) // joins: it was made for this session
	m := two.expect(`{"id":"?P","method":"session/request_permission","params":{"sessionId":"$S"}}`)
	if call := m["params"].(map[string]any)["toolCall"].(map[string]any); call["content"] == nil {
		t.Error("the question shows no diff")
	}
	_ = r.ed.conn.Close()
	r.served <- <-r.served
	if got := read(t, path); got != "one\n" {
		t.Fatalf("the file is %q", got)
	}
	two.send(`{"jsonrpc":"2.0","id":$P,"result":{"outcome":{"outcome":"selected","optionId":"once"}}}`)
	two.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"text":"Changed."}}}}`)
	two.expect(`{"method":"_pillion/session/statusUpdated","params":{"status":{"state":"idle","readers":1,"stopReason":"end_turn"}}}`)
	if got := read(t, path); got != "two\n" {
		t.Errorf("the file is %q", got)
	}
}

func TestAnEditGoesWhereTheFileIsOpen(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	live := `{"protocolVersion":1,"clientCapabilities":{"_meta":{"pillion":{"version":1,"buffers":true,"methods":["_pillion/workspace/applyEdit"]}}}}`
	r.start(live)
	two := r.second("")
	two.request("initialize", live)
	two.request("session/load", fmt.Sprintf(`{"sessionId":"$S","cwd":%q,"mcpServers":[]}`, r.cwd))
	path := filepath.Join(r.cwd, "a.txt")
	write(t, path, "one\n")
	for e, text := range map[*editor]string{r.ed: "one\n", two: "one\nunsaved in two\n"} {
		dirty := e == two
		e.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"_pillion/buffer/didOpen","params":{"textDocument":{"uri":%q,"version":7,"text":%q,"dirty":%v}}}`, editors.PathURI(path), text, dirty))
		e.request("session/list", `{}`)
	}
	r.model.steps = append(r.model.steps, callsTool("read", `{"filePath":"a.txt"}`), callsTool("edit", `{"filePath":"a.txt","oldString":"one","newString":"ONE"}`))
	r.ed.send(prompt("p", "go"))
	r.ed.expect(`{"id":"?P","method":"session/request_permission","params":{"toolCall":{"content":[{"type":"diff","oldText":"one\nunsaved in two\n","newText":"ONE\nunsaved in two\n"}]}}}`)
	r.ed.send(`{"jsonrpc":"2.0","id":$P,"result":{"outcome":{"outcome":"selected","optionId":"once"}}}`)
	two.expect(`{"id":"?E","method":"_pillion/workspace/applyEdit"}`)
	two.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":$E,"result":{"applied":true,"versions":{%q:8}}}`, editors.PathURI(path)))
	r.ed.expect(`{"id":"p","result":{"stopReason":"end_turn"}}`)
	if got := read(t, path); got != "one\n" {
		t.Errorf("the disk has %q", got)
	}
}
