package check

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A review of a branch is of what it changes since it left the default branch, like a pull request; its own later merges and
// the default branch's later commits are not part of it.
func TestABranchIsWhatItChangedSinceItLeft(t *testing.T) {
	root := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		c := exec.Command("git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	commit := func(name, text string) {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run("add", ".")
		run("commit", "-qm", name)
	}
	run("init", "-q", "-b", "main")
	commit("a.txt", "a\n")
	run("checkout", "-q", "-b", "work/x")
	commit("b.txt", "b\n")
	commit("c.txt", "c\n")
	run("checkout", "-q", "main")
	commit("d.txt", "d\n")
	if err := os.WriteFile(filepath.Join(root, "e.txt"), []byte("e\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "fix.patch"), []byte("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+A\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		branches bool
		want     string
	}{
		{"work/x", true, "b.txt c.txt"},
		{"work/x", false, "c.txt"},
		{"main", true, "d.txt"}, // the default branch: its last commit
		{"main..work/x", true, "b.txt c.txt d.txt"},
		{"main...work/x", true, "b.txt c.txt"},
		{"HEAD", true, "d.txt"},
		{"", true, "e.txt fix.patch"},
		{"fix.patch", true, "a.txt"},
		{"nothing", true, "error"},
		{"-x", true, "error"},
	} {
		p, err := Target(context.Background(), root, root, c.name, c.branches)
		got := "error"
		if err == nil {
			got = strings.Join(p.Paths(), " ")
			p.Close()
		}
		if got != c.want {
			t.Errorf("%q (branches %v): %s, want %s (%v)", c.name, c.branches, got, c.want, err)
		}
	}
}
