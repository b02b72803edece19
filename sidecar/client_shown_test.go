package main

import (
	"path/filepath"
	"slices"
	"testing"
)

// What an editor that must be asked has shown unsaved, language servers are told, until the disk has another text.
func TestServersAreToldWhatAGenericEditorShows(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	path := filepath.Join(r.cwd, "a.txt")
	write(t, path, "a\nb\n")
	g := genericEditor{buffer: "a\nb\nunsaved\n"}
	g.run(t, r, "b", "B") // refused, because of that line
	e := r.host.Editors
	if b, ok := e.AnyBuffer(path); !ok || b.Text != g.buffer || !b.Dirty || !slices.Equal(e.Unsaved(), []string{path}) {
		t.Errorf("%+v %v, unsaved %q", b, ok, e.Unsaved())
	}
	if b, ok := e.AnyBuffer(filepath.Join(r.cwd, "b.txt")); ok {
		t.Errorf("a file nobody has spoken of: %+v", b)
	}
	write(t, path, g.buffer) // the person saves
	if b, ok := e.AnyBuffer(path); ok || len(e.Unsaved()) != 0 {
		t.Errorf("after the save %+v, unsaved %q", b, e.Unsaved())
	}
}
