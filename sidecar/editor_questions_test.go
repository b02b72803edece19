//go:build linux || darwin

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pillion-dev/pillion/sidecar/share"
)

// desk is a project, and a person's home in which real `pillion acp` and `pillion mcp` processes find each other.
type desk struct {
	t   *testing.T
	dir string
}

func newDesk(t *testing.T) *desk {
	atHome(t)
	runtime, err := os.MkdirTemp("", "s") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(runtime) })
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	d := &desk{t, scratch(t)}
	put(t, filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "pillion", "pillion.jsonc"), `{"lsp": false}`)
	put(t, filepath.Join(d.dir, "a.txt"), "one\n"+strings.Repeat("-\n", 20)+"two\n")
	return d
}

// editor starts `pillion acp` with a session in dir, for an editor that decides hunk by hunk. close ends it and waits.
func (d *desk) editor(dir string, args ...string) (e *editor, close func()) {
	d.t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"acp"}, args...)...)
	cmd.Env, cmd.Dir, cmd.Stderr = append(os.Environ(), "PILLION_TEST_MAIN=1"), dir, d.t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	e = newEditor(d.t, pipe{out, in, in.Close})
	ended := false
	close = func() {
		if !ended {
			ended = true
			_ = in.Close()
			_ = cmd.Wait()
		}
	}
	d.t.Cleanup(close)
	e.request("initialize", `{"protocolVersion":1,"clientCapabilities":{"_meta":{"pillion":{"version":1,"buffers":true,"hunks":true}}}}`)
	e.vars["S"], _ = e.request("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, dir))["sessionId"].(string)
	return e, close
}

// client starts `pillion mcp` for a client without elicitation. kill ends the process at once.
func (d *desk) client() (c *sdk.ClientSession, kill func()) {
	d.t.Helper()
	cmd := exec.Command(os.Args[0], "mcp", "--cwd", d.dir)
	cmd.Env, cmd.Stderr = append(os.Environ(), "PILLION_TEST_MAIN=1"), d.t.Output()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "oth]er", Version: "1"}, nil).Connect(d.t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = c.Close() })
	return c, func() { _ = cmd.Process.Kill() }
}

// called is the end of a call.
type called struct {
	text   string
	failed bool
}

// both changes the first and the last line of a.txt, which are two hunks.
var both = map[string]any{"filePath": "a.txt", "edits": []any{map[string]any{"oldString": "one", "newString": "ONE"}, map[string]any{"oldString": "two", "newString": "TWO"}}}

// call starts a call.
func (d *desk) call(ctx context.Context, c *sdk.ClientSession, tool string, input any) <-chan called {
	out := make(chan called, 1)
	go func() {
		r, err := c.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: input})
		if err != nil {
			out <- called{err.Error(), true}
			return
		}
		var text strings.Builder
		for _, x := range r.Content {
			if x, ok := x.(*sdk.TextContent); ok {
				text.WriteString(x.Text)
			}
		}
		out <- called{text.String(), r.IsError}
	}()
	return out
}

// file is a.txt without its middle.
func (d *desk) file() string {
	b, err := os.ReadFile(filepath.Join(d.dir, "a.txt"))
	if err != nil {
		d.t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), "-\n", "")
}

func (d *desk) want(text string) {
	d.t.Helper()
	if got := d.file(); got != text {
		d.t.Errorf("a.txt is %q, want %q", got, text)
	}
}

// selects answers the request $P.
func selects(e *editor, option, meta string) {
	e.send(`{"jsonrpc":"2.0","id":$P,"result":{"outcome":{"outcome":"selected","optionId":"` + option + `"` + meta + `}}}`)
}

const (
	asked     = `{"id":"?P","method":"session/request_permission","params":{"sessionId":"$S","toolCall":{"title":"[oth)er 1, over MCP] …"}}}`
	withdrawn = `{"method":"$/cancel_request","params":{"requestId":$P}}`
)

// A client that cannot ask: the question is put to the editor that has the folder open, and the decision there counts, hunk by hunk.
func TestMCPAsksInTheOpenEditor(t *testing.T) {
	d := newDesk(t)
	// What the project says of itself counts only after trust: the edit is asked.
	put(t, filepath.Join(d.dir, "pillion.jsonc"), `{"permission": {"edit": "allow"}}`)
	link := filepath.Join(t.TempDir(), "link") // the editor spells the folder in another way
	if err := os.Symlink(d.dir, link); err != nil {
		t.Fatal(err)
	}
	e, _ := d.editor(link)
	c, _ := d.client()

	got := d.call(t.Context(), c, "multiedit", both)
	m := e.expect(`{"id":"?P","method":"session/request_permission","params":{"sessionId":"$S","toolCall":{"title":"[oth)er 1, over MCP] …","_meta":{"pillion":{"why":"oth)er 1 asks through pillion mcp","changeSet":"?C","files":[{"hunks":["*","*"]}]}}}}}`)
	d.want("one\ntwo\n") // nothing before the decision
	if text := string(mustJSON(m)); !strings.Contains(text, `one\n`) || !strings.Contains(text, `TWO\n`) {
		t.Errorf("no diff: %s", text)
	}
	if r := e.request("_pillion/change/text", `{"sessionId":"$S","changeSet":"$C","uri":"file://`+d.dir+`/a.txt"}`); !strings.Contains(fmt.Sprint(r), "ONE") {
		t.Errorf("the texts of the question: %v", r)
	}
	selects(e, "once", `,"_meta":{"pillion":{"hunks":{"1.1":{"decision":"reject","comment":"small, please"}}}}`)
	if a := <-got; !strings.Contains(a.text, "small, please") {
		t.Errorf("%+v", a)
	}
	d.want("one\nTWO\n")

	one := map[string]any{"filePath": "a.txt", "oldString": "one", "newString": "ONE"}
	got = d.call(t.Context(), c, "edit", one)
	e.expect(asked)
	selects(e, "reject", `,"_meta":{"pillion":{"comment":"not now"}}`)
	if a := <-got; !a.failed || !strings.Contains(a.text, "not now") {
		t.Errorf("rejected: %+v", a)
	}
	// An editor answers so when its own turn is cancelled; the other program's call is not that turn.
	got = d.call(t.Context(), c, "edit", one)
	e.expect(asked)
	e.send(`{"jsonrpc":"2.0","id":$P,"result":{"outcome":{"outcome":"cancelled"}}}`)
	if a := <-got; !a.failed || !strings.Contains(a.text, "did not approve") {
		t.Errorf("cancelled: %+v", a)
	}
	d.want("one\nTWO\n")
	got = d.call(t.Context(), c, "edit", one)
	e.expect(asked)
	selects(e, "always-session", "")
	if a := <-got; a.failed {
		t.Errorf("always: %+v", a)
	}
	if a := <-d.call(t.Context(), c, "edit", map[string]any{"filePath": "a.txt", "oldString": "ONE", "newString": "1"}); a.failed {
		t.Errorf("after always: %+v", a)
	}
	d.want("1\nTWO\n")
	// The "always" was the client's and not that of the editor's session.
	if grants := e.request("_pillion/permission/list", `{"sessionId":"$S"}`); strings.Contains(fmt.Sprint(grants["grants"]), "edit") {
		t.Errorf("granted to the editor's session: %v", grants)
	}
}

// The question disappears from the editor when the call is cancelled, and when the asking process is killed.
func TestAWithdrawnQuestionLeavesTheEditor(t *testing.T) {
	d := newDesk(t)
	e, _ := d.editor(d.dir)
	c, kill := d.client()
	ctx, cancel := context.WithCancel(t.Context())
	got := d.call(ctx, c, "multiedit", both)
	e.expect(asked)
	cancel()
	e.expect(withdrawn)
	<-got
	got = d.call(t.Context(), c, "multiedit", both)
	e.expect(asked)
	kill()
	e.expect(withdrawn)
	selects(e, "once", "") // too late
	<-got
	d.want("one\ntwo\n")
}

// Of several editors the most recently used is asked; when it is closed the next one, and when none is left the call is refused.
func TestTheEditorGoesAwayInTheMiddle(t *testing.T) {
	d := newDesk(t)
	first, closeFirst := d.editor(d.dir)
	second, closeSecond := d.editor(d.dir)
	c, _ := d.client()
	got := d.call(t.Context(), c, "multiedit", both)
	second.expect(asked)
	closeSecond()
	first.expect(asked)
	// A question that never arrives keeps no sidecar running.
	silent, _, err := share.Dial(t.Context(), share.List()[0], share.Hello{Ask: d.dir})
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	begun := time.Now()
	closeFirst()
	if took := time.Since(begun); took > questionLimit/2 {
		t.Errorf("it ended after %s", took)
	}
	if a := <-got; !a.failed || !strings.Contains(a.text, "no editor has a session of Pillion open in "+d.dir) || !strings.Contains(a.text, "--approve all") {
		t.Errorf("%+v", a)
	}
	d.want("one\ntwo\n")
}

func TestTwoClientsAskAtOnce(t *testing.T) {
	d := newDesk(t)
	e, _ := d.editor(d.dir)
	var got [2]<-chan called
	var ids [2]string
	for i := range got {
		c, _ := d.client()
		got[i] = d.call(t.Context(), c, "write", map[string]any{"filePath": fmt.Sprintf("new%d.txt", i), "content": "x\n"})
		e.expect(asked)
		ids[i] = e.vars["P"]
	}
	e.vars["P"] = ids[1]
	selects(e, "reject", `,"_meta":{"pillion":{"comment":"the second"}}`)
	if a := <-got[1]; !a.failed || !strings.Contains(a.text, "the second") {
		t.Errorf("%+v", a)
	}
	e.vars["P"] = ids[0]
	selects(e, "once", "")
	if a := <-got[0]; a.failed {
		t.Errorf("%+v", a)
	}
	for i, want := range []bool{true, false} {
		if _, err := os.Stat(filepath.Join(d.dir, fmt.Sprintf("new%d.txt", i))); (err == nil) != want {
			t.Errorf("new%d.txt: %v", i, err)
		}
	}
}

// An editor with a folder above, below or beside is not asked; nor is one that shows the file with other text than the disk's.
func TestOnlyTheEditorOfTheVeryFolderIsAsked(t *testing.T) {
	d := newDesk(t)
	below := filepath.Join(d.dir, "below")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{filepath.Dir(d.dir), below, t.TempDir()} {
		d.editor(other)
	}
	c, _ := d.client()
	if a := <-d.call(t.Context(), c, "multiedit", both); !a.failed || !strings.Contains(a.text, "no editor has a session") {
		t.Errorf("%+v", a)
	}
	e, _ := d.editor(d.dir)
	e.send(`{"jsonrpc":"2.0","method":"_pillion/buffer/didOpen","params":{"textDocument":{"uri":"file://` + d.dir + `/a.txt","languageId":"plaintext","version":1,"text":"typed","dirty":true}}}`)
	e.request("_pillion/permission/list", `{"sessionId":"$S"}`) // the notification was read
	if a := <-d.call(t.Context(), c, "multiedit", both); !a.failed || !strings.Contains(a.text, "not saved") {
		t.Errorf("%+v", a)
	}
	d.want("one\ntwo\n")
}

// A sidecar that was not started with --share takes questions and nothing else.
func TestASidecarThatIsNotSharedCannotBeJoined(t *testing.T) {
	d := newDesk(t)
	e, _ := d.editor(d.dir)
	all := share.List()
	if len(all) != 1 {
		t.Fatalf("%+v", all)
	}
	for _, h := range []share.Hello{{}, {List: true}, {Session: e.vars["S"]}} {
		if c, w, err := share.Dial(t.Context(), all[0], h); err == nil || len(w.Sessions) > 0 || !strings.Contains(err.Error(), "--share") {
			t.Errorf("%+v: %v %v", h, w, err)
			_ = c.Close()
		}
	}
	var out bytes.Buffer
	if err := listShared(t.Context(), &out); err != errNothingShared {
		t.Errorf("%v %s", err, out.String())
	}
}
