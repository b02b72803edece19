package main

import (
	"path/filepath"
	"testing"
)

// An editor that shows a file again only when the person looks at it has no unsaved work because of that.
func TestAnEditorThatLagsBehindItsFilesHasNothingUnsaved(t *testing.T) {
	for name, c := range map[string]struct {
		ed         genericEditor
		disk, want string
		buffer     string
		wantWrites int
	}{
		"it writes the disk":                     {genericEditor{name: "agentic", writesDisk: true}, "a\nb\n", "A\nB\n", "a\nb\n", 2},
		"it cannot write":                        {genericEditor{name: "agentic", noWrite: true}, "a\nb\n", "A\nB\n", "a\nb\n", 0},
		"it shows no carriage returns":           {genericEditor{name: "agentic", lf: true}, "a\r\nb\r\n", "A\r\nB\r\n", "a\r\nb\r\n", 0},
		"it lags, and has unsaved lines as well": {genericEditor{name: "agentic", writesDisk: true, typed: "mine\n"}, "a\nb\n", "A\nb\n", "a\nb\nmine\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, testStore(t), t.TempDir())
			path := filepath.Join(r.cwd, "a.txt")
			write(t, path, c.disk)
			ed := c.ed
			ed.buffer = c.disk
			r.model.steps = append(r.model.steps, callsTool("read", `{"filePath":"a.txt"}`), callsTool("edit", `{"filePath":"a.txt","oldString":"a","newString":"A"}`))
			ed.run(t, r, "b", "B")
			if got := read(t, path); got != c.want {
				t.Errorf("disk is %q, want %q", got, c.want)
			}
			if ed.buffer != c.buffer || ed.writes != c.wantWrites {
				t.Errorf("buffer is %q after %d writes, want %q after %d", ed.buffer, ed.writes, c.buffer, c.wantWrites)
			}
			if typed := c.ed.typed != ""; r.told("further when it was written") || r.told("with unsaved changes") != typed || r.told("Tell the user, who has to save") != typed {
				t.Errorf("the model was told wrong: %+v", r.model.seen[len(r.model.seen)-1].Messages)
			}
		})
	}
}
