package scan

import (
	"strings"
	"time"
)

// Surroundings is what a call finds, wherever it runs: the folders of the request, the environment, and the disk as this analysis
// saw it first. The same question has the same answer through the whole analysis.
type Surroundings struct {
	req   Request
	paths *paths
}

// HidesFiles reports whether there are files that may not be read without asking. Without any, a search through folders needs
// no look at the disk.
func (s *Surroundings) HidesFiles() bool { return s.req.Hidden != nil }

// Patience is how long a look at the disk may take, at least least.
func (s *Surroundings) Patience(least time.Duration) time.Duration { return max(least, s.req.Patience) }

// Home is the home folder, absolute.
func (s *Surroundings) Home() string { return s.req.Home }

// Worktree is the folder whose .git the project's commands change.
func (s *Surroundings) Worktree() string {
	if root := s.req.Root; root != "" && root != "/" {
		return root
	}
	return s.req.Dir
}

// TempDir is the folder for temporary files.
func (s *Surroundings) TempDir() string { return s.req.tempDir() }

// Getenv is a variable of the environment that the command gets.
func (s *Surroundings) Getenv(name string) (string, bool) {
	if s.req.Getenv == nil {
		return "", false
	}
	return s.req.Getenv(name)
}

// Guarded reports whether protected paths are known: without that, changing one can only be opaque.
func (s *Surroundings) Guarded() bool { return s.req.Protected != nil }

// Real resolves the links of an absolute path as the kernel would. Past a limit it answers the cleaned path, and the command
// becomes opaque.
func (s *Surroundings) Real(abs string) string { return s.paths.real(abs) }

// Exists reports whether there is something at an absolute path, and whether it is a folder itself.
func (s *Surroundings) Exists(abs string) (exists, folder bool) {
	l := s.paths.stat(abs)
	return l.exists, l.dir
}

// Inside reports whether a resolved path is where this access needs no question.
func (s *Surroundings) Inside(real string, access Access) bool { return s.paths.inside(real, access) }

// tempDir is the folder in which mktemp makes files: $TMPDIR where it is set to an absolute path, else /tmp (mktemp(1)).
func (r Request) tempDir() string {
	if r.Getenv != nil {
		// A control character of the environment must not pass for a mark of this package.
		if dir, ok := r.Getenv("TMPDIR"); ok && strings.HasPrefix(dir, "/") && !strings.ContainsAny(dir, Hole+Wild) {
			return dir
		}
	}
	return "/tmp"
}
