package main

import (
	"context"
	"path/filepath"
	"testing"

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

// What a change brings stands on its card too, so that an answer that comes later than the question reaches editors
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
	r.ed.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call_update","content":[{"type":"diff"},{"type":"content","content":{"type":"text","text":"` + says + `"}}]}}}`)
	r.ed.expect(`{"id":"?P","method":"session/request_permission","params":{"toolCall":{"content":[{"type":"diff","newText":"` + says + `\n“Always” would allow any edit in this session\n+++ create a.txt\n1\n"},{"type":"content"}]}}}`)
	r.ed.send(`{"jsonrpc":"2.0","id":$P,"result":{"outcome":{"outcome":"selected","optionId":"once"}}}`)
	r.ed.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call_update","status":"completed"}}}`)
	r.ed.expect(`{"id":"turn","result":{"stopReason":"end_turn"}}`)
}
