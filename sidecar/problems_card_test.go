package main

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/change"
)

// foreseeing is a bridge that knows what a change would bring.
type foreseeing struct {
	builtin.Bridge
	brings lspbridge.Delta
}

func (k foreseeing) Check(context.Context, []lspbridge.Proposal) lspbridge.Delta   { return k.brings }
func (k foreseeing) Changed(context.Context, []lspbridge.Proposal) lspbridge.Delta { return k.brings }
func (k foreseeing) Warm(string)                                                   {}

// What a change brings is on its card too, so that an answer that comes later than the question reaches editors
// which know nothing of Pillion; once it is written it is gone.
func TestACardSaysWhatAChangeBrings(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	at := filepath.Join(r.cwd, "a.txt")
	r.world.bridge = foreseeing{brings: lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Fresh, Fixed: []change.Problem{{Path: at, Line: 1, Column: 1, Severity: change.SeverityError, Message: "gone"}, {Path: at, Line: 1, Column: 1, Severity: change.SeverityWarning, Message: "gone too"}}, Introduced: []change.Problem{{Path: at, Line: 1, Column: 1, Severity: change.SeverityError, Message: "no such thing"}}}}}
	r.start(`{"protocolVersion":1,"clientCapabilities":{}}`)
	r.edits("a.txt", "1\n")
	const text = `Fixes 1 error, introduces 1; 1 warning or hint fixed\n`
	says := text + at + `:1:1: error: no such thing\nfixed: ` + at + `:1:1: error: gone\nfixed: ` + at + `:1:1: warning: gone too`
	r.ed.send(`{"jsonrpc":"2.0","id":"turn","method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"go"}]}}`)
	r.ed.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call_update","content":[{"type":"diff"},{"type":"content"}]}}}`) // the proposal, or, where both wait, the request's
	r.ed.expect(`{"id":"?P","method":"session/request_permission","params":{"toolCall":{"content":[{"type":"diff","newText":"` + says + `\n“Always” would allow any edit in this session\n+++ create a.txt\n1\n"},{"type":"content"}]}}}`)
	r.ed.send(`{"jsonrpc":"2.0","id":$P,"result":{"outcome":{"outcome":"selected","optionId":"once"}}}`)
	r.ed.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call_update","status":"completed"}}}`)
	r.ed.expect(`{"id":"turn","result":{"stopReason":"end_turn"}}`)
}

// heldBridge answers when it is let.
type heldBridge struct {
	builtin.Bridge
	let chan struct{}
}

func (h heldBridge) Check(ctx context.Context, _ []lspbridge.Proposal) lspbridge.Delta {
	select {
	case <-h.let:
	case <-ctx.Done():
	}
	return lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Fresh, Fixed: []change.Problem{{Path: "/x", Line: 1, Column: 1, Severity: change.SeverityError, Message: "gone"}}}}
}
func (heldBridge) Changed(context.Context, []lspbridge.Proposal) lspbridge.Delta {
	return lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Fresh}}
}
func (heldBridge) Warm(string) {}

// A verdict that comes after the question reaches a generic client where it draws something: on the card, or, where that is
// not known or the request alone is drawn, as a message.
func TestALateVerdictReachesGenericClients(t *testing.T) {
	for name, want := range map[string]string{
		"a new editor":       `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\n[warning] The change that waits for your decision has been checked now. Fixes 1 error, introduces 0\nfixed: /x:1:1: error: gone\n\n"}}`,
		"CodeCompanion.nvim": `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\n[warning] The change that waits for your decision has been checked now. Fixes 1 error, introduces 0\nfixed: /x:1:1: error: gone\n\n"}}`,
		"acpx":               `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\n[warning] The change that waits for your decision has been checked now. Fixes 1 error, introduces 0\nfixed: /x:1:1: error: gone\n\n"}}`,
		"agentic.nvim":       `{"sessionUpdate":"tool_call_update","content":[{"type":"content","content":{"type":"text","text":"Fixes 1 error, introduces 0\nfixed: /x:1:1: error: gone\n` + "```" + `diff\n=== create a.txt\n@@ -0,0 +1 @@\n+1\n` + "```" + `"}}]}`,
		"Zed":                `{"sessionUpdate":"tool_call_update","content":[{"type":"content","content":{"type":"text","text":"Fixes 1 error, introduces 0\nfixed: /x:1:1: error: gone"}},{"type":"diff"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, testStore(t), t.TempDir())
			held := heldBridge{let: make(chan struct{})}
			r.world.bridge = held
			r.start(`{"protocolVersion":1,"clientInfo":{"name":"` + name + `","version":"1"},"clientCapabilities":{}}`)
			r.host.Editors.SetVerdictWait(time.Millisecond)
			r.edits("a.txt", "1\n")
			r.ed.send(`{"jsonrpc":"2.0","id":"turn","method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"go"}]}}`)
			r.ed.expect(`{"id":"?P","method":"session/request_permission","params":{"toolCall":{"kind":"edit"}}}`)
			close(held.let)
			r.ed.expect(`{"method":"session/update","params":{"update":` + want + `}}`)
			r.ed.send(`{"jsonrpc":"2.0","id":$P,"result":{"outcome":{"outcome":"selected","optionId":"once"}}}`)
			r.ed.expect(`{"id":"turn","result":{"stopReason":"end_turn"}}`)
		})
	}
}
