package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// screen puts a terminal's output together by its numbers, as an editor does.
type screen struct {
	text []byte
	seq  int64
}

func (x *screen) take(t *testing.T, data string, seq int64) {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		t.Fatal(err)
	}
	if seq > x.seq {
		t.Fatalf("bytes %d to %d are missing", x.seq, seq)
	}
	if skip := x.seq - seq; skip < int64(len(b)) {
		x.text = append(x.text, b[skip:]...)
		x.seq = seq + int64(len(b))
	}
}

const followsTerminals = `{"protocolVersion":1,"clientCapabilities":{"_meta":{"pillion":{"version":1,"methods":["_pillion/terminal/output","_pillion/terminal/exited"]}}}}`

// until takes output in until the text shows up.
func (r *rig) until(x *screen, want string) {
	r.t.Helper()
	t := r.t.(*testing.T)
	for !strings.Contains(string(x.text), want) {
		m, _ := r.ed.receive()
		if p, ok := m["params"].(map[string]any); ok && m["method"] == "_pillion/terminal/output" {
			x.take(t, p["data"].(string), int64(p["seq"].(float64)))
		}
	}
}

func (r *rig) call(method string, params map[string]any) map[string]any {
	r.t.Helper()
	params["sessionId"] = r.ed.vars["S"]
	b, _ := json.Marshal(params)
	return r.ed.request(method, string(b))
}

func TestTerminalFollowedTypedIntoAndEnded(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start(followsTerminals)
	made := r.call("_pillion/terminal/create", map[string]any{"command": "stty -echo; trap 'stty size' WINCH; echo ready; while read -r l; do echo got $l; done", "columns": 90, "rows": 20})["terminal"].(map[string]any)
	id := made["terminalId"]
	x := &screen{}
	sub := func() {
		a := r.call("_pillion/terminal/subscribe", map[string]any{"terminalId": id, "seq": x.seq})
		x.take(t, a["data"].(string), int64(a["seq"].(float64)))
	}
	sub()
	r.until(x, "ready")
	sub() // a second view of the same terminal takes nothing from the first
	// Each key is a request of its own, and none waits for the one before.
	for i := range 50 {
		for j, key := range fmt.Sprintf("line%d\n", i) {
			r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"k%d.%d","method":"_pillion/terminal/input","params":{"sessionId":"$S","terminalId":%q,"data":%q}}`, i, j, id, base64.StdEncoding.EncodeToString([]byte(string(key)))))
		}
	}
	r.until(x, "got line49")
	want := ""
	for i := range 50 {
		want += fmt.Sprintf("got line%d\r\n", i)
	}
	if !strings.Contains(string(x.text), want) {
		t.Errorf("%q", x.text)
	}
	// Bash runs the trap when its read ends: answered, so that the line cannot end it before the signal is there.
	r.call("_pillion/terminal/resize", map[string]any{"terminalId": id, "columns": 132, "rows": 50})
	r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"y","method":"_pillion/terminal/input","params":{"sessionId":"$S","terminalId":%q,"data":"Cg=="}}`, id))
	r.until(x, "50 132")
	r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"q","method":"_pillion/terminal/kill","params":{"sessionId":"$S","terminalId":%q}}`, id))
	r.ed.expectAll(`{"method":"_pillion/terminal/exited","params":{"terminal":{"terminalId":"`+id.(string)+`","state":"exited","signal":"*"}}}`, `{"id":"q","result":{"terminal":{"state":"exited"}}}`)
	r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"e","method":"_pillion/terminal/input","params":{"sessionId":"$S","terminalId":%q,"data":"Cg=="}}`, id))
	r.ed.expect(`{"id":"e","error":{"message":"*"}}`)
	r.ed.send(`{"jsonrpc":"2.0","id":"n","method":"_pillion/terminal/subscribe","params":{"sessionId":"$S","terminalId":"term_99"}}`)
	r.ed.expect(`{"id":"n","error":{"code":-32002}}`)
}

// A flood leaves the connection usable, and its end is seen.
func TestTerminalThatFloods(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start(followsTerminals)
	id := r.call("_pillion/terminal/create", map[string]any{"command": "yes 0123456789 | head -c 30000000; echo THE END"})["terminal"].(map[string]any)["terminalId"].(string)
	began := time.Now()
	r.call("_pillion/terminal/subscribe", map[string]any{"terminalId": id})
	r.call("_pillion/terminal/list", map[string]any{})
	last := ""
	for {
		m, _ := r.ed.receive()
		p, _ := m["params"].(map[string]any)
		if m["method"] == "_pillion/terminal/output" {
			b, _ := base64.StdEncoding.DecodeString(p["data"].(string))
			last = (last + string(b))[max(0, len(last)+len(b)-100):]
		}
		if m["method"] == "_pillion/terminal/exited" {
			break
		}
	}
	if !strings.HasSuffix(last, "THE END\r\n") {
		t.Errorf("%q", last)
	}
	t.Log("30 MB in", time.Since(began))
}

// The agent's command is a terminal too, which its call names.
func TestCommandsAreTerminals(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start(followsTerminals)
	r.model.steps = modelSteps(t, `call bash {"command":"printf '\\033[1mbold\\033[0m'; until test -e go; do sleep 0.01; done; exit 4"}`+"\n---\ntext Done.")
	r.ed.send(`{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"run"}]}}`)
	r.ed.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call_update","_meta":{"pillion":{"terminalId":"?T"}}}}}`)
	x := &screen{}
	a := r.call("_pillion/terminal/subscribe", map[string]any{"terminalId": r.ed.vars["T"]})
	x.take(t, a["data"].(string), int64(a["seq"].(float64)))
	r.until(x, "\x1b[1mbold\x1b[0m")
	write(t, r.cwd+"/go", "")
	r.ed.expectAll(`{"method":"_pillion/terminal/exited","params":{"terminal":{"terminalId":"$T","exitCode":4,"toolCallId":"*"}}}`, `{"id":"p","result":{"stopReason":"end_turn"}}`)
}

func TestTerminalsEndWithTheirSession(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start(followsTerminals)
	for _, bad := range []string{`{"sessionId":"$S","cwd":"/no/such/folder"}`, `{"sessionId":"nobody"}`} {
		r.ed.send(`{"jsonrpc":"2.0","id":"bad","method":"_pillion/terminal/create","params":` + bad + `}`)
		r.ed.expect(`{"id":"bad","error":{"message":"*"}}`)
	}
	word := fmt.Sprintf("8%08d", time.Now().UnixNano()%1e8)
	id := r.call("_pillion/terminal/create", map[string]any{"command": "setsid sleep " + word + " & sleep " + word})["terminal"].(map[string]any)["terminalId"]
	ts := r.host.Terminals.Terminals(r.ed.vars["S"])
	ts.Close()
	if left := carrying(word); len(left) > 0 {
		t.Errorf("%s left %v", id, left)
	}
}
