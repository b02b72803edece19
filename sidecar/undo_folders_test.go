package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// The folders that came with a new file go with it, unless somebody put something into them or they were there before.
func TestUndoOfANewFileTakesItsFoldersAlong(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := newCommands(t, dir)
	there := func(want bool, names ...string) {
		t.Helper()
		for _, name := range names {
			if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
				t.Errorf("%s: %v, want it there: %v", name, err, want)
			}
		}
	}
	undo := func(id string) {
		t.Helper()
		if _, err := c.reviewer().Undo(context.Background(), id, nil); err != nil {
			t.Fatal(err)
		}
	}
	c.tool("write", map[string]any{"filePath": "n/e/w/f.txt", "content": "x\n"})
	undo(c.last().ID)
	there(false, "n")
	undo(c.last().ID) // it comes back
	there(true, "n/e/w/f.txt")
	undo(c.last().ID)
	there(false, "n")

	c.tool("write", map[string]any{"filePath": "empty/f.txt", "content": "x\n"})
	undo(c.last().ID)
	there(true, "empty")

	c.tool("write", map[string]any{"filePath": "m/o/f.txt", "content": "x\n"})
	put(t, filepath.Join(dir, "m", "mine.txt"), "mine\n")
	undo(c.last().ID)
	there(true, "m/mine.txt")
	there(false, "m/o")
}
