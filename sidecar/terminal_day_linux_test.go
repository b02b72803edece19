package main

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

// call is a tool call of a scripted model.
func call(name string, input any) wiretest.Call {
	raw, err := json.Marshal(input)
	if err != nil {
		panic(err)
	}
	return wiretest.Call{Name: name, Input: raw}
}

// ends waits until the program in the terminal, and with it tmux, has ended.
func (s *tmux) ends() {
	s.t.Helper()
	within, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	for exec.CommandContext(within, "tmux", "-S", s.socket, "has-session").Run() == nil {
		if within.Err() != nil {
			s.t.Fatal("the conversation did not end")
		}
	}
}

// richAnswer has every kind of block, wide characters, and lines that fit no terminal.
const richAnswer = "# 見出し: a plan\n\nThis is **bold**, *italic*, ~~struck~~, `code` and a [link](https://example.com/a) — it goes on so that it wraps at words.\n\n" +
	"1. First `make test`, which may be long and has a hanging indent\n2. Then:\n   - nested 日本語のテキストはどこで折り返すのでしょうか長い長い長い\n   - [x] done\n   - [ ] to do\n\n" +
	"> A quote that is long enough to be wrapped on a narrow terminal.\n\n" +
	"| name | 説明 | count |\n|:--|:-:|--:|\n| alpha | 最初の項目です | 1 |\n| beta with a long name | short | 1,000 |\n\n" +
	"```go\n// main greets everybody who reads this comment, which fits into no narrow terminal\nfunc main() {\n\tfmt.Println(\"hello, 世界\", 1)\n}\n```\n\n---\n\nThe last line."

// An answer with everything that Markdown has, at 80 and at 40 columns, with colours and without, streamed and whole.
func TestAnAnswerOnTheScreen(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]seat{
		"answer-80": {},
		"answer-40": {columns: 40, rows: 60},
		"no-color":  {env: []string{"NO_COLOR=1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			paused := make(chan struct{})
			model := wiretest.New(t, wiretest.Step{Text: richAnswer, Pause: paused, Usage: &wiretest.Usage{Input: 4200, Output: 130}})
			s, _ := sitInTmux(t, model, o)
			s.until("/help")
			s.types("Tell me everything about it, and wrap this prompt where it is too long for the terminal")
			s.press("Enter")
			s.until("esc stops")
			close(paused)
			s.matches(name, s.until("The last line.\n\n›"))
			colours := strings.Contains(s.run("capture-pane", "-p", "-e", "-S", "-", "-t", screenName), "\x1b[3")
			if want := name != "no-color"; colours != want {
				t.Errorf("colours: %v", colours)
			}
		})
	}
}

// askedAhead are the questions that a conversation can ask, by name: what the model does, and what is on the screen when it is asked.
var askedAhead = map[string]struct {
	calls   []wiretest.Call
	config  string
	asks    string
	refused string // is on the screen after Escape
}{
	"a command":      {calls: []wiretest.Call{call("bash", map[string]string{"command": "touch done.txt", "description": "make it"})}, asks: "Allow [y,n,A,P,E,q,?]?", refused: "stopped"},
	"a hunk":         {calls: []wiretest.Call{call("edit", map[string]string{"filePath": "a.txt", "oldString": "two", "newString": "done"})}, asks: "Accept this hunk [y,n", refused: "stopped"},
	"a new file":     {calls: []wiretest.Call{call("write", map[string]string{"filePath": "done.txt", "content": "x\n"})}, asks: "Create this file [y,n", refused: "stopped"},
	"an address":     {calls: []wiretest.Call{call("webfetch", map[string]string{"url": "http://127.0.0.1:9/done", "format": "text"})}, asks: "Allow [y,n", refused: "stopped"},
	"a question":     {calls: []wiretest.Call{call("question", map[string]any{"questions": []any{map[string]any{"question": "Shall I?", "header": "h", "options": []any{map[string]string{"label": "yes", "description": "d"}, map[string]string{"label": "Please", "description": "d"}}}}})}, asks: "(enter dismisses):", refused: "✗ question"},
	"an elicitation": {calls: []wiretest.Call{call("asks_ask", map[string]string{})}, config: `{"lsp": false, "permission": {"asks_*": "allow"}, "mcp": {"asks": {"command": ["node", "SERVER"]}}}`, asks: "(enter dismisses):", refused: "asks_ask"},
	"a draft":        {calls: []wiretest.Call{call("edit", map[string]string{"filePath": "a.txt", "oldString": "two", "newString": "done"})}, config: `{"lsp": false, "review": "draft"}`, asks: "[y,n", refused: "stopped"},
}

// elicits is an MCP server with one tool, which asks the person.
const elicits = `const send = (m) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...m }) + "\n");
let call;
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const m = JSON.parse(line);
  if (m.method === "initialize") send({ id: m.id, result: { protocolVersion: m.params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "asks", version: "1" } } });
  else if (m.method === "tools/list") send({ id: m.id, result: { tools: [{ name: "ask", description: "asks", inputSchema: { type: "object", properties: {} } }] } });
  else if (m.method === "tools/call") { call = m.id; send({ id: "e", method: "elicitation/create", params: { message: "Delete everything?", requestedSchema: { type: "object", properties: { sure: { type: "boolean", title: "Sure?" } }, required: ["sure"] } } }); }
  else if (m.id === "e") send({ id: call, result: { content: [{ type: "text", text: "got " + JSON.stringify(m.result) }] } });
  else if (m.id !== undefined) send({ id: m.id, result: {} });
});
`

// What is typed while the model works answers no question that appears then, of whichever kind: it stays a prompt, sent or not. The
// question is answered after that, by a key that was meant for it.
func TestTypingAheadAnswersNoQuestion(t *testing.T) {
	t.Parallel()
	for name, q := range askedAhead {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{})
			model := wiretest.New(t, wiretest.Step{Wait: asked, Calls: q.calls}, wiretest.Step{Text: "Done."})
			model.Repeat = true
			server := filepath.Join(t.TempDir(), "asks.js")
			if err := os.WriteFile(server, []byte(elicits), 0o600); err != nil {
				t.Fatal(err)
			}
			s, project := sitInTmux(t, model, seat{config: strings.ReplaceAll(q.config, "SERVER", server)})
			s.until("/help")
			s.types("Begin")
			s.press("Enter")
			s.until("esc stops")
			s.types("Please say yes. P")
			s.press("Enter") // into the queue
			s.until("queued: Please say yes. P")
			s.types("y")
			close(asked)
			screen := s.until("tab goes to the question")
			if !strings.Contains(screen, "› y\n") {
				t.Errorf("the draft is gone:\n%s", screen)
			}
			if _, err := os.Stat(filepath.Join(project, "done.txt")); err == nil {
				t.Error("done.txt was written")
			}
			s.press("BSpace")
			screen = s.until(q.asks) // the prompt is empty, so the question has the keys after a quiet moment
			if strings.Contains(screen, q.asks+" y") || strings.Contains(screen, "✓") && name != "a draft" {
				t.Errorf("it is answered:\n%s", screen)
			}
			if b, err := os.ReadFile(filepath.Join(project, "a.txt")); err != nil || string(b) != "one\ntwo\nthree\n" {
				t.Errorf("%q %v", b, err)
			}
			s.press("Escape")
			s.until(q.refused)
		})
	}
}

// The question whether to trust a folder is asked before there is a prompt: what was typed before it could be read is no answer either.
func TestTypingAheadTrustsNoFolder(t *testing.T) {
	t.Parallel()
	s, _ := sitInTmux(t, wiretest.New(t), seat{shell: true, files: map[string]string{"opencode.json": `{"permission": {"bash": "allow"}}`}})
	s.until("$")
	s.run("send-keys", "-t", screenName, "-l", "ride\ny\nyes\ny\n")
	s.until("[y/N]")
	s.press("n", "Enter")
	s.until("/help")
	s.press("C-d")
	s.until("$")
	s.types("ride trust --list")
	s.press("Enter")
	s.until("no folder is trusted")
	s.types("exit")
	s.press("Enter")
	s.ends()
}

// A terminal of ten rows shows the question and its keys, whatever is above it.
func TestASmallTerminal(t *testing.T) {
	t.Parallel()
	model := wiretest.New(t, wiretest.Step{Text: richAnswer, Calls: []wiretest.Call{call("bash", map[string]string{"command": "touch made.txt", "description": "make a file"})}}, wiretest.Step{Text: "Done."})
	s, _ := sitInTmux(t, model, seat{columns: 60, rows: 10})
	s.until("/help")
	s.types("Do it")
	s.press("Enter")
	s.matches("small", s.until("y yes"))
	s.types("y")
	s.until("Done.")
}

// The commands of a conversation, one after the other.
func TestTheCommandsOfAConversation(t *testing.T) {
	t.Parallel()
	model := wiretest.New(t,
		wiretest.Step{Usage: &wiretest.Usage{Input: 4200, Output: 130}, Calls: []wiretest.Call{call("edit", map[string]string{"filePath": "a.txt", "oldString": "two", "newString": "TWO"})}},
		wiretest.Step{Usage: &wiretest.Usage{Input: 4300, Output: 30}, Text: "I have changed one word. " + strings.Repeat("More words. ", 20)},
		wiretest.Step{Usage: &wiretest.Usage{Input: 4400, Output: 30}, Text: "## Goal\nOne word."},
	)
	s, project := sitInTmux(t, model, seat{rows: 200})
	s.until("/help")
	s.types("Change a word")
	s.press("Enter")
	s.until("q stop")
	s.types("y")
	s.until("1 file changed")
	has := func(path, want string) {
		t.Helper()
		if b, err := os.ReadFile(filepath.Join(project, path)); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %q %v", path, b, err)
		}
	}
	for _, c := range []struct{ types, shows string }{
		{"/undo", "/redo undoes this."},
		{"/redo", "• a.txt: restored\n\n›"},
		{"/cost", "2 steps: 8500 tokens in"},
		{"/permissions", "This project has no grants."},
		{"/permissions auto", "Commands run in the sandbox"},
		{"/permissions ask", "You are asked about each command"},
		{"/model", "The model is openai/scripted."},
		{"/model openai/other", "Changed the model to openai/other."},
		{"/model openai/scripted", "Changed the model to openai/scripted."},
		{"/agent", "The agent is build."},
		{"/agent plan", "Changed the agent to plan."},
		{"/agent build", "Changed the agent to build."},
		{"/mcp", "No MCP server is configured."},
		{"/export talk.md", "talk.md"},
		{"/compact", "became a summary"},
		{"/fork", "This is a copy of the session"},
		{"/sessions", "Change a word (fork)"},
		{"/new", "A new session."},
		{"/resume 2", "│ Change a word"},
		{"/resume 99", `no session "99"`},
		{"/nothing", "Goal"}, // no command: a prompt, answered by the scripted model
	} {
		if c.types == "/nothing" {
			break
		}
		s.run("clear-history", "-t", screenName)
		s.press("C-l")
		s.types(c.types)
		s.press("Enter")
		screen := s.until(c.shows)
		if at := strings.Index(screen, "› "+c.types); at < 0 || !strings.Contains(screen[at:], c.shows) {
			t.Errorf("%s: its answer is not below it:\n%s", c.types, screen)
		}
		switch c.types {
		case "/compact":
			if n := strings.Count(screen, c.shows); n != 1 {
				t.Errorf("%s: said %d times:\n%s", c.types, n, screen)
			}
		case "/undo":
			has("a.txt", "two")
		case "/redo":
			has("a.txt", "TWO")
		case "/export talk.md":
			has("talk.md", "Change a word")
		}
	}
	s.press("C-l")
	s.types("/help")
	s.press("Enter")
	s.matches("help", s.until("tab goes to a question"))
}

// What a person does at a prompt: files, pictures and a long paste attached, the last prompt searched, an editor, a turn steered and
// stopped, and everything reaches the model.
func TestThePromptOfADay(t *testing.T) {
	t.Parallel()
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewRGBA(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	running, ended := make(chan struct{}), make(chan struct{})
	model := wiretest.New(t,
		wiretest.Step{Text: "One."},
		wiretest.Step{Text: "Two."},
		wiretest.Step{Wait: running, Calls: []wiretest.Call{call("read", map[string]string{"filePath": "a.txt"})}},
		wiretest.Step{Text: "Steered."},
		wiretest.Step{Text: "It begins", Pause: ended},
		wiretest.Step{Text: "After it."},
	)
	defer close(ended)
	editor := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nprintf ' and more' >>\"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, _ := sitInTmux(t, model, seat{files: map[string]string{"dot.png": picture.String(), "lib/util.go": "package lib\n"}, env: []string{"EDITOR=" + editor}})
	sent := func(n int) string {
		t.Helper()
		r := model.Requests()
		if len(r) <= n {
			t.Fatalf("%d requests", len(r))
		}
		return string(r[n].Body)
	}
	s.until("/help")
	s.types("Look at @lib/ut")
	s.until("▸ @lib/util.go")
	s.press("Tab")
	s.types("and @dot.png")
	s.press("Enter")
	s.until("One.")
	if body := sent(0); !strings.Contains(body, "package lib") || !strings.Contains(body, "data:image/png;base64,") {
		t.Error(body)
	}
	s.run("set-buffer", strings.Repeat("a line of a log\n", 1000))
	s.run("paste-buffer", "-p", "-t", screenName)
	s.matches("paste", s.until("[paste 1: 1000 lines]"))
	s.press("C-g")
	s.until("and more")
	s.press("Enter")
	s.until("Two.")
	if body := sent(1); strings.Count(body, "a line of a log") != 1000 || !strings.Contains(body, "and more") {
		t.Errorf("%d lines", strings.Count(body, "a line of a log"))
	}
	s.press("C-r")
	s.types("Look")
	s.until("search: Look")
	s.press("Enter")
	s.until("› Look at @lib/util.go")
	s.press("C-u")
	s.types("Read it")
	s.press("Enter")
	s.until("esc stops")
	s.types("in French")
	s.press("C-s")
	s.until("(steers) in French")
	close(running)
	s.until("Steered.")
	if !strings.Contains(sent(3), "in French") {
		t.Error("the words did not reach the running turn")
	}
	s.types("Go on")
	s.press("Enter")
	s.until("It begins")
	s.press("Escape")
	s.until("stopped")
	s.types("Again")
	s.press("Enter")
	s.until("After it.")
	s.press("C-c")
	s.until("again to exit")
	s.press("C-c")
	s.ends()
}

// Line by line: for screen readers, and in terminals that cannot move their cursor. Nothing is drawn twice and no escape sequence is
// written.
func TestPlainMode(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]seat{"plain": {args: []string{"run", "--plain"}}, "dumb": {env: []string{"TERM=dumb"}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := wiretest.New(t, wiretest.Step{Text: "I **will** ask.", Calls: []wiretest.Call{call("bash", map[string]string{"command": "touch made.txt", "description": "make a file"})}}, wiretest.Step{Text: "Done."})
			s, _ := sitInTmux(t, model, o)
			s.run("pipe-pane", "-o", "-t", screenName, "cat >"+s.socket+".log")
			s.until("\n>\n")
			s.types("Do it")
			s.press("Enter")
			s.until("Allow [y,n")
			s.types("y")
			s.matches("plain", s.until("file changed"))
			s.press("C-d")
			s.ends()
			raw, err := os.ReadFile(s.socket + ".log")
			if err != nil || bytes.Contains(raw, []byte("\x1b[")) {
				t.Errorf("%v %q", err, raw)
			}
		})
	}
}

// What can be done at a prompt line by line: its commands, files, the shell, a prompt of several lines, and Ctrl-C for a turn.
func TestPlainModeHasTheCommandsOfAConversation(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	defer close(hang)
	model := wiretest.New(t, wiretest.Step{Text: "One."}, wiretest.Step{Text: "It begins\n", Pause: hang}, wiretest.Step{Text: "After it."})
	s, _ := sitInTmux(t, model, seat{args: []string{"run", "--plain"}})
	s.until("\n>\n")
	for _, c := range []struct{ types, shows string }{
		{"Look at @a.txt and \\", "…"},
		{"say what it is", "One."},
		{"!echo in the shell", "\nin the shell\n"},
		{"/cost", "1 step"},
		{"/sessions", "← this one"},
		{"/new", "A new session. `/resume` goes back"},
		{"/resume", "│ Look at @a.txt and say what it is"},
		{"/nothing of this name", "It begins"}, // a prompt
	} {
		s.types(c.types)
		s.press("Enter")
		s.until(c.shows)
	}
	s.press("C-c")
	s.until("stopped\n>\n")
	s.types("Go on")
	s.press("Enter")
	s.until("After it.\n>\n")
	if r := model.Requests(); len(r) != 3 || !bytes.Contains(r[0].Body, []byte("three")) || !bytes.Contains(r[1].Body, []byte("in the shell")) {
		t.Errorf("%d requests: %s", len(r), r[0].Body)
	}
	s.types("/quit")
	s.press("Enter")
	s.ends()
}

// A conversation is suspended and goes on; the window is closed in the middle of a turn, and the next conversation finds everything that
// was said; two conversations in one folder do not disturb each other.
func TestAConversationIsLeftAndComesBack(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	defer close(hang)
	model := wiretest.New(t, wiretest.Step{Text: "First answer."}, wiretest.Step{Text: "An answer that the window", Pause: hang}, wiretest.Step{Text: "Third answer."})
	s, project := sitInTmux(t, model, seat{shell: true})
	s.until("$")
	s.types("ride")
	s.press("Enter")
	s.until("/help")
	s.types("first")
	s.press("Enter")
	s.until("First answer.\n\n›")
	s.types("half a prompt")
	s.press("C-z")
	s.until("Stopped")
	s.types("echo in the $((1+1))nd shell; fg")
	s.press("Enter")
	screen := s.until("half a prompt\n")
	if !strings.Contains(screen, "in the 2nd shell") {
		t.Error(screen)
	}
	s.press("C-c")
	s.types("second")
	s.press("Enter")
	s.until("that the window")
	s.window(project, "new-window", "-t", screenName) // the server lives on when the first is closed
	s.run("kill-pane", "-t", screenName)
	select {
	case <-s.first:
	case <-time.After(patience):
		t.Fatal("the program outlives its terminal")
	}
	s.until("$")
	s.types("ride run -c")
	s.press("Enter")
	screen = s.until("/help")
	if !strings.Contains(screen, "second") || !strings.Contains(screen, "An answer that the window") {
		t.Errorf("what was said is lost:\n%s", screen)
	}
	s.types("third")
	s.press("Enter")
	s.until("Third answer.")
	r := model.Requests()
	if body := string(r[len(r)-1].Body); !strings.Contains(body, "First answer.") || !strings.Contains(body, "second") || !strings.Contains(body, "third") {
		t.Error(body)
	}
}
