package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

// longEvent is the size of the texts below, in bytes: the largest message that an editor can send is 32 MiB with its frame (lspbridge/rpc).
const longEvent = 31 << 20

// A person pastes a log, a model writes a generated file: one text of 32 MB goes through the whole program, from an editor or a model to the
// store, the screen and the next request. What the process needs for it at the worst moment is bounded for each way in. The program is the
// real one, since what counts is what the operating system sees (VmHWM): heap, garbage, SQLite and buffers together.
func TestMemoryOfLongEvents(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector takes memory of its own; scripts/gotest.sh runs this test without it")
	}
	text := strings.Repeat("the quick brown fox jumps over \"the\" lazy dog\t0123456789\n", longEvent/58)
	server := sdk.NewServer(&sdk.Implementation{Name: "big", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "lookup", Description: "Looks up."}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text[:len(text)*9/10]}}}, nil, nil // its escapes count
	})
	server.AddPrompt(&sdk.Prompt{Name: "up"}, nil) // its command says that the server is there
	remote := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(func() { remote.CloseClientConnections(); remote.Close() })

	call := func(name string, input map[string]string) wiretest.Step {
		data, _ := json.Marshal(input)
		return wiretest.Step{Calls: []wiretest.Call{{Name: name, Input: data}}, Chunk: 4096, Burst: true}
	}
	said := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	for _, c := range []struct {
		name   string
		mb     int // growth at most, in MB of 2^20 bytes: half above what was measured, as a busy machine collects garbage later; 100 is the goal
		prompt string
		file   bool // big.txt has the text
		steps  []wiretest.Step
	}{
		{name: "paste", mb: 130, prompt: said(map[string]string{"type": "text", "text": text[:len(text)*9/10]})},
		{name: "embedded resource", mb: 140, prompt: `{"type":"resource","resource":{"uri":"file:///big.txt","text":` + said(text[:len(text)*9/10]) + `}}`},
		{name: "answer", mb: 120, steps: []wiretest.Step{{Text: text, Chunk: 4096, Burst: true}}},
		{name: "answer in one piece", mb: 175, steps: []wiretest.Step{{Text: text, Chunk: -1, Burst: true}}},
		{name: "read", mb: 80, file: true, steps: []wiretest.Step{call("read", map[string]string{"filePath": "big.txt"})}},
		{name: "cat", mb: 80, file: true, steps: []wiretest.Step{call("bash", map[string]string{"command": "cat big.txt", "description": "look"})}},
		{name: "MCP result", mb: 40, steps: []wiretest.Step{call("big_lookup", nil)}},
		{name: "edit", mb: 125, file: true, steps: []wiretest.Step{call("edit", map[string]string{"filePath": "big.txt", "oldString": "LAST", "newString": "NEXT"})}},
		{name: "write", mb: 175, steps: []wiretest.Step{call("write", map[string]string{"filePath": "new.txt", "content": text})}},
	} {
		if c.prompt == "" {
			c.prompt = `{"type":"text","text":"go"}`
		}
		t.Run(c.name, func(t *testing.T) {
			home := atHome(t)
			cwd := filepath.Join(home, "project")
			put(t, filepath.Join(cwd, "small.txt"), "x\n")
			if c.file {
				put(t, filepath.Join(cwd, "big.txt"), text+"LAST\n")
			}
			srv := wiretest.New(t)
			put(t, filepath.Join(home, "config/pillion/pillion.jsonc"), fmt.Sprintf(`{"permission": {"*": "allow", "edit": "ask"}, "sandbox": "off", "lsp": false, "model": "mine/m",
				"provider": {"mine": {"baseURL": %q, "models": {"m": {"context": 1073741824}}}}, "mcp": {"big": {"type": "remote", "url": %q}}}`, srv.OpenAIURL(), remote.URL))
			p := acpProcess(t, "PILLION_LOG_LEVEL=warn")
			p.request("initialize", `{"protocolVersion":1,"clientCapabilities":{}}`)
			s, _ := p.request("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, cwd))["sessionId"].(string)
			turn := func(prompt string, steps ...wiretest.Step) {
				t.Helper()
				if len(steps) == 0 || steps[len(steps)-1].Text == "" {
					steps = append(steps, wiretest.Step{Text: "Done."})
				}
				srv.Add(steps...)
				ended := p.turn(fmt.Sprintf(`{"sessionId":%q,"prompt":[%s]}`, s, prompt))
				if !strings.Contains(ended, `"stopReason":"end_turn"`) || len(srv.Failures())+srv.Left() > 0 {
					t.Fatalf("%.300s; %d steps left", ended, srv.Left())
				}
			}
			turn(`{"type":"text","text":"go"}`, call("read", map[string]string{"filePath": "small.txt"}))
			pid := p.cmd.Process.Pid
			before := memoryLine(t, pid, "VmRSS")
			if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
				t.Skip("the kernel does not reset the peak: ", err)
			}
			turn(c.prompt, c.steps...)
			switch c.name { // it must have gone the whole way
			case "edit":
				if got := read(t, filepath.Join(cwd, "big.txt")); !strings.HasSuffix(got, "NEXT\n") {
					t.Error("the edit was not written")
				}
			case "write":
				if got := read(t, filepath.Join(cwd, "new.txt")); got != text {
					t.Errorf("%d bytes were written", len(got))
				}
			case "paste", "embedded resource":
				if sent := srv.Requests()[len(srv.Requests())-1]; len(sent.Body) < len(c.prompt) {
					t.Errorf("the model got %d bytes", len(sent.Body))
				}
			}
			grown := (memoryLine(t, pid, "VmHWM") - before) >> 10
			t.Logf("%d MB above %d", grown, before>>10)
			if grown > c.mb {
				t.Errorf("an event of %d MB grew the process by %d MB, at most %d are allowed", longEvent>>20, grown, c.mb)
			}
		})
	}
}

// turn prompts and returns the answer, and allows what is asked. It neither decodes nor keeps long messages: the test would need more memory
// than the program.
func (p *process) turn(params string) string {
	p.t.Helper()
	if _, err := io.WriteString(p.conn, `{"jsonrpc":"2.0","id":"turn","method":"session/prompt","params":`+params+"}\n"); err != nil {
		p.t.Fatal(err)
	}
	for line := range p.in {
		if len(line) > 32<<20 { // more than editors with the SDK for npm read
			p.t.Errorf("a message of %d bytes: %.200s", len(line), line)
		}
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			p.t.Fatal(err)
		}
		switch {
		case string(m.ID) == `"turn"`:
			return line
		case m.Method == "session/request_permission":
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"once"}}}`, m.ID))
		}
	}
	p.t.Fatal("the server closed the connection")
	return ""
}

// memoryLine is a line of a process's status, in KiB.
func memoryLine(t *testing.T, pid int, name string) int {
	t.Helper()
	_, rest, _ := strings.Cut(read(t, fmt.Sprintf("/proc/%d/status", pid)), "\n"+name+":")
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
