package builtin

import (
	"os"
	"path/filepath"
	"testing"
)

// An unmounted disk or a deleted worktree must not come back as a folder with one file in it.
func TestProjectFolderThatVanishedIsNotMadeAgain(t *testing.T) {
	b := newBench(t, yes)
	if err := os.RemoveAll(b.env.Root); err != nil {
		t.Fatal(err)
	}
	if _, err := b.call(Write(b.env), `{"filePath":"sub/a","content":"x\n"}`); kindOf(err) != "root_missing" {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(filepath.Join(b.env.Root, "a"))); !os.IsNotExist(err) {
		t.Error("the folder was made again")
	}
}
