package paths

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		dir, path string
		want      bool
	}{
		{"/a/b", "/a/b", true}, {"/a/b", "/a/b/c", true}, {"/a/b", "/a/bc", false}, {"/a/b", "/a", false}, {"/a", "/a/..b", true},
		{"/", "/x", true}, {"/a/b", "/a/b/../c", false}, {"/a", "b", false}, {".", "x/y", true}, {"x", "../x", false},
	} {
		if got := Within(filepath.FromSlash(c.dir), filepath.FromSlash(c.path)); got != c.want {
			t.Errorf("Within(%q, %q) = %v", c.dir, c.path, got)
		}
	}
}

func TestWorktree(t *testing.T) {
	top := t.TempDir()
	inner := filepath.Join(top, "vendor", "x")
	if err := os.MkdirAll(filepath.Join(inner, "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := Worktree(inner); got != inner {
		t.Errorf("without .git: %s", got)
	}
	if err := os.Mkdir(filepath.Join(top, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := Worktree(inner); got != top {
		t.Errorf("below a repository: %s", got)
	}
	if err := os.WriteFile(filepath.Join(inner, ".git"), []byte("gitdir: elsewhere\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := Worktree(filepath.Join(inner, "deep")); got != inner {
		t.Errorf("in a linked worktree: %s", got)
	}
}
