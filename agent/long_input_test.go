package agent

import (
	"encoding/json"
	"strings"
	"testing"
)

// A long input is stored with one event of its call, and every reader of the newest event still has it.
func TestALongInputIsStoredOnce(t *testing.T) {
	input := json.RawMessage(`{"content":"` + strings.Repeat("x", longText) + `"}`)
	c := &call{}
	c.data = ToolData{MessageID: "m", CallID: "c", Tool: "write", Status: ToolRunning, Input: input}
	first := c.stored()
	c.data.Status = ToolCompleted
	second, third := c.stored(), c.stored()
	if string(first.Input) != string(input) || first.InputBefore || second.Input != nil || !second.InputBefore || third.Input != nil {
		t.Fatalf("stored with %d, %d and %d bytes", len(first.Input), len(second.Input), len(third.Input))
	}
	if got := second.After(first); string(got.Input) != string(input) || got.InputBefore || got.Status != ToolCompleted {
		t.Error("the newest state has no input")
	}
	h := newHistory()
	h.msg = &MessageData{MessageID: "m"}
	for _, d := range []ToolData{first, second, third} {
		h.tool(Event{Type: EventTool, Data: encode(d)})
	}
	if got := h.last["c"].tool(); string(got.Input) != string(input) || got.Status != ToolCompleted {
		t.Errorf("after a crash: %s with %d bytes", got.Status, len(got.Input))
	}
	messages := pluginMessages{at: map[string]int{}, calls: map[string][2]int{}, long: map[string]ToolData{}}
	messages.add("m", Event{}, map[string]any{})
	for _, d := range []ToolData{first, second} {
		messages.call(d)
	}
	if part, _ := json.Marshal(messages.all[0].Parts[0]); len(part) < len(input) {
		t.Errorf("a plugin sees %.200s", part)
	}
}
