package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
)

// stepOf is one request's answer.
type stepOf = func(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error

const taskInput = `{"description":"say it","prompt":"write it","subagent_type":"general"}`

// delegating is a model whose sub-agent writes a file.
func delegating(path string) []stepOf {
	return []stepOf{
		callsTool("task", taskInput),
		callsTool("write", `{"filePath":"`+path+`","content":"from below\n"}`),
		says("I wrote it."),
		says("All done."),
	}
}

func TestASubAgentsCallsAreNestedCards(t *testing.T) {
	st, dir := testStore(t), t.TempDir()
	path := filepath.Join(dir, "new.txt")
	r := newRig(t, st, dir)
	r.model.steps = delegating(path)
	client := `{"protocolVersion":1,"clientCapabilities":{"_meta":{"pillion":{"version":1,"methods":[],"nested":true}}}}`
	r.start(client)
	e := r.ed
	e.send(`{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"go"}]}}`)
	e.expect(`{"params":{"update":{"sessionUpdate":"tool_call","name":"task","toolCallId":"?T"}}}`)
	nested := `"_meta":{"pillion":{"parentToolCallId":"$T","childSessionId":"?C"}}`
	e.expect(`{"params":{"sessionId":"$S","update":{"sessionUpdate":"tool_call","name":"write","toolCallId":"?W",` + nested + `}}}`)
	m := e.expect(`{"method":"session/request_permission","id":"?R","params":{"sessionId":"$S","toolCall":{"toolCallId":"$W","title":"[general: say it] …"}}}`)
	if m == nil {
		t.Fatal()
	}
	e.send(`{"jsonrpc":"2.0","id":$R,"result":{"outcome":{"outcome":"selected","optionId":"once"}}}`)
	e.expect(`{"params":{"update":{"sessionUpdate":"tool_call_update","toolCallId":"$W","status":"completed","_meta":{"pillion":{"parentToolCallId":"$T","childSessionId":"$C"}}}}}`)
	words := `{"params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"text":"I wrote it."},` + nested + `}}}`
	e.expect(words)
	e.expect(`{"params":{"update":{"sessionUpdate":"tool_call_update","toolCallId":"$T","status":"completed"}}}`)
	e.expect(`{"id":"p","result":{"stopReason":"end_turn"}}`)
	if b, _ := os.ReadFile(path); string(b) != "from below\n" {
		t.Errorf("%q", b)
	}
	// The change is one of the session's own: it can be undone there.
	list := e.request("_pillion/change/list", `{"sessionId":"$S"}`)["changes"].([]any)
	if len(list) != 1 {
		t.Fatalf("%v", list)
	}
	e.vars["X"] = list[0].(map[string]any)["id"].(string)
	e.request("_pillion/change/undo", `{"sessionId":"$S","changeSet":"$X"}`)
	if _, err := os.Stat(path); err == nil {
		t.Error("the sub-agent's change was not undone")
	}
	// Who opens the session later sees the same cards.
	id := e.vars["S"]
	r = newRig(t, st, dir)
	r.ed.vars["S"] = id
	r.ed.request("initialize", client)
	r.ed.send(`{"jsonrpc":"2.0","id":"l","method":"session/load","params":{"sessionId":"$S","cwd":"` + dir + `","mcpServers":[]}}`)
	r.ed.expect(`{"params":{"update":{"sessionUpdate":"tool_call","name":"task","toolCallId":"?T"}}}`)
	r.ed.expect(`{"params":{"update":{"sessionUpdate":"tool_call","name":"write",` + nested + `}}}`)
	r.ed.expect(words)
	r.ed.expect(`{"id":"l"}`)
}

func TestInOtherEditorsASubAgentIsSeenOnItsTasksCard(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, testStore(t), dir)
	r.model.steps = append([]stepOf{callsTool("task", taskInput), callsTool("read", `{"filePath":"`+dir+`"}`)}, delegating(filepath.Join(dir, "new.txt"))[1:]...)
	r.start("")
	e := r.ed
	e.send(`{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"go"}]}}`)
	e.expect(`{"params":{"update":{"sessionUpdate":"tool_call","name":"task","toolCallId":"?T"}}}`)
	for { // no card for the read, one for what is asked, before it is asked
		m, line := e.receive()
		if strings.Contains(line, `"name":"read"`) {
			t.Fatalf("a card of the sub-agent: %s", line)
		}
		if m["method"] == "session/request_permission" {
			t.Fatal("asked about a call without a card")
		}
		if strings.Contains(line, `"sessionUpdate":"tool_call"`) && strings.Contains(line, `"name":"write"`) {
			break
		}
	}
	e.expect(`{"method":"session/request_permission","id":"?R","params":{"toolCall":{"title":"[general: say it] …"}}}`)
	e.send(`{"jsonrpc":"2.0","id":$R,"result":{"outcome":{"outcome":"selected","optionId":"once"}}}`)
	sawProgress, cardDone := false, false
	for {
		m, line := e.receive()
		sawProgress = sawProgress || strings.Contains(line, "✓ read") && strings.Contains(line, e.vars["T"])
		cardDone = cardDone || strings.Contains(line, `"tool_call_update"`) && strings.Contains(line, `"completed"`) && !strings.Contains(line, `"toolCallId":"`+e.vars["T"]+`"`)
		if m["id"] == "p" {
			break
		}
	}
	if !sawProgress || !cardDone {
		t.Errorf("progress on the task's card: %v; the asked call's card ended: %v", sawProgress, cardDone)
	}
}

func TestACompactionIsShown(t *testing.T) {
	for name, c := range map[string]struct{ client, begun, piece, done string }{
		"announced": {`{"protocolVersion":1,"clientCapabilities":{"session":{"compaction":{}}}}`,
			`{"params":{"update":{"sessionUpdate":"compaction_update","status":"in_progress","compactionId":"?C"}}}`,
			`{"params":{"update":{"sessionUpdate":"compaction_summary_chunk","compactionId":"$C","content":{"type":"text","text":"the summary"}}}}`,
			`{"params":{"update":{"sessionUpdate":"compaction_update","status":"completed","compactionId":"$C","summary":[{"type":"text","text":"the summary"}]}}}`},
		"not": {`{"protocolVersion":1,"clientCapabilities":{}}`,
			"[info] Compacting the conversation", "", "[info] The conversation was compacted: 2 messages became a summary"},
	} {
		t.Run(name, func(t *testing.T) {
			st, dir := testStore(t), t.TempDir()
			r := newRig(t, st, dir)
			r.model.steps = []stepOf{says("an answer"), says("the summary")}
			r.start(c.client)
			e := r.ed
			e.request("session/prompt", `{"sessionId":"$S","prompt":[{"type":"text","text":"hello"}]}`)
			e.send(`{"jsonrpc":"2.0","id":"c","method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"/compact the names"}]}}`)
			if c.piece != "" {
				e.expect(c.begun)
				e.expect(c.piece)
				e.expect(c.done)
				e.expect(`{"id":"c","result":{"stopReason":"end_turn"}}`)
			} else {
				e.reads(`"id":"c"`, c.begun, c.done)
			}
			if got := r.model.seen[1].Messages[0].Parts[0].Text; !strings.Contains(got, "keep above all: the names") {
				t.Error(got)
			}
			id := e.vars["S"]
			r = newRig(t, st, dir)
			r.ed.vars["S"] = id
			r.ed.request("initialize", c.client)
			r.ed.send(`{"jsonrpc":"2.0","id":"l","method":"session/load","params":{"sessionId":"$S","cwd":"` + dir + `","mcpServers":[]}}`)
			r.ed.expect(`{"params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"text":"an answer"}}}}`)
			if c.piece != "" {
				r.ed.vars["C"] = e.vars["C"]
			}
			if c.piece != "" {
				r.ed.expect(c.done)
				r.ed.expect(`{"id":"l"}`)
			} else {
				r.ed.reads(`"id":"l"`, c.done)
			}
		})
	}
}

// reads receives until a message holds the end, and wants the texts in the thoughts before it: those that wait are one.
func (e *editor) reads(end string, texts ...string) {
	e.t.Helper()
	all := ""
	for {
		_, line := e.receive()
		all += line
		if strings.Contains(line, end) {
			break
		}
	}
	for _, want := range texts {
		if !strings.Contains(all, want) {
			e.t.Errorf("%q is not in %s", want, all)
		}
	}
}
