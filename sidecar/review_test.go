package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/store"
)

const reverting = `{"protocolVersion":1,"clientCapabilities":{"_meta":{"pillion":{"version":1,"hunks":true,"methods":["_pillion/session/reverted","_pillion/change/updated"]}}}}`

// edits makes the next turn read a file and write it again.
func (r *rig) edits(name, text string) {
	in, _ := json.Marshal(map[string]string{"filePath": name, "content": text})
	if _, err := os.Stat(filepath.Join(r.cwd, name)); err == nil {
		read, _ := json.Marshal(map[string]string{"filePath": name})
		r.model.steps = append(r.model.steps, callsTool("read", string(read)))
	}
	r.model.steps = append(r.model.steps, callsTool("write", string(in)), says("Done."))
}

// turn runs a prompt whose one change is accepted, and gives the prompt's message id and the change set's id.
func (r *rig) turn(prompt string) (message, change string) {
	r.t.Helper()
	text, _ := json.Marshal(prompt)
	r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"turn","method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":%s}]}}`, text))
	r.ed.expect(`{"id":"?P","method":"session/request_permission","params":{"toolCall":{"_meta":{"pillion":{"changeSet":"?C"}}}}}`)
	r.ed.send(`{"jsonrpc":"2.0","id":$P,"result":{"outcome":{"outcome":"selected","optionId":"once"}}}`)
	m := r.ed.expect(`{"id":"turn","result":{"stopReason":"end_turn"}}`)
	meta := m["result"].(map[string]any)["_meta"].(map[string]any)["pillion"].(map[string]any)
	return meta["messageId"].(string), r.ed.vars["C"]
}

func (r *rig) wantFile(name, want string) {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.cwd, name))
	if want == "" && os.IsNotExist(err) {
		return
	}
	if string(b) != want {
		r.t.Errorf("%s is %q, want %q (%v)", name, b, want, err)
	}
}

// restore asks for a restore and gives what became of each file.
func (r *rig) restore(params string) (result map[string]any, files map[string]string) {
	r.t.Helper()
	result = r.ed.request("_pillion/checkpoint/restore", `{"sessionId":"$S",`+params+`}`)
	files = map[string]string{}
	for _, f := range result["files"].([]any) {
		f := f.(map[string]any)
		files[filepath.Base(f["uri"].(string))] = f["status"].(string)
	}
	return result, files
}

func TestR10RestoreTakesFilesAndConversationBackAndForward(t *testing.T) {
	st := testStore(t)
	r := newRig(t, st, t.TempDir())
	write(t, filepath.Join(r.cwd, "a.txt"), "1\n2\n3\n4\n5\n")
	write(t, filepath.Join(r.cwd, "other.txt"), "untouched\n")
	r.start(reverting)
	r.edits("a.txt", "1\nTWO\n3\n4\n5\n")
	r.turn("first")
	r.edits("new.txt", "new\n")
	second, _ := r.turn("second")
	write(t, filepath.Join(r.cwd, "a.txt"), "1\nTWO\n3\n4\nmine\n")

	list := r.ed.request("_pillion/checkpoint/list", `{"sessionId":"$S"}`)["checkpoints"].([]any)
	if len(list) != 2 {
		t.Fatal(list)
	}
	first := list[0].(map[string]any)
	if first["kind"] != "prompt" || first["title"] != "first" || len(first["files"].([]any)) != 1 {
		t.Errorf("%v", first)
	}
	firstID := first["id"].(string)

	if _, files := r.restore(fmt.Sprintf(`"checkpointId":%q,"dryRun":true`, firstID)); files["a.txt"] != "merged" || files["new.txt"] != "restored" {
		t.Errorf("dry: %v", files)
	}
	r.wantFile("new.txt", "new\n")
	result, files := r.restore(fmt.Sprintf(`"checkpointId":%q`, firstID))
	if files["a.txt"] != "merged" || files["new.txt"] != "restored" || len(files) != 2 {
		t.Errorf("%v", files)
	}
	r.wantFile("a.txt", "1\n2\n3\n4\nmine\n")
	r.wantFile("new.txt", "")
	if p := result["prompt"].([]any); p[0].(map[string]any)["text"] != "first" {
		t.Errorf("prompt %v", p)
	}
	undo := result["undo"].(string)

	// The model does not know of it any more, and a new reader is not shown it.
	shown := func() string {
		b := newRig(t, st, r.cwd)
		b.ed.request("initialize", reverting)
		b.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":9,"method":"session/load","params":{"sessionId":%q,"cwd":%q,"mcpServers":[]}}`, r.ed.vars["S"], r.cwd))
		var out strings.Builder
		for {
			m, line := b.ed.receive()
			if _, ok := m["result"]; ok {
				return out.String()
			}
			out.WriteString(line + "\n")
		}
	}
	if text := shown(); strings.Contains(text, `"text":"first"`) || strings.Contains(text, `"text":"second"`) {
		t.Errorf("shown again: %s", text)
	}

	// Forward, all of it: events were only added.
	r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"redo","method":"_pillion/checkpoint/restore","params":{"sessionId":"$S","checkpointId":%q}}`, undo))
	r.ed.expect(`{"method":"_pillion/session/reverted","params":{"sessionId":"$S"}}`)
	r.ed.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"user_message_chunk","content":{"text":"first"}}}}`)
	r.ed.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"user_message_chunk","content":{"text":"second"}}}}`)
	r.ed.expect(`{"id":"redo","result":{"undo":"*"}}`)
	r.wantFile("a.txt", "1\nTWO\n3\n4\nmine\n")
	r.wantFile("new.txt", "new\n")
	r.wantFile("other.txt", "untouched\n")
	if text := shown(); !strings.Contains(text, `"text":"first"`) || !strings.Contains(text, `"text":"second"`) {
		t.Errorf("not shown: %s", text)
	}

	// Back to the second prompt only, and on from there: what was undone is out for good.
	r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"back","method":"_pillion/checkpoint/restore","params":{"sessionId":"$S","checkpointId":%q}}`, second))
	r.ed.expect(fmt.Sprintf(`{"method":"_pillion/session/reverted","params":{"messageId":%q}}`, second))
	r.ed.expect(`{"id":"back","result":{"undo":"*"}}`)
	r.edits("third.txt", "3\n")
	r.turn("third")
	if !r.told("first") || r.told("second") {
		t.Error("the model was told the wrong conversation")
	}
	r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"gone","method":"_pillion/checkpoint/restore","params":{"sessionId":"$S","checkpointId":%q}}`, second))
	m := r.ed.expect(`{"id":"gone","error":{"code":-32602}}`)
	if !strings.Contains(fmt.Sprint(m["error"]), "scope files") {
		t.Errorf("%v", m)
	}
	if text := shown(); !strings.Contains(text, `"text":"first"`) || strings.Contains(text, `"text":"second"`) || !strings.Contains(text, `"text":"third"`) {
		t.Errorf("shown: %s", text)
	}
}

func TestUndoAndRedoCommands(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start("")
	r.edits("a.txt", "1\n")
	r.turn("one")
	r.edits("a.txt", "2\n")
	r.turn("two")
	say := func(command, want, file string) {
		t.Helper()
		r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"say","method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":%q}]}}`, command))
		for {
			m, line := r.ed.receive()
			if u, ok := m["params"].(map[string]any); ok && strings.Contains(line, "agent_message_chunk") && strings.Contains(fmt.Sprint(u), want) {
				break
			}
			if m["id"] == "say" {
				if !strings.Contains(line, want) {
					t.Fatalf("%s: %s", command, line)
				}
				r.wantFile("a.txt", file)
				return
			}
		}
		r.ed.expect(`{"id":"say","result":{"stopReason":"end_turn"}}`)
		r.wantFile("a.txt", file)
	}
	say("/undo", "“two”: 1 file restored", "1\n")
	say("/undo", "“one”", "")
	say("/undo", "nothing to undo", "")
	say("/redo", "Undo: Back to before “one”", "1\n")
	say("/redo", "“two”", "2\n")
	say("/redo", "nothing to redo", "2\n")
	say("/undo", "“two”", "1\n")
	r.model.steps = append(r.model.steps, says("ok"))
	r.ed.request("session/prompt", `{"sessionId":"$S","prompt":[{"type":"text","text":"three"}]}`)
	if r.told("two") || !r.told("one") {
		t.Error("the model was told the wrong conversation")
	}
	say("/redo", "nothing to redo", "1\n")
}

func TestForkAtAnyMessage(t *testing.T) {
	st := testStore(t)
	r := newRig(t, st, t.TempDir())
	r.start("")
	r.edits("a.txt", "1\n")
	first, _ := r.turn("first")
	r.edits("a.txt", "2\n")
	second, _ := r.turn("second")
	fork := r.ed.request("_pillion/session/fork", fmt.Sprintf(`{"sessionId":"$S","messageId":%q}`, second))
	r.wantFile("a.txt", "2\n")
	if fork["title"] != "first (fork)" || fork["prompt"].([]any)[0].(map[string]any)["text"] != "second" {
		t.Errorf("%v", fork)
	}
	whole := r.ed.request("_pillion/session/fork", `{"sessionId":"$S","title":"mine"}`)
	for i, f := range []map[string]any{fork, whole} {
		id, want := f["sessionId"].(string), i+1
		r.ed.vars["S"] = id
		r.ed.request("session/resume", fmt.Sprintf(`{"sessionId":"$S","cwd":%q}`, r.cwd))
		list := r.ed.request("_pillion/checkpoint/list", `{"sessionId":"$S"}`)["checkpoints"].([]any)
		if len(list) != want || list[0].(map[string]any)["id"] != first {
			t.Errorf("%s: %v", id, list)
		}
	}
	r.model.steps = append(r.model.steps, says("ok"))
	r.ed.request("session/prompt", `{"sessionId":"$S","prompt":[{"type":"text","text":"on"}]}`)
	if !r.told("first") || !r.told("second") {
		t.Error("the fork does not know its conversation")
	}
	r.ed.send(`{"jsonrpc":"2.0","id":"no","method":"_pillion/session/fork","params":{"sessionId":"$S","messageId":"msg_none"}}`)
	r.ed.expect(`{"id":"no","error":{"code":-32602}}`)
}

func TestFollowReviewAppliesAtOnce(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start(reverting)
	option := func(value string) {
		t.Helper()
		r.ed.request("session/set_config_option", fmt.Sprintf(`{"sessionId":"$S","configId":"review","value":%q}`, value))
	}
	// Switched while a change waits: it is accepted.
	r.edits("a.txt", "1\n")
	r.ed.send(`{"jsonrpc":"2.0","id":"turn","method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"go"}]}}`)
	r.ed.expect(`{"method":"session/request_permission"}`)
	r.ed.send(`{"jsonrpc":"2.0","id":"set","method":"session/set_config_option","params":{"sessionId":"$S","configId":"review","value":"follow"}}`)
	r.ed.expectAll(`{"id":"set","result":{"configOptions":"*"}}`, `{"method":"$/cancel_request"}`, `{"id":"turn","result":{"stopReason":"end_turn"}}`)
	r.wantFile("a.txt", "1\n")
	// Applied at once, kept and undone afterwards.
	r.edits("a.txt", "2\n")
	r.ed.send(`{"jsonrpc":"2.0","id":"turn","method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"again"}]}}`)
	for done := false; !done; {
		m, line := r.ed.receive()
		if m["method"] == "session/request_permission" {
			t.Fatalf("asked: %s", line)
		}
		done = m["id"] == "turn"
	}
	r.wantFile("a.txt", "2\n")
	// Protected places and those outside are asked all the same.
	for _, path := range []string{".git/config", filepath.Join(t.TempDir(), "out.txt")} {
		in, _ := json.Marshal(map[string]string{"filePath": path, "content": "x"})
		r.model.steps = append(r.model.steps, callsTool("write", string(in)))
		r.ed.send(`{"jsonrpc":"2.0","id":"turn","method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"outside"}]}}`)
		r.ed.expect(`{"id":"?P","method":"session/request_permission"}`)
		r.ed.send(`{"jsonrpc":"2.0","id":$P,"result":{"outcome":{"outcome":"selected","optionId":"reject"}}}`)
		r.ed.expect(`{"id":"turn","result":{"stopReason":"end_turn"}}`)
		r.wantFile(path, "")
	}
	option("preview")
	r.edits("a.txt", "3\n")
	r.turn("asked again")
	r.ed.send(`{"jsonrpc":"2.0","id":"bad","method":"session/set_config_option","params":{"sessionId":"$S","configId":"review","value":"blind"}}`)
	r.ed.expect(`{"id":"bad","error":{"code":-32602}}`)
}

// R8: several edits of one file are one review, whose marks and ids survive a restart.
func TestR8TurnIsReviewedAgainstItsBaseline(t *testing.T) {
	st := testStore(t)
	r := newRig(t, st, t.TempDir())
	write(t, filepath.Join(r.cwd, "a.txt"), "1\n2\n3\n4\n5\n6\n7\n")
	r.start(reverting)
	r.model.steps = append(r.model.steps, callsTool("read", `{"filePath":"a.txt"}`),
		callsTool("edit", `{"filePath":"a.txt","oldString":"2","newString":"two"}`),
		callsTool("edit", `{"filePath":"a.txt","oldString":"two","newString":"TWO"}`),
		callsTool("edit", `{"filePath":"a.txt","oldString":"6","newString":"SIX"}`), says("Done."))
	r.ed.send(`{"jsonrpc":"2.0","id":"turn","method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":"go"}]}}`)
	for range 3 {
		r.ed.expect(`{"id":"?P","method":"session/request_permission"}`)
		r.ed.send(`{"jsonrpc":"2.0","id":$P,"result":{"outcome":{"outcome":"selected","optionId":"once"}}}`)
	}
	r.ed.expect(`{"id":"turn","result":{"stopReason":"end_turn"}}`)
	view := func(r *rig) (hunks []map[string]any, file map[string]any) {
		t.Helper()
		files := r.ed.request("_pillion/change/turn", `{"sessionId":"$S"}`)["files"].([]any)
		if len(files) != 1 {
			t.Fatalf("%v", files)
		}
		file = files[0].(map[string]any)
		for _, h := range file["hunks"].([]any) {
			hunks = append(hunks, h.(map[string]any))
		}
		return hunks, file
	}
	hunks, file := view(r)
	if len(hunks) != 2 || len(hunks[0]["members"].([]any)) != 2 || file["baseText"] != "1\n2\n3\n4\n5\n6\n7\n" || file["text"] != "1\nTWO\n3\n4\n5\nSIX\n7\n" {
		t.Fatalf("%v %v", hunks, file)
	}
	for _, m := range hunks[1]["members"].([]any) {
		m := m.(map[string]any)
		r.ed.request("_pillion/change/keep", fmt.Sprintf(`{"sessionId":"$S","changeSet":%q,"hunks":[%q]}`, m["changeSet"], m["hunk"]))
	}
	// One hunk of the turn is taken back, both edits of it.
	list := r.ed.request("_pillion/checkpoint/list", `{"sessionId":"$S"}`)["checkpoints"].([]any)
	_, files := r.restore(fmt.Sprintf(`"checkpointId":%q,"hunks":[%q]`, list[0].(map[string]any)["id"], hunks[0]["id"]))
	if files["a.txt"] != "restored" {
		t.Errorf("%v", files)
	}
	r.wantFile("a.txt", "1\n2\n3\n4\n5\nSIX\n7\n")
	check := func(r *rig) {
		t.Helper()
		now, _ := view(r)
		if len(now) != 2 || now[0]["state"] != "undone" || now[1]["state"] != "kept" || now[0]["id"] != hunks[0]["id"] || now[1]["id"] != hunks[1]["id"] {
			t.Errorf("%v", now)
		}
	}
	check(r)
	session := r.ed.vars["S"]
	_ = r.ed.conn.Close()
	<-r.served
	r.served <- nil
	again := newRig(t, st, r.cwd)
	again.ed.request("initialize", reverting)
	again.ed.vars["S"] = session
	again.ed.request("session/resume", fmt.Sprintf(`{"sessionId":"$S","cwd":%q}`, r.cwd))
	check(again)
}

// R24: the log holds no whole texts, and checkpoints only what was touched.
func TestR24CheckpointsStoreOnlyTouchedFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pillion.db")
	st := store.New(path)
	defer st.Close()
	r := newRig(t, st, t.TempDir())
	long := strings.Repeat("some line of a rather long file\n", 20000) // 640 kB
	write(t, filepath.Join(r.cwd, "a.txt"), "first\n"+long)
	write(t, filepath.Join(r.cwd, "untouched.txt"), long+"not the same")
	id := r.start("")
	r.model.steps = append(r.model.steps, callsTool("read", `{"filePath":"a.txt"}`), callsTool("edit", `{"filePath":"a.txt","oldString":"first","newString":"FIRST"}`), says("Done."))
	_, set := r.turn("go")
	s, _ := r.rt.Session(id)
	changes := 0
	if err := s.Events(context.Background(), 0, func(e agent.Event) error {
		if e.Type == agent.EventChange {
			changes++
			if len(e.Data) > 4096 {
				t.Errorf("an event of %d bytes", len(e.Data))
			}
		}
		return nil
	}); err != nil || changes < 3 {
		t.Fatal(changes, err)
	}
	kept := 0
	_ = filepath.WalkDir(path+".checkpoints", func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			kept++
		}
		return nil
	})
	if kept != 1 {
		t.Errorf("%d contents kept, want 1: the file before the edit", kept)
	}
	r.ed.request("_pillion/change/undo", fmt.Sprintf(`{"sessionId":"$S","changeSet":%q}`, set))
	r.wantFile("a.txt", "first\n"+long)
}

// What has no effect is no choice: where the machine's settings fix the review style and forbid "auto", the editor is offered one value of each.
func TestAnEditorIsOfferedWhatHasAnEffect(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	values := func(option string) (out []string) {
		t.Helper()
		var result struct {
			Modes         struct{ AvailableModes []struct{ ID string } }
			ConfigOptions []struct {
				ID      string
				Options []struct{ Value string }
			}
		}
		answer := r.ed.request("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, r.cwd))
		if err := json.Unmarshal(mustJSON(answer), &result); err != nil {
			t.Fatal(err)
		}
		if option == "mode" {
			for _, m := range result.Modes.AvailableModes {
				out = append(out, m.ID)
			}
		}
		for _, o := range result.ConfigOptions {
			for _, v := range o.Options {
				if o.ID == option && option != "mode" {
					out = append(out, v.Value)
				}
			}
		}
		return out
	}
	r.ed.request("initialize", `{"protocolVersion":1,"clientCapabilities":{}}`)
	for _, want := range []struct{ review, permission, mode string }{{"[preview follow draft]", "[ask auto]", "auto"}, {"[draft]", "[ask]", ""}} {
		if got := fmt.Sprint(values("review")); got != want.review {
			t.Errorf("review: %s, want %s", got, want.review)
		}
		if got := fmt.Sprint(values("permission")); got != want.permission {
			t.Errorf("commands: %s, want %s", got, want.permission)
		}
		if got := slices.Contains(values("mode"), "auto"); got != (want.mode == "auto") {
			t.Errorf("the mode auto is offered: %t", got)
		}
		r.world.prefs = agent.Preferences{Review: agent.ReviewDraft, ReviewFixed: "/etc/pillion/pillion.jsonc:1:2", NoAuto: true}
	}
}
