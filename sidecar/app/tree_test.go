package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Sessions that begin together look at the folder once; one that begins later sees what has come.
func TestSessionsThatBeginTogetherShareASketch(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	put := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("first.go")
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{Place: NewWorkplace("test"), NoLSP: true, Ephemeral: true})
		one := a.project.Tree(t.Context(), dir)
		if !strings.Contains(one, "first.go") {
			t.Fatalf("%q", one)
		}
		put("second.go")
		if again := a.project.Tree(t.Context(), dir); again != one {
			t.Errorf("looked again at once: %q", again)
		}
		time.Sleep(treeMaxAge)
		if late := a.project.Tree(t.Context(), dir); !strings.Contains(late, "second.go") {
			t.Errorf("a second later: %q", late)
		}
	})
}
