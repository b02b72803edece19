package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAPromptStreamsAndEnds(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start("")
	r.model.steps = append(r.model.steps, says("Hello <there>"))
	r.ed.send(`{"jsonrpc":"2.0","id":9,"method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"hi"}]}}`)
	r.ed.expect(`{"method":"session/update","params":{"sessionId":"$S","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hello <there>"}}}}`)
	r.ed.expect(`{"id":9,"result":{"stopReason":"end_turn"}}`)
}

func TestWelcomeFollowsTheAnswer(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.ed.request("initialize", `{"protocolVersion":1}`)
	r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"x\"<","method":"session/new","params":{"cwd":%q,"mcpServers":[]}}`, r.cwd))
	m, line := r.ed.receive()
	if _, isAnswer := m["result"]; !isAnswer {
		t.Errorf("something came before the answer: %s", line)
	}
	r.ed.expect(`{"params":{"update":{"sessionUpdate":"available_commands_update"}}}`)
}

func TestBadRequests(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	file := filepath.Join(r.cwd, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(r.cwd, "closed")
	if err := os.Mkdir(closed, 0o000); err != nil {
		t.Fatal(err)
	}
	r.start("")
	cases := []struct {
		name, method, params, code, text string
	}{
		{"unknown method", "session/fly", `{}`, "-32601", "method not found: session/fly"},
		{"v0 method that is gone", "session/set_model", `{}`, "-32601", "session/set_model"},
		{"unknown extension", "_pillion/none", `{}`, "-32601", "_pillion/none"},
		{"wrong type with its path", "session/prompt", `{"sessionId":"s","prompt":[{"type":"text","text":5}]}`, "-32602", "prompt[0].text: want a string, got a number"},
		{"array for params", "session/prompt", `[1]`, "-32602", "want an object"},
		{"no params", "session/prompt", `null`, "-32602", "sessionId: is missing"},
		{"no such session", "session/prompt", `{"sessionId":"nope","prompt":[{"type":"text","text":"x"}]}`, "-32002", `no session \"nope\"`},
		{"empty prompt", "session/prompt", `{"sessionId":"$S","prompt":[]}`, "-32602", "prompt: is empty"},
		{"audio", "session/prompt", `{"sessionId":"$S","prompt":[{"type":"audio","data":"","mimeType":"a/b"}]}`, "-32602", "audio is not supported"},
		{"bad base64", "session/prompt", `{"sessionId":"$S","prompt":[{"type":"image","data":"%","mimeType":"image/png"}]}`, "-32602", "prompt[0].data: is not base64"},
		{"relative cwd", "session/new", `{"cwd":"x","mcpServers":[]}`, "-32602", "is not an absolute path"},
		{"cwd that is a file", "session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, file), "-32602", "is not a directory"},
		{"cwd that is missing", "session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, file+"x"), "-32602", "does not exist"},
		{"additional directory that is missing", "session/new", fmt.Sprintf(`{"cwd":%q,"additionalDirectories":["/no/such"],"mcpServers":[]}`, r.cwd), "-32602", "additionalDirectories[0]: /no/such does not exist"},
		{"unknown mode", "session/set_mode", `{"sessionId":"$S","modeId":"x"}`, "-32602", "unknown mode"},
		{"unknown option", "session/set_config_option", `{"sessionId":"$S","configId":"x","value":"y"}`, "-32602", "unknown option"},
		{"unknown model", "session/set_config_option", `{"sessionId":"$S","configId":"model","value":"y"}`, "-32602", "unknown model"},
		{"number for an option", "session/set_config_option", `{"sessionId":"$S","configId":"model","value":1}`, "-32602", "value: want"},
		{"load of nothing", "session/load", fmt.Sprintf(`{"sessionId":"gone","cwd":%q,"mcpServers":[]}`, r.cwd), "-32002", `session \"gone\" cannot be opened`},
		{"close of nothing", "session/close", `{"sessionId":"gone"}`, "-32002", "no session"},
		{"cursor of nothing", "session/list", `{"cursor":"gone"}`, "-32602", "unknown cursor"},
		{"unknown change", "_pillion/change/undo", `{"sessionId":"$S","changeSet":"c"}`, "-32002", "no change"},
		{"unknown login", "authenticate", `{"methodId":"x"}`, "-32602", "no authentication is needed"},
		{"logout without a login", "logout", `{}`, "-32601", "logout"},
	}
	if os.Getuid() != 0 {
		cases = append(cases, struct{ name, method, params, code, text string }{"unreadable cwd", "session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, closed), "-32602", "permission denied"})
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r.ed.t = t
			r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, i, c.method, c.params))
			m := r.ed.expect(fmt.Sprintf(`{"id":%d,"error":{"code":%s}}`, i, c.code))
			text := fmt.Sprintf("%q", m["error"].(map[string]any)["message"])
			if !strings.Contains(text, c.text) {
				t.Errorf("got %s, want %s", text, c.text)
			}
		})
	}
	r.ed.t = t
	r.ed.request("session/list", `{}`) // and the connection lives
}

func TestNonsenseOnTheWireIsAnsweredAndSurvived(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start("")
	for in, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,`: `{"id":null,"error":{"code":-32700}}`,
		`hello`:                    `{"id":null,"error":{"code":-32700}}`,
		`"text"`:                   `{"id":null,"error":{"code":-32600}}`,
		`{"jsonrpc":"1.0","id":3,"method":"initialize"}`:       `{"id":3,"error":{"code":-32600}}`,
		`{"jsonrpc":"2.0","id":{"a":1},"method":"initialize"}`: `{"error":{"code":-32600}}`,
		`[]`: `{"id":null,"error":{"code":-32600}}`,
		`[{"jsonrpc":"2.0","id":5,"method":"x"},{"jsonrpc":"2.0","id":6,"method":"session/list","params":{}}]`: `{"batch":["*","*"]}`,
	} {
		r.ed.send(in)
		r.ed.expect(want)
	}
	// What needs no answer gets none: a response nobody waits for, blank lines, unknown notifications.
	r.ed.send(`{"jsonrpc":"2.0","id":77,"result":{}}`)
	r.ed.send(``)
	r.ed.send(`{"jsonrpc":"2.0","method":"_whatever/happened","params":5}`)
	r.ed.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"gone"}}`)
	r.ed.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":12345}}`)
	r.ed.send(`{"jsonrpc":"2.0","id":"last","method":"session/list","params":{}}`)
	// Notifications of the session may come in between: its commands are listed when its folder has been read.
	for {
		m, line := r.ed.receive()
		if _, notification := m["method"]; notification && m["id"] == nil {
			continue
		}
		if m["id"] != "last" {
			t.Errorf("an answer nobody asked for: %s", line)
		}
		break
	}
}

// An editor that writes a byte at a time, and goes away in the middle of a message: what was whole is answered, what was
// not does nothing, and the server ends without an error.
func TestAByteAtATimeAndHalfAMessageAtTheEnd(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	id := r.start("")
	slowly := func(text string) {
		for i := range len(text) {
			if _, err := r.ed.conn.Write([]byte{text[i]}); err != nil {
				t.Fatal(err)
			}
		}
	}
	slowly(fmt.Sprintf(`{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"grüß dich 😀"}]}}`+"\r\n", id))
	r.ed.expect(`{"id":"p","result":{"stopReason":"end_turn"}}`)
	if got := r.model.seen[0].Messages[0].Parts[0].Text; got != "grüß dich 😀" {
		t.Errorf("the model read %q", got)
	}
	slowly(fmt.Sprintf(`{"jsonrpc":"2.0","id":"half","method":"session/delete","params":{"sessionId":%q`, id))
	_ = r.ed.conn.Close()
	err := <-r.served
	r.served <- err
	if err != nil {
		t.Errorf("it ended with %v", err)
	}
	if _, err := r.rt.LoadSession(t.Context(), id); err != nil {
		t.Errorf("half a message did something: %v", err)
	}
}

func TestAnIDInUseIsRefused(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start("")
	started := make(chan struct{})
	r.model.steps = append(r.model.steps, hangs(started))
	r.ed.send(`{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"x"}]}}`)
	<-started
	r.ed.send(`{"jsonrpc":"2.0","id":5,"method":"session/list","params":{}}`)
	r.ed.expect(`{"id":5,"error":{"code":-32600}}`)
	r.ed.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"$S"}}`)
	r.ed.expect(`{"id":5,"result":{"stopReason":"cancelled"}}`)
}

func TestAFloodOfRequestsIsAnsweredInFull(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start("")
	const n = 2000
	go func() {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `{"jsonrpc":"2.0","id":%d,"method":"session/list","params":{}}`+"\n", i)
		}
		_, _ = r.ed.conn.Write([]byte(b.String()))
	}()
	seen := map[float64]bool{}
	for len(seen) < n {
		m, line := r.ed.receive()
		if m["method"] == "session/update" {
			continue
		}
		id, ok := m["id"].(float64)
		if !ok || seen[id] {
			t.Fatalf("unexpected: %s", line)
		}
		seen[id] = true
	}
}

func TestCancelEndsTheTurnAndWhatIsQueued(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start("")
	started := make(chan struct{})
	r.model.steps = append(r.model.steps, hangs(started))
	for i := range 3 {
		r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"x"}]}}`, i))
	}
	<-started
	r.ed.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"$S"}}`)
	got := map[float64]bool{}
	for len(got) < 3 {
		m := r.ed.expect(`{"result":{"stopReason":"cancelled"}}`)
		got[m["id"].(float64)] = true
	}
	r.ed.send(`{"jsonrpc":"2.0","id":"after","method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"x"}]}}`)
	r.ed.expect(`{"id":"after","result":{"stopReason":"end_turn"}}`)
	if n := len(r.model.seen); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
}

func TestCancelRequestEndsOneQueuedPromptOnly(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start("")
	started := make(chan struct{})
	r.model.steps = append(r.model.steps, hangs(started))
	for i := range 3 {
		r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"x"}]}}`, i))
	}
	<-started
	r.ed.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`)
	r.ed.expect(`{"id":1,"result":{"stopReason":"cancelled"}}`)
	r.ed.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":0}}`)
	r.ed.expect(`{"id":0,"result":{"stopReason":"cancelled"}}`)
	r.ed.expect(`{"id":2,"result":{"stopReason":"end_turn"}}`)
}

func TestASlowSessionBlocksNobody(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start("")
	started := make(chan struct{})
	r.model.steps = append(r.model.steps, hangs(started), says("quick"))
	r.ed.send(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"x"}]}}`)
	<-started
	r.ed.vars["OLD"] = r.ed.vars["S"]
	r.start("")
	r.ed.request("session/prompt", `{"sessionId":"$S","prompt":[{"type":"text","text":"x"}]}`)
	r.ed.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"$OLD"}}`)
	r.ed.expect(`{"id":1,"result":{"stopReason":"cancelled"}}`)
}

func TestTheEditorGoingAwayEndsEverything(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start("")
	started := make(chan struct{})
	r.model.steps = append(r.model.steps, hangs(started))
	r.ed.send(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"x"}]}}`)
	<-started
	begun := time.Now()
	_ = r.ed.conn.Close()
	err := <-r.served
	r.served <- err
	if d := time.Since(begun); d > patience/2 {
		t.Errorf("it took %s", d)
	}
	if _, live := r.rt.Session(r.ed.vars["S"]); live {
		t.Error("the session is still live")
	}
}

func TestAPermissionNobodyAnswersEndsWithTheEditor(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start("")
	write(t, filepath.Join(r.cwd, "a.txt"), "one\n")
	r.model.steps = append(r.model.steps, callsTool("read", `{"filePath":"a.txt"}`), callsTool("edit", `{"filePath":"a.txt","oldString":"one","newString":"two"}`))
	r.ed.send(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"x"}]}}`)
	r.ed.expect(`{"method":"session/request_permission"}`)
	_ = r.ed.conn.Close()
	err := <-r.served
	r.served <- err
	if got := read(t, filepath.Join(r.cwd, "a.txt")); got != "one\n" {
		t.Errorf("the file is %q", got)
	}
}

func TestCancelWithdrawsThePermissionRequest(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start("")
	write(t, filepath.Join(r.cwd, "a.txt"), "one\n")
	r.model.steps = append(r.model.steps, callsTool("read", `{"filePath":"a.txt"}`), callsTool("edit", `{"filePath":"a.txt","oldString":"one","newString":"two"}`))
	r.ed.send(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"x"}]}}`)
	r.ed.expect(`{"id":"?P","method":"session/request_permission"}`)
	r.ed.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"$S"}}`)
	r.ed.expectAll(`{"method":"$/cancel_request","params":{"requestId":$P}}`, `{"id":1,"result":{"stopReason":"cancelled"}}`)
	r.ed.send(`{"jsonrpc":"2.0","id":$P,"result":{"outcome":{"outcome":"selected","optionId":"once"}}}`) // too late
	r.ed.request("session/list", `{}`)
	if got := read(t, filepath.Join(r.cwd, "a.txt")); got != "one\n" {
		t.Errorf("the file is %q", got)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
