// Command limit is an agent that does what the wire demands and nothing else: no store, no rules, no checks. What a
// measurement takes with it is what the editor's pipe, the model's HTTP and the disk take by themselves.
//
//	LIMIT_URL=http://127.0.0.1:1234/v1 limit     speaks ACP on stdin and stdout
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

type rpc struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

type agent struct {
	url      string
	mu       sync.Mutex // guards what follows
	out      *bufio.Writer
	sessions map[string]*[]json.RawMessage // messages, encoded
	asks     map[string]chan json.RawMessage
	n        int
}

func main() {
	a := &agent{url: os.Getenv("LIMIT_URL"), out: bufio.NewWriterSize(os.Stdout, 64<<10), sessions: map[string]*[]json.RawMessage{}, asks: map[string]chan json.RawMessage{}}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m rpc
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		switch m.Method {
		case "initialize":
			a.send(`{"jsonrpc":"2.0","id":`, string(m.ID), `,"result":{"protocolVersion":1,"agentCapabilities":{}}}`)
		case "session/new":
			a.mu.Lock()
			a.n++
			id := "s" + strconv.Itoa(a.n)
			a.sessions[id] = &[]json.RawMessage{}
			a.mu.Unlock()
			a.send(`{"jsonrpc":"2.0","id":`, string(m.ID), `,"result":{"sessionId":"`, id, `"}}`)
		case "session/prompt":
			go a.prompt(m)
		case "":
			a.mu.Lock()
			ch := a.asks[string(m.ID)]
			delete(a.asks, string(m.ID))
			a.mu.Unlock()
			if ch != nil {
				ch <- m.Result
			}
		}
	}
}

func (a *agent) send(parts ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range parts {
		_, _ = a.out.WriteString(p)
	}
	_ = a.out.WriteByte('\n')
	_ = a.out.Flush()
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func (a *agent) prompt(m rpc) {
	var p struct {
		SessionID string
		Prompt    []struct{ Text string }
	}
	_ = json.Unmarshal(m.Params, &p)
	a.mu.Lock()
	history := a.sessions[p.SessionID]
	a.mu.Unlock()
	*history = append(*history, json.RawMessage(`{"role":"user","content":`+quote(p.Prompt[0].Text)+`}`))
	for a.step(p.SessionID, history) {
	}
	a.send(`{"jsonrpc":"2.0","id":`, string(m.ID), `,"result":{"stopReason":"end_turn"}}`)
}

// step asks the model once and runs what it calls; it reports whether there is more to do.
func (a *agent) step(session string, history *[]json.RawMessage) bool {
	body := bytes.NewBufferString(`{"model":"m","stream":true,"messages":[`)
	for i, h := range *history {
		if i > 0 {
			body.WriteByte(',')
		}
		body.Write(h)
	}
	body.WriteString(`]}`)
	resp, err := http.Post(a.url+"/chat/completions", "application/json", body)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	type call struct{ id, name, args string }
	var calls []call
	var text, unsent strings.Builder
	show := func() {
		if unsent.Len() > 0 {
			a.send(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"`, session,
				`","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":`, quote(unsent.String()), `}}}}`)
			unsent.Reset()
		}
	}
	for r := bufio.NewReaderSize(resp.Body, 64<<10); ; {
		line, err := r.ReadSlice('\n')
		if err != nil {
			break
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok || bytes.HasPrefix(data, []byte("[DONE]")) {
			// The blank line that ends an event is the last that has arrived. Deltas that came together are one update: a later one
			// would be no earlier on the screen.
			if r.Buffered() == 0 {
				show()
			}
			continue
		}
		if t, ok := plainContent(data); ok {
			text.WriteString(t)
			unsent.WriteString(t)
			continue
		}
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content   string
					ToolCalls []struct {
						Index    int
						ID       string
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
			}
		}
		if json.Unmarshal(data, &chunk) != nil {
			continue
		}
		for _, c := range chunk.Choices {
			if t := c.Delta.Content; t != "" {
				text.WriteString(t)
				unsent.WriteString(t)
			}
			for _, t := range c.Delta.ToolCalls {
				if t.Index == len(calls) {
					calls = append(calls, call{id: t.ID, name: t.Function.Name})
				}
				calls[t.Index].args += t.Function.Arguments
			}
		}
	}
	show()
	if len(calls) == 0 {
		*history = append(*history, json.RawMessage(`{"role":"assistant","content":`+quote(text.String())+`}`))
		return false
	}
	// All calls of an answer are one message, and each result is one: the history must grow as that of the agents beside it.
	asked := make([]string, len(calls))
	for i, c := range calls {
		asked[i] = `{"id":` + quote(c.id) + `,"type":"function","function":{"name":` + quote(c.name) + `,"arguments":` + quote(c.args) + `}}`
	}
	*history = append(*history, json.RawMessage(`{"role":"assistant","tool_calls":[`+strings.Join(asked, ",")+`]}`))
	for _, c := range calls {
		a.send(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"`, session, `","update":{"sessionUpdate":"tool_call","toolCallId":`, quote(c.id), `,"title":`, quote(c.name), `,"status":"in_progress","rawInput":`, c.args, `}}}`)
		out := a.tool(session, c.id, c.name, c.args)
		a.send(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"`, session, `","update":{"sessionUpdate":"tool_call_update","toolCallId":`, quote(c.id), `,"status":"completed","content":[{"type":"content","content":{"type":"text","text":`, quote(out), `}}]}}}`)
		*history = append(*history, json.RawMessage(`{"role":"tool","tool_call_id":`+quote(c.id)+`,"content":`+quote(out)+`}`))
	}
	return true
}

// plainContent cuts the text out of a delta without decoding the rest. It takes only deltas that are text without escapes, as nearly
// all are; what it leaves is decoded in full.
func plainContent(data []byte) (string, bool) {
	_, rest, ok := bytes.Cut(data, []byte(`"delta":{"content":"`))
	if !ok || bytes.Contains(data, []byte("tool_calls")) {
		return "", false
	}
	text, _, ok := bytes.Cut(rest, []byte{'"'})
	return string(text), ok && bytes.IndexByte(text, '\\') < 0
}

func (a *agent) tool(session, id, name, args string) string {
	var in struct{ FilePath, OldString, NewString string }
	_ = json.Unmarshal([]byte(args), &in)
	text, err := os.ReadFile(in.FilePath)
	if err != nil || name == "read" {
		return string(text)
	}
	after := strings.Replace(string(text), in.OldString, in.NewString, 1)
	a.ask(session, id, in.FilePath, string(text), after)
	if err := replaceFile(in.FilePath, after); err != nil {
		return err.Error()
	}
	return "ok"
}

func (a *agent) ask(session, id, path, before, after string) {
	a.mu.Lock()
	a.n++
	request := strconv.Itoa(a.n)
	ch := make(chan json.RawMessage, 1)
	a.asks[request] = ch
	a.mu.Unlock()
	a.send(`{"jsonrpc":"2.0","id":`, request, `,"method":"session/request_permission","params":{"sessionId":"`, session, `","toolCall":{"toolCallId":`, quote(id),
		`,"content":[{"type":"diff","path":`, quote(path), `,"oldText":`, quote(before), `,"newText":`, quote(after), `}]},"options":[{"optionId":"once","name":"Allow","kind":"allow_once"}]}}`)
	<-ch
}

// replaceFile writes a file so that a crash leaves the old or the new one.
func replaceFile(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".limit-*")
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("rename: %w", err)
	}
	return nil
}
