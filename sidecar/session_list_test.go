package main

import (
	"fmt"
	"testing"
)

// Editors make a session for every window; the list is of those somebody used.
func TestSessionsWithoutAPromptAreNotListed(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	used := r.start("")
	r.ed.send(`{"jsonrpc":"2.0","id":"turn","method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"hello"}]}}`)
	r.ed.expect(`{"id":"turn"}`)
	for range 3 {
		r.ed.request("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, r.cwd))
	}
	list, _ := r.ed.request("session/list", fmt.Sprintf(`{"cwd":%q}`, r.cwd))["sessions"].([]any)
	if len(list) != 1 || list[0].(map[string]any)["sessionId"] != used {
		t.Errorf("listed %v, want only %s, which has a prompt", list, used)
	}
}
