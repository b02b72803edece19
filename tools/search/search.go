// Package search finds text and names in a project the way a person with an editor would: ignore files are
// respected, hidden files are searched, .git never is, unsaved buffers count instead of what is on disk, and the
// newest files come first. Text is searched by ripgrep where there is one, else (and whenever ripgrep fails) by an
// engine in pure Go that reads the same patterns and ignore files. Names are always found by the Go walker, which
// is faster than starting ripgrep. The package asks for no permission: a function in the query decides which
// files may be shown.
//
//	s := search.New(search.Options{})
//	found, err := s.Grep(ctx, search.GrepQuery{Root: dir, Pattern: `func \w+`, Include: "*.go", Limit: 100})
//	dir, pattern := search.SplitPattern(dir, "src/**/*.go")
//	names, err := s.Glob(ctx, search.GlobQuery{Root: dir, Pattern: pattern, Limit: 100})
//
// Ignored files are left out of both, unless the search begins in an ignored folder: then only the ignore files
// inside it count. A glob whose fixed beginning names a folder (dist/**/*.js) begins there (see SplitPattern), so
// naming an ignored folder finds what is in it, and * or **/*.js never does. An include never brings back an ignored file.
package search

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/paths"
)

// Options say where ripgrep is.
type Options struct {
	// Ripgrep is the program to use; empty looks in PATH, then at Candidates. "off" uses the Go engine.
	Ripgrep    string
	Candidates []string // an editor's own copy, npm's @vscode/ripgrep
	// Private are folders that are not entered unless the search begins in them; nil is the system's list.
	Private []string
	Timeout time.Duration // of one search; 0: DefaultTimeout
}

// DefaultTimeout is the time limit of a search, after which it returns what it has found so far.
const DefaultTimeout = 30 * time.Second

// Searcher searches. It is safe for concurrent use and holds nothing between searches. find is resolved once: looking
// through PATH costs more than a small search.
type Searcher struct {
	o    Options
	find func() string // path of ripgrep, "" without one
}

// New makes a Searcher; it looks for ripgrep at the first search.
func New(o Options) *Searcher {
	return &Searcher{o: o, find: sync.OnceValue(func() string { return findRipgrep(o) })}
}

// Engine names what searches text: ripgrep's path, or "go". A search can still fall back to "go" when ripgrep fails.
func (s *Searcher) Engine() string {
	if rg := s.find(); rg != "" {
		return rg
	}
	return "go"
}

// findRipgrep returns the program to run, "" for none. A candidate counts only with an absolute path: a name relative to
// the project could be a program that came with it.
func findRipgrep(o Options) string {
	switch o.Ripgrep {
	case "off":
		return ""
	case "":
	default:
		return o.Ripgrep // configured: if it does not run, every search falls back
	}
	if rg, err := exec.LookPath("rg"); err == nil {
		return rg
	}
	for _, c := range o.Candidates {
		if rg, err := exec.LookPath(c); err == nil && filepath.IsAbs(rg) {
			return rg
		}
	}
	return ""
}

// Buffer is an open document with unsaved text. Path must be spelt as a walk from the root would spell it, since files
// are found by comparing paths.
type Buffer struct {
	Path string // absolute
	Text string
}

// Unread reports what could not be searched, so that an empty result is not taken for complete. Three examples are enough to see the
// cause, such as a folder without permission.
type Unread struct {
	Count int      // files and folders
	First []string // at most three of them, each with the reason
}

// add counts a path that could not be read and keeps the first three for the result.
func (u *Unread) add(text string) {
	if u.Count++; len(u.First) < 3 {
		u.First = append(u.First, text)
	}
}

// timeout is the configured limit of one search.
func (s *Searcher) timeout() time.Duration {
	if s.o.Timeout > 0 {
		return s.o.Timeout
	}
	return DefaultTimeout
}

// private lists the folders below root that are not entered. A search that begins in one of them was asked for, so its
// own root is not in the list.
func (s *Searcher) private(root string) []string {
	list := s.o.Private
	if list == nil {
		list = privateFolders(runtime.GOOS)
	}
	var out []string
	for _, dir := range list {
		if dir != root && paths.Within(root, dir) {
			out = append(out, dir)
		}
	}
	return out
}

// privateFolders are those that macOS protects: reading one opens a system dialog that has nothing to do with the person's prompt, and
// blocks until it is answered.
func privateFolders(goos string) []string {
	home, err := os.UserHomeDir()
	if goos != "darwin" || err != nil {
		return nil
	}
	var out []string
	for _, name := range []string{"Library", "Desktop", "Documents", "Downloads", "Movies", "Music", "Pictures", "Public", ".Trash"} {
		out = append(out, filepath.Join(home, name))
	}
	return out
}

// start returns the scope for a search in root, and whether the ignore files above hide root itself. In that case they do not apply, and
// ripgrep is told not to read them (see grepJob.bare): a person who searches in an ignored folder means it. A repository between a
// .gitignore file and root shields root from it.
func start(root string) (sc *scope, ignored bool) {
	sc = above(root)
	shielded := false
	for dir := root; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			shielded = true
		}
		if sc.upTo(dir).hides(dir, true, shielded) {
			return &scope{base: withSeparator(root)}, true
		}
	}
	return sc, false
}

// upTo is the part of the scope that was known before entering dir: a folder's own ignore files do not hide the folder.
func (s *scope) upTo(dir string) *scope {
	// The folder's own scope and all below it are passed over.
	for s.parent != nil && paths.Within(dir, s.base) {
		s = s.parent
	}
	return s
}

// notFound is the error for a missing search root, with the text that models know from OpenCode.
func notFound(path string, err error) error {
	if !os.IsNotExist(err) {
		return err
	}
	return &PathError{Message: "Search path not found: " + path, Err: err}
}

// PathError is a root that cannot be searched. Its text says what to do. Err is nil where the path exists but is of the
// wrong kind.
type PathError struct {
	Message string
	Err     error
}

func (e *PathError) Error() string { return e.Message }
func (e *PathError) Unwrap() error { return e.Err }
