package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

// maxSchemas is what the tools of a request may take, in bytes of JSON; about four are a token. Every step of every turn sends them,
// and they took 25,300 bytes when they were first measured; half of that is the limit.
const maxSchemas = 12_650

func TestToolSchemasStaySmall(t *testing.T) {
	h := newHooked(t, false, `{}`, wiretest.Step{Text: "Done."})
	h.ask(t, "go")
	var sent struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(h.srv.Requests()[0].Body, &sent); err != nil {
		t.Fatal(err)
	}
	all, _ := json.Marshal(sent.Tools)
	t.Logf("%d tools, %d bytes", len(sent.Tools), len(all))
	if len(all) > maxSchemas || len(sent.Tools) < 17 {
		t.Errorf("%d tools take %d bytes; %d were expected at most", len(sent.Tools), len(all), maxSchemas)
	}
}

// The model sees one tool symbol. Its calls are those of symbol_find and so on for hooks, rules and the event log, whichever name
// the model uses, and the next request repeats them under the name that it offers.
func TestSymbolToolsAreOneToolToTheModel(t *testing.T) {
	calls := wiretest.Step{Calls: []wiretest.Call{
		{ID: "c1", Name: "symbol", Input: json.RawMessage(`{"operation":"find","query":"Start"}`)},
		{ID: "c2", Name: "symbol_find", Input: json.RawMessage(`{"query":"Start"}`)},
		{ID: "c3", Name: "symbol", Input: json.RawMessage(`{"operation":"delete","symbol":"Start"}`)},
		{ID: "c4", Name: "symbol", Input: json.RawMessage(`{"operation":"fly"}`)},
	}}
	// The hook sees the call as one of symbol_delete, which is Claude's Edit, and refuses it.
	h := newHooked(t, true, `{"hooks":{"PreToolUse":[{"matcher":"Edit","hooks":[{"type":"command","command":"echo no deletion >&2; exit 2"}]}]}}`, calls, wiretest.Step{Text: "Done."})
	put(t, filepath.Join(h.dir, "main.go"), "package main\n\n// Start begins.\nfunc Start() {}\n")
	ran := map[string]agent.ToolData{}
	h.Subscribe(0, func(e agent.Event) {
		if d, ok := agent.Value[agent.ToolData](e); ok && e.Type == agent.EventTool && !d.Ended.IsZero() {
			h.mu.Lock()
			ran[d.CallID] = d
			h.mu.Unlock()
		}
	})
	h.ask(t, "go")
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, tool := range map[string]string{"c1": "symbol_find", "c2": "symbol_find", "c3": "symbol_delete", "c4": "symbol"} {
		if ran[id].Tool != tool {
			t.Errorf("%s ran as %q, not as %s", id, ran[id].Tool, tool)
		}
	}
	if a := ran["c1"]; !strings.Contains(a.Output, "function Start") || a.Output != ran["c2"].Output || strings.Contains(a.Output, "Ignored") {
		t.Errorf("%+v", a)
	}
	if d := ran["c3"]; !strings.Contains(d.Error, "no deletion") || !strings.Contains(read(t, filepath.Join(h.dir, "main.go")), "func Start") {
		t.Errorf("%+v", d)
	}
	if d := ran["c4"]; !strings.Contains(d.Error, "symbol needs operation, one of: delete, find") {
		t.Errorf("%+v", d)
	}
	all := h.srv.Requests()
	names := []string{}
	for _, m := range all[len(all)-1].Messages() {
		for _, c := range m.Calls {
			names = append(names, c.Name)
		}
	}
	if want := []string{"symbol", "symbol", "symbol", "symbol"}; !slices.Equal(names, want) || !strings.Contains(h.last(), `\"operation\":\"delete\"`) {
		t.Errorf("the next request names %q: %s", names, h.last())
	}
}

// A rule for one of the symbol tools takes its operation away from the model.
func TestADeniedSymbolToolIsNotAnOperation(t *testing.T) {
	h := newHooked(t, true, `{"permissions":{"deny":["Edit"]}}`, wiretest.Step{Text: "Done."})
	h.ask(t, "go")
	var sent struct {
		Tools []struct {
			Function struct{ Name, Description string }
		}
	}
	if err := json.Unmarshal(h.srv.Requests()[0].Body, &sent); err != nil {
		t.Fatal(err)
	}
	for _, tool := range sent.Tools {
		if d := tool.Function.Description; tool.Function.Name == "symbol" {
			if !strings.Contains(d, "- find(") || strings.Contains(d, "- delete(") || strings.Contains(d, "- rename(") {
				t.Error(d)
			}
			return
		}
	}
	t.Error("there is no tool symbol")
}
