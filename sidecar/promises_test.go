package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pillion-dev/pillion/sidecar/editors"
)

// promised are the scripts that show a promise of the design (R1 to R25); they run as the test of that name.
var promised = map[string]string{"edit_hunks": "R1, R2, R3", "edit_accept": "R4", "edit_reject": "R5", "live_buffer": "R11", "undo": "R9"}

func promise(t *testing.T, script string) {
	t.Helper()
	scenario(t, filepath.Join("testdata/script", script+".txtar"))
}

// R1 accept, reject or edit per hunk before the write; R2 the model learns what was rejected, and events describe the
// bytes that were applied; R3 edited text is what is written.
func TestR1R2R3HunksAreDecidedBeforeTheWrite(t *testing.T) { promise(t, "edit_hunks") }

func TestR4ThePermissionShowsItsDiffByItself(t *testing.T) { promise(t, "edit_accept") }

func TestR5NothingIsDoneBeforeTheDecision(t *testing.T) { promise(t, "edit_reject") }

func TestR9UndoMergesLaterEdits(t *testing.T) { promise(t, "undo") }

func TestR11TheLiveBufferIsReadAndEdited(t *testing.T) { promise(t, "live_buffer") }

// asked runs a prompt up to the question about its change.
func (r *rig) asked(prompt string) {
	r.t.Helper()
	r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"turn","method":"session/prompt","params":{"sessionId":"$S","prompt":[{"type":"text","text":%q}]}}`, prompt))
	r.ed.expect(`{"id":"?P","method":"session/request_permission","params":{"toolCall":{"_meta":{"pillion":{"changeSet":"?C","files":[{"hunks":[{"id":"?H"}]}]}}}}}`)
}

func (r *rig) answers(outcome string) {
	r.t.Helper()
	r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":$P,"result":{"outcome":%s}}`, outcome))
}

// R6: what was rejected can be read again, after a restart too.
func TestR6ARejectedHunkStaysReadable(t *testing.T) {
	st := testStore(t)
	r := newRig(t, st, t.TempDir())
	r.start(reverting)
	r.edits("a.txt", "rejected words\n")
	r.asked("go")
	r.answers(`{"outcome":"selected","optionId":"reject"}`)
	r.ed.expect(`{"id":"turn","result":{"stopReason":"end_turn"}}`)
	r.ed.request("_pillion/change/list", `{"sessionId":"$S"}`)
	b := newRig(t, st, r.cwd)
	b.ed.request("initialize", reverting)
	b.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":9,"method":"session/load","params":{"sessionId":%q,"cwd":%q,"mcpServers":[]}}`, r.ed.vars["S"], r.cwd))
	b.ed.expect(`{"params":{"update":{"sessionUpdate":"tool_call_update","content":[{"type":"diff","newText":"rejected words\n"},{"type":"content"}]}}}`)
	b.ed.expect(`{"id":9,"result":{"configOptions":"*"}}`)
	b.ed.vars["S"] = r.ed.vars["S"]
	list := b.ed.request("_pillion/change/list", `{"sessionId":"$S"}`)["changes"].([]any)
	if c := list[0].(map[string]any); len(list) != 1 || c["state"] != "rejected" || c["id"] != r.ed.vars["C"] {
		t.Errorf("%v", list)
	}
}

// R13: a base that moved is an error with the text as it is.
func TestR13ABaseThatMovedIsSaidWithTheFreshText(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	write(t, filepath.Join(r.cwd, "a.txt"), "1\n2\n3\n")
	r.start("")
	r.model.steps = append(r.model.steps, callsTool("read", `{"filePath":"a.txt"}`), callsTool("edit", `{"filePath":"a.txt","oldString":"2","newString":"two"}`), says("Done."))
	r.asked("go")
	write(t, filepath.Join(r.cwd, "a.txt"), "1\ntheirs\n3\n")
	r.answers(`{"outcome":"selected","optionId":"once"}`)
	r.ed.expect(`{"id":"turn","result":{"stopReason":"end_turn"}}`)
	r.wantFile("a.txt", "1\ntheirs\n3\n")
	if !r.told("+theirs") {
		t.Error("the model was not told the text as it is")
	}
}

// R14: one accepted set is one edit, whatever the number of its hunks and files, and so is its undo.
func TestR14OneUndoStepForAnAcceptedSet(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start(`{"protocolVersion":1,"clientCapabilities":{"_meta":{"pillion":{"version":1,"buffers":true,"hunks":true,"methods":["_pillion/workspace/applyEdit"]}}}}`)
	for _, name := range []string{"a.txt", "b.txt"} {
		write(t, filepath.Join(r.cwd, name), "1\n-\n2\n")
		r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"_pillion/buffer/didOpen","params":{"textDocument":{"uri":%q,"languageId":"plaintext","version":1,"text":"1\n-\n2\n"}}}`, editors.PathURI(filepath.Join(r.cwd, name))))
		in, _ := json.Marshal(map[string]string{"filePath": name})
		r.model.steps = append(r.model.steps, callsTool("read", string(in)))
	}
	patch, _ := json.Marshal(map[string]string{"patchText": "*** Begin Patch\n*** Update File: a.txt\n@@\n-1\n+one\n -\n-2\n+two\n*** Update File: b.txt\n@@\n-1\n+one\n*** End Patch"})
	r.ed.request("session/prompt", `{"sessionId":"$S","prompt":[{"type":"text","text":"read them"}]}`)
	r.ed.send(`{"jsonrpc":"2.0","id":"turn","method":"_pillion/tool/call","params":{"sessionId":"$S","tool":"apply_patch","input":` + string(patch) + `}}`)
	r.ed.expect(`{"id":"?P","method":"session/request_permission","params":{"toolCall":{"_meta":{"pillion":{"changeSet":"?C"}}}}}`)
	r.answers(`{"outcome":"selected","optionId":"once"}`)
	edits := 0
	apply := func(until string) {
		t.Helper()
		for {
			m, _ := r.ed.receive()
			if m["id"] == until {
				return
			}
			if m["method"] != "_pillion/workspace/applyEdit" {
				continue
			}
			edits++
			versions := map[string]int{}
			for _, c := range m["params"].(map[string]any)["edit"].(map[string]any)["documentChanges"].([]any) {
				doc := c.(map[string]any)["textDocument"].(map[string]any)
				versions[doc["uri"].(string)] = int(doc["version"].(float64)) + 1
			}
			v, _ := json.Marshal(versions)
			r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":{"applied":true,"versions":%s}}`, m["id"], v))
		}
	}
	apply("turn")
	r.ed.send(`{"jsonrpc":"2.0","id":"undo","method":"_pillion/change/undo","params":{"sessionId":"$S","changeSet":"$C"}}`)
	apply("undo")
	if edits != 2 {
		t.Errorf("%d edits reached the editor, want one for the set and one for its undo", edits)
	}
	r.wantFile("a.txt", "1\n-\n2\n") // still the person's to save
}

// R15: lines nobody touched keep their bytes: ends, blanks, BOM, no end at all.
func TestR15UntouchedLinesKeepTheirBytes(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	write(t, filepath.Join(r.cwd, "a.txt"), "\ufeffone\r\ntwo \t\r\nthree\nfour\r\nfive")
	r.start("")
	r.model.steps = append(r.model.steps, callsTool("read", `{"filePath":"a.txt"}`), callsTool("edit", `{"filePath":"a.txt","oldString":"four","newString":"FOUR"}`), says("Done."))
	_, set := r.turn("go")
	r.wantFile("a.txt", "\ufeffone\r\ntwo \t\r\nthree\nFOUR\r\nfive")
	r.ed.request("_pillion/change/undo", fmt.Sprintf(`{"sessionId":"$S","changeSet":%q}`, set))
	r.wantFile("a.txt", "\ufeffone\r\ntwo \t\r\nthree\nfour\r\nfive")
}

// Decisions that make no sense have one clear error each; the file stays whole and the session lives.
func TestDecisionsThatMakeNoSense(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	write(t, filepath.Join(r.cwd, "a.txt"), "1\n")
	r.start("")
	for name, meta := range map[string]string{
		"an unknown hunk":    `{"hunks":{"9.9":{"decision":"accept"}}}`,
		"an unknown verdict": `{"hunks":{"$H":{"decision":"perhaps"}}}`,
		"no verdict":         `{"hunks":{"$H":{}}}`,
		"an edit to nothing": `{"hunks":{"$H":{"decision":"edit"}}}`,
		"not an object":      `{"hunks":[]}`,
		"stale":              `{"stale":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			r.ed.t, r.t = t, t
			r.edits("a.txt", "2\n")
			r.asked("go")
			r.answers(`{"outcome":"selected","optionId":"once","_meta":{"pillion":` + meta + `}}`)
			r.ed.send(`{"jsonrpc":"2.0","id":$P,"result":{"outcome":{"outcome":"selected","optionId":"once"}}}`) // a second time: too late
			r.ed.expect(`{"params":{"update":{"sessionUpdate":"tool_call_update","status":"failed"}}}`)
			r.ed.expect(`{"id":"turn","result":{"stopReason":"end_turn"}}`)
			r.wantFile("a.txt", "1\n")
		})
	}
	r.ed.t, r.t = t, t
	// After a cancel: nothing is written any more.
	r.edits("a.txt", "2\n")
	r.asked("go")
	r.ed.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"$S"}}`)
	r.ed.expect(`{"id":"turn","result":{"stopReason":"cancelled"}}`)
	r.answers(`{"outcome":"selected","optionId":"once"}`)
	r.ed.request("session/list", `{}`)
	r.wantFile("a.txt", "1\n")
	// About change sets that are not there, or not so.
	r.model.steps = nil
	r.edits("a.txt", "2\n")
	_, set := r.turn("go")
	refused := func(method, params, want string) {
		t.Helper()
		r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"x","method":%q,"params":{"sessionId":"$S",%s}}`, method, params))
		if m := r.ed.expect(`{"id":"x","error":{"message":"*"}}`); !strings.Contains(fmt.Sprint(m["error"]), want) {
			t.Errorf("%s %s: %v, want %s", method, params, m["error"], want)
		}
	}
	refused("_pillion/change/undo", `"changeSet":"chg_none"`, "no change")
	refused("_pillion/change/undo", fmt.Sprintf(`"changeSet":%q,"hunks":["7.7"]`, set), "has no hunk")
	refused("_pillion/change/keep", fmt.Sprintf(`"changeSet":%q,"hunks":["7.7"]`, set), "has no hunk")
	refused("_pillion/checkpoint/restore", `"checkpointId":"none"`, "no checkpoint")
	refused("_pillion/checkpoint/restore", `"checkpointId":"none","scope":"all"`, "unknown scope")
	refused("_pillion/change/turn", `"turn":"none"`, "no turn")
	list := r.ed.request("_pillion/checkpoint/list", `{"sessionId":"$S"}`)["checkpoints"].([]any)
	point := list[len(list)-1].(map[string]any)["id"]
	refused("_pillion/checkpoint/restore", fmt.Sprintf(`"checkpointId":%q,"hunks":["none"]`, point), "no hunk")
	refused("_pillion/checkpoint/restore", fmt.Sprintf(`"checkpointId":%q,"scope":"both","uris":["file:///a"]`, point), "only files")
	refused("_pillion/checkpoint/restore", fmt.Sprintf(`"checkpointId":%q,"uris":["untitled:a"]`, point), "is not a file")
	// A conflict says where, and writes nothing.
	write(t, filepath.Join(r.cwd, "a.txt"), "mine\n")
	refused("_pillion/change/undo", fmt.Sprintf(`"changeSet":%q`, set), "both sides changed line 1")
	r.wantFile("a.txt", "mine\n")
	r.ed.request("session/list", `{}`)
}

// Many decide at once: each hunk is taken back once, the others hear that it was.
func TestManyUndoAtOnce(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start("")
	r.edits("a.txt", "1\n")
	_, set := r.turn("go")
	const n = 20
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			_, _ = fmt.Fprintf(r.ed.conn, `{"jsonrpc":"2.0","id":%d,"method":"_pillion/change/undo","params":{"sessionId":%q,"changeSet":%q}}`+"\n", 1000+i, r.ed.vars["S"], set)
		})
	}
	done, refused := 0, 0
	for done+refused < n {
		m, line := r.ed.receive()
		if id, ok := m["id"].(float64); !ok || id < 1000 {
			continue
		}
		if m["result"] != nil {
			done++
		} else if refused++; !strings.Contains(line, "undone already") {
			t.Error(line)
		}
	}
	wg.Wait()
	if _, err := os.Stat(filepath.Join(r.cwd, "a.txt")); done != 1 || !os.IsNotExist(err) {
		t.Errorf("%d took it back, %v", done, err)
	}
}
