// Package paths answers two questions that many packages have: is a path in a folder, and which Git worktree contains a folder. It compares
// paths as text and resolves no symbolic links; callers resolve them first where it matters.
package paths

import (
	"os"
	"path/filepath"
	"strings"
)

// Within reports whether path is dir or is below it. Both are absolute, or both relative to the same folder; "/a/bc"
// is not within "/a/b", and "/a/..b" is within "/a".
func Within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// Worktree returns the root of the Git worktree that holds dir: the nearest folder, dir included, with an entry named
// .git. Without one it returns dir itself. It never starts git, which would cost more than everything else at start-up,
// and any kind of entry counts, because linked worktrees and submodules have a file there.
func Worktree(dir string) string {
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return filepath.Clean(dir)
		}
	}
}
