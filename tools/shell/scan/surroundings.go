package scan

import (
	"strings"
	"time"
)

// Surroundings gives Programs the folders of the request, the environment and the file system. Lookups on disk are cached, so
// a path has the same answer through the whole analysis.
type Surroundings struct {
	req   Request
	paths *paths
}

// HidesFiles reports whether the request has a Hidden function. Without one, Programs need not walk the folders that a command
// searches.
func (s *Surroundings) HidesFiles() bool { return s.req.Hidden != nil }

// Patience is how long a lookup on disk may take: least, or Request.Patience if that is longer.
func (s *Surroundings) Patience(least time.Duration) time.Duration { return max(least, s.req.Patience) }

// Home is the home folder, absolute.
func (s *Surroundings) Home() string { return s.req.Home }

// Worktree is the root of the project: Request.Root, or Request.Dir where no root is known. Its .git belongs to the project.
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

// Guarded reports whether the request has a Protected function. Without one, a change that may touch protected paths must be opaque.
func (s *Surroundings) Guarded() bool { return s.req.Protected != nil }

// Real resolves the links of an absolute path as the kernel would. Past a limit it answers the cleaned path, and the command
// becomes opaque.
func (s *Surroundings) Real(abs string) string { return s.paths.real(abs) }

// Exists reports whether there is something at an absolute path, and whether it is a folder itself.
func (s *Surroundings) Exists(abs string) (exists, folder bool) {
	l := s.paths.stat(abs)
	return l.exists, l.dir
}

// Inside reports whether a resolved path is in the project, or for reading in ReadDirs.
func (s *Surroundings) Inside(real string, access Access) bool { return s.paths.inside(real, access) }

// tempDir is the folder in which mktemp makes files: $TMPDIR where it is set to an absolute path, else /tmp (mktemp(1)).
func (r Request) tempDir() string {
	if r.Getenv != nil {
		// A control character in the environment must not be taken for Hole or Wild.
		if dir, ok := r.Getenv("TMPDIR"); ok && strings.HasPrefix(dir, "/") && !strings.ContainsAny(dir, Hole+Wild) {
			return dir
		}
	}
	return "/tmp"
}
