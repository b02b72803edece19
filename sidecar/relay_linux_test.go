package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// An editor with terminals of its own shows a running command in one; the command stays ours.
func TestEditorsTerminalShowsACommand(t *testing.T) {
	t.Setenv("PILLION_TEST_MAIN", "1") // what the editor runs is this program
	for _, c := range []struct {
		name, end string
		kill      bool
	}{
		{"to its end", "exit 4", false},
		{"until the terminal is closed", "sleep 1000", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, testStore(t), t.TempDir())
			r.start(`{"protocolVersion":1,"clientCapabilities":{"terminal":true}}`)
			r.model.steps = modelSteps(t, `call bash {"command":"printf '\\033[1mbold\\033[0m\\n'; until test -e go; do sleep 0.01; done; echo more; `+c.end+`"}`+"\n---\ntext Done.")
			r.ed.send(`{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"run"}]}}`)
			m := r.ed.expect(`{"id":"?I","method":"terminal/create","params":{"sessionId":"$S","cwd":"*","command":"*","args":"*"}}`)
			p := m["params"].(map[string]any)
			var args []string
			for _, a := range p["args"].([]any) {
				args = append(args, a.(string))
			}
			cmd := exec.Command(p["command"].(string), args...)
			var printed bytes.Buffer
			cmd.Stdout = &printed
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			id, _ := json.Marshal(m["id"])
			r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"terminalId":"editors-own"}}`, id))
			r.ed.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call_update","content":[{"type":"terminal","terminalId":"editors-own"}]}}}`)
			write(t, r.cwd+"/go", "")
			if c.kill {
				_ = cmd.Process.Kill()
			}
			err := cmd.Wait()
			if !c.kill && (cmd.ProcessState.ExitCode() != 4 || printed.String() != "\x1b[1mbold\x1b[0m\r\nmore\r\n") {
				t.Errorf("%v %q", err, printed.String())
			}
			for released, ended := false, false; !released || !ended; { // in whichever order
				m, line := r.ed.receive()
				switch {
				case m["method"] == "terminal/release" && strings.Contains(line, `"editors-own"`):
					id, _ := json.Marshal(m["id"])
					r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id))
					released = true
				case m["id"] == "p":
					if ended = true; !strings.Contains(line, `"end_turn"`) {
						t.Errorf("the turn's end: %s", line)
					}
				}
			}
			if _, err := os.Stat(args[1]); err == nil {
				t.Error("the pipe is left", args[1])
			}
			words := "exit code: 4"
			if c.kill {
				words = "The user ended this command"
			}
			r.model.mu.Lock()
			body, _ := json.Marshal(r.model.seen[len(r.model.seen)-1].Messages)
			r.model.mu.Unlock()
			if !strings.Contains(string(body), words) {
				t.Errorf("the model was told %s", body)
			}
		})
	}
}

// An editor that refuses is not asked again, and shows the text.
func TestEditorThatOpensNoTerminal(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start(`{"protocolVersion":1,"clientCapabilities":{"terminal":true}}`)
	step := `call bash {"command":"echo up; sleep 0.4"}`
	r.model.steps = modelSteps(t, step+"\n---\n"+step+"\n---\ntext Done.")
	r.ed.send(`{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"run"}]}}`)
	m := r.ed.expect(`{"method":"terminal/create"}`)
	id, _ := json.Marshal(m["id"])
	r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no"}}`, id))
	asked := 0
	for {
		m, line := r.ed.receive()
		if m["method"] == "terminal/create" {
			asked++
		}
		if m["id"] == "p" {
			if asked > 0 || !strings.Contains(line, "end_turn") {
				t.Errorf("asked %d times more; %s", asked, line)
			}
			return
		}
	}
}
