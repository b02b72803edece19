package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/store"
	"github.com/pillion-dev/pillion/tools"
)

// BenchmarkSessionLoad is the session/load of a session with 2,000 events, from the request to its answer,
// the replayed updates before it.
func BenchmarkSessionLoad(b *testing.B) {
	st, cwd := testStore(b), b.TempDir()
	r := newRig(b, st, cwd)
	r.start("")
	id := r.ed.vars["S"]
	r.ed.request("session/close", `{"sessionId":"$S"}`)
	now := time.Now().UTC()
	text := strings.Repeat("some words of an answer ", 20)
	seq := int64(100)
	add := func(typ agent.EventType, v any) {
		seq++
		st.Append(id, store.Event{Seq: seq, Time: now, Type: string(typ), Data: mustJSON(v)})
	}
	for turn := range 100 { // of 20 events each
		add(agent.EventPrompt, agent.PromptData{MessageID: fmt.Sprint("p", turn), Parts: []provider.Part{{Type: provider.PartText, Text: text}}})
		for step := range 4 {
			m, c := fmt.Sprint("m", turn, "-", step), fmt.Sprint("c", turn, "-", step)
			add(agent.EventMessage, agent.MessageData{MessageID: m, Model: "test/model", Step: step + 1})
			add(agent.EventText, agent.TextData{MessageID: m, Text: text})
			d := agent.ToolData{MessageID: m, CallID: c, Tool: "read", Kind: tools.KindRead, Status: agent.ToolRunning, Input: mustJSON(map[string]string{"filePath": "a.go"})}
			add(agent.EventTool, d)
			d.Status, d.Output = agent.ToolCompleted, strings.Repeat(text, 8)
			add(agent.EventTool, d)
			if step < 3 {
				add(agent.EventStep, agent.StepData{Message: provider.Message{ID: m, Role: provider.RoleAssistant, Parts: []provider.Part{{Type: provider.PartText, Text: text}}}})
			}
		}
	}
	if err := st.Sync(b.Context()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"load","method":"session/load","params":{"sessionId":"$S","cwd":%q,"mcpServers":[]}}`, cwd))
		for line := range r.ed.in { // unchecked: the check of a message costs more than the message
			if strings.Contains(line[:min(len(line), 60)], `"id":"load"`) {
				break
			}
		}
		b.StopTimer()
		r.ed.request("session/close", `{"sessionId":"$S"}`)
		b.StartTimer()
	}
}
