package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// A client without terminals sees what a command had printed when its time was over, and that it was; so does the model.
func TestATimeOutTellsWhatWasSaid(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start(`{"protocolVersion":1}`)
	r.model.steps = modelSteps(t, `call bash {"command":"echo seen; sleep 60","timeout":200}`+"\n---\ntext Done.")
	r.ed.send(`{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"run"}]}}`)
	m := r.ed.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call_update","status":"failed"}}}`)
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var u struct {
		Params struct {
			Update struct {
				Content []struct{ Content struct{ Text string } }
			}
		}
	}
	if err := json.Unmarshal(raw, &u); err != nil || len(u.Params.Update.Content) != 1 {
		t.Fatalf("%v %s", err, raw)
	}
	if text := u.Params.Update.Content[0].Content.Text; !strings.Contains(text, "seen\n") || !strings.Contains(text, "after exceeding timeout 200 ms") || !strings.Contains(text, "did not end within 200 ms") {
		t.Errorf("the card says %q", text)
	}
	r.ed.expect(`{"id":"p","result":{"stopReason":"end_turn"}}`)
}
