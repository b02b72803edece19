package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/sidecar/editors"
)

// genericEditor is an ACP editor without any of our additions, as they are found in the wild.
type genericEditor struct {
	name       string
	readsDisk  bool // fs/read_text_file ignores the buffer
	writesDisk bool // fs/write_text_file leaves the buffer alone
	noFS       bool
	noWrite    bool
	typed      string // what the person types during the first write
	lf         bool   // its buffers have no carriage returns
	silent     bool   // it never answers what is asked of a file
	buffer     string // of a.txt
	writes     int
	asked      int // permission requests
}

// run plays a turn of the editor, in which the model reads and edits a.txt, and gives the prompt's answer.
func (g *genericEditor) run(t *testing.T, r *rig, oldString, newString string) {
	t.Helper()
	path := filepath.Join(r.cwd, "a.txt")
	fs := `"fs":{"readTextFile":true,"writeTextFile":true}`
	if g.noFS {
		fs = `"fs":{"readTextFile":false,"writeTextFile":false}`
	}
	if g.noWrite {
		fs = `"fs":{"readTextFile":true,"writeTextFile":false}`
	}
	r.start(fmt.Sprintf(`{"protocolVersion":1,"clientInfo":{"name":%q,"version":"1"},"clientCapabilities":{%s}}`, g.name, fs))
	in, err := json.Marshal(map[string]string{"filePath": "a.txt", "oldString": oldString, "newString": newString})
	if err != nil {
		t.Fatal(err)
	}
	r.model.steps = append(r.model.steps, callsTool("read", `{"filePath":"a.txt"}`), callsTool("edit", string(in)), says("Done."))
	r.ed.send(`{"jsonrpc":"2.0","id":"turn","method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"go"}]}}`)
	for {
		m, line := r.ed.receive()
		reply := func(result any) {
			b, err := json.Marshal(result)
			if err != nil {
				t.Fatal(err)
			}
			id, err := json.Marshal(m["id"])
			if err != nil {
				t.Fatal(err)
			}
			r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, b))
		}
		params, _ := m["params"].(map[string]any)
		switch m["method"] {
		case "fs/read_text_file":
			if g.silent {
				break
			}
			if g.noFS {
				t.Errorf("asked for what was not announced: %s", line)
			}
			text := g.buffer
			if g.readsDisk {
				text = read(t, path)
			}
			if g.lf {
				text = strings.ReplaceAll(text, "\r\n", "\n")
			}
			reply(map[string]string{"content": text})
		case "fs/write_text_file":
			g.writes++
			content, _ := params["content"].(string)
			if !g.writesDisk {
				g.buffer = content
			}
			write(t, path, content)
			g.buffer, g.typed = g.buffer+g.typed, ""
			reply(map[string]any{})
		case "session/request_permission":
			g.asked++
			reply(map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": "once"}})
		default:
			if m["id"] == "turn" {
				return
			}
		}
	}
}

func (r *rig) told(text string) bool {
	r.model.mu.Lock()
	defer r.model.mu.Unlock()
	b, _ := json.Marshal(r.model.seen[len(r.model.seen)-1].Messages)
	return strings.Contains(string(b), text)
}

func TestR11NothingIsLostInAnyGenericEditor(t *testing.T) {
	for name, c := range map[string]struct {
		ed         genericEditor
		disk       string
		wantDisk   string
		wantBuffer string
		wantWrites int
	}{
		"clean buffer, written through the editor":  {genericEditor{buffer: "a\nb\n"}, "a\nb\n", "a\nB\n", "a\nB\n", 1},
		"one unsaved line, the editor shows it":     {genericEditor{buffer: "a\nb\nunsaved\n"}, "a\nb\n", "a\nb\n", "a\nb\nunsaved\n", 0},
		"one unsaved line, vscode-acp":              {genericEditor{name: "vscode-acp-client", writesDisk: true, buffer: "a\nb\nunsaved\n"}, "a\nb\n", "a\nb\n", "a\nb\nunsaved\n", 0},
		"one unsaved line, CodeCompanion hides it":  {genericEditor{name: "CodeCompanion.nvim", readsDisk: true, buffer: "a\nb\nunsaved\n"}, "a\nb\n", "a\nB\n", "a\nb\nunsaved\n", 0},
		"one unsaved line, no file access":          {genericEditor{name: "Agentic.nvim", noFS: true, buffer: "a\nb\nunsaved\n"}, "a\nb\n", "a\nB\n", "a\nb\nunsaved\n", 0},
		"carriage returns the editor does not show": {genericEditor{lf: true, buffer: "a\r\nb\r\n"}, "a\r\nb\r\n", "a\r\nB\r\n", "a\r\nb\r\n", 0},
		"clean buffer, the editor writes the disk":  {genericEditor{writesDisk: true, readsDisk: true, buffer: "a\nb\n"}, "a\nb\n", "a\nB\n", "a\nb\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, testStore(t), t.TempDir())
			path := filepath.Join(r.cwd, "a.txt")
			write(t, path, c.disk)
			ed := c.ed
			ed.run(t, r, "b", "B")
			if got := read(t, path); got != c.wantDisk {
				t.Errorf("disk is %q, want %q", got, c.wantDisk)
			}
			if ed.buffer != c.wantBuffer {
				t.Errorf("buffer is %q, want %q", ed.buffer, c.wantBuffer)
			}
			if ed.writes != c.wantWrites {
				t.Errorf("%d writes, want %d", ed.writes, c.wantWrites)
			}
			if c.wantDisk == c.disk && ed.asked != 0 {
				t.Error("the person was asked about a change that could not be written")
			}
			if c.wantDisk == c.disk && !r.told("Tell the user, who has to save") {
				b, _ := json.Marshal(r.model.seen[len(r.model.seen)-1].Messages)
				t.Errorf("the model was not told why: %s", b)
			}
		})
	}
}

func TestBuffersFollowIncrementalChanges(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start("")
	path := filepath.Join(r.cwd, "ü b.txt")
	uri := editors.PathURI(path)
	notify := func(method, params string) {
		r.ed.send(`{"jsonrpc":"2.0","method":"_pillion/buffer/` + method + `","params":` + params + `}`)
	}
	notify("didOpen", fmt.Sprintf(`{"textDocument":{"uri":%q,"version":1,"text":"a😀b\r\nsecond\rthird"}}`, uri))
	for i, c := range []struct{ change, want string }{
		{`{"range":{"start":{"line":0,"character":3},"end":{"line":0,"character":4}},"text":"X"}`, "a😀X\r\nsecond\rthird"},
		{`{"range":{"start":{"line":0,"character":2},"end":{"line":0,"character":2}},"text":"<"}`, "a<😀X\r\nsecond\rthird"}, // inside the pair: its start
		{`{"range":{"start":{"line":2,"character":99},"end":{"line":9,"character":0}},"text":"!"}`, "a<😀X\r\nsecond\rthird!"},
		{`{"range":{"start":{"line":1,"character":0},"end":{"line":2,"character":0}},"text":""}`, "a<😀X\r\nthird!"},
		{`{"text":"whole"}`, "whole"},
		{`{"range":null,"text":"again"}`, "again"},
	} {
		notify("didChange", fmt.Sprintf(`{"textDocument":{"uri":%q,"version":%d},"contentChanges":[%s]}`, uri, i+2, c.change))
		r.ed.request("session/list", `{}`)
		b, ok := r.buffers.Buffer(path)
		if !ok || b.Text != c.want || b.Version != int32(i+2) || !b.Dirty {
			t.Fatalf("after %s: %+v, want %q", c.change, b, c.want)
		}
	}
	notify("didChange", fmt.Sprintf(`{"textDocument":{"uri":%q,"version":3},"contentChanges":[{"text":"overtaken"}]}`, uri))
	notify("didSave", fmt.Sprintf(`{"textDocument":{"uri":%q}}`, uri))
	r.ed.request("session/list", `{}`)
	if b, _ := r.buffers.Buffer(path); b.Text != "again" || b.Dirty {
		t.Errorf("after saving: %+v", b)
	}
	notify("didClose", fmt.Sprintf(`{"textDocument":{"uri":%q}}`, uri))
	notify("didOpen", `{"textDocument":{"uri":"untitled:1","version":1,"text":"x"}}`)
	r.ed.request("session/list", `{}`)
	if b, ok := r.buffers.Buffer(path); ok {
		t.Errorf("still open: %+v", b)
	}
}

func FuzzPositionOffset(f *testing.F) {
	f.Add("a😀b\r\nc\rd\n", 5)
	f.Fuzz(func(t *testing.T, text string, offset int) {
		if offset < 0 || offset > len(text) {
			return
		}
		p := editors.OffsetPosition(text, offset)
		back := editors.PositionOffset(text, p)
		if again := editors.OffsetPosition(text, back); again != p {
			t.Errorf("%q: %d → %+v → %d → %+v", text, offset, p, back, again)
		}
	})
}

func TestR11AnEditorThatDoesNotSayWhatIsUnsavedIsNotWrittenBehind(t *testing.T) {
	t.Parallel()
	r := newRig(t, testStore(t), t.TempDir())
	r.host.DataLimit = 20 * time.Millisecond
	path := filepath.Join(r.cwd, "a.txt")
	write(t, path, "a\nb\n")
	ed := genericEditor{silent: true}
	ed.run(t, r, "b", "B")
	if got := read(t, path); got != "a\nb\n" {
		t.Errorf("disk is %q: unsaved lines of an editor that is slow to say so would be lost", got)
	}
	if !r.told("did not answer") {
		t.Error("the model was not told why")
	}
}
