// Package search finds text and names in a project. It respects ignore files, searches hidden files but never .git, searches the
// text of unsaved buffers instead of their files, and returns the newest files first. Text is searched by ripgrep if it is
// installed; otherwise, or if ripgrep fails, by an engine in Go that reads the same patterns and ignore files. Names are always
// found by the Go walker, which is faster than starting ripgrep. The package asks for no permission: a function in the query
// decides which files may be shown.
//
//	s := search.New(search.Options{})
//	found, err := s.Grep(ctx, search.GrepQuery{Root: dir, Pattern: `func \w+`, Include: "*.go", Limit: 100})
//	dir, pattern := search.SplitPattern(dir, "src/**/*.go")
//	names, err := s.Glob(ctx, search.GlobQuery{Root: dir, Pattern: pattern, Limit: 100})
//
// Both leave out ignored files, unless the search begins in an ignored folder: then only the ignore files inside that folder apply.
// A glob whose fixed beginning names a folder (dist/**/*.js) begins there (see SplitPattern). So a glob that names an ignored
// folder finds files in it, but * and **/*.js do not. An include never shows ignored files again.
package search

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/paths"
)

// Options say where ripgrep is.
type Options struct {
	// Ripgrep is the program to use; if it is empty, PATH and then Candidates are searched. "off" uses the Go engine.
	Ripgrep    string
	Reason     guard.Reason // of the setting that names Ripgrep; the zero value: the person's own
	Candidates []string     // an editor's own copy, npm's @vscode/ripgrep
	// Private are folders that are not entered unless the search begins in them; nil is the system's list.
	Private []string
	Timeout time.Duration // of one search; 0: DefaultTimeout
	Index   *IndexOptions // nil: no index is kept
}

// DefaultTimeout is the time limit of a search. After it, the search returns what it has found.
const DefaultTimeout = 30 * time.Second

// Searcher searches. It is safe for concurrent use. Between searches it keeps the path of ripgrep, because looking for it in PATH takes longer
// than a small search, and the indexes of large projects, whose work Close ends.
type Searcher struct {
	o       Options
	find    func() string // path of ripgrep, "" without one
	indexes indexes
}

// New returns a Searcher; it looks for ripgrep at the first search.
func New(o Options) *Searcher {
	return &Searcher{o: o, find: sync.OnceValue(func() string { return findRipgrep(o) })}
}

// Engine names the engine that searches text: ripgrep's path, or "go". If ripgrep fails, a search uses "go" even then.
func (s *Searcher) Engine() string {
	if rg := s.find(); rg != "" {
		return rg
	}
	return "go"
}

// findRipgrep returns the program to run, or "". A candidate must have an absolute path: a relative name could be a program of the
// project.
func findRipgrep(o Options) string {
	switch o.Ripgrep {
	case "off":
		return ""
	case "":
	default:
		return o.Ripgrep // configured: if it does not run, every search uses the Go engine
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

// Buffer is an open document with unsaved text. Path must be spelt as a walk from the root spells it, because files are found by
// comparing paths.
type Buffer struct {
	Path string // absolute
	Text string
}

// Unread reports what could not be searched, so that the caller does not take an empty result for a complete one. Three examples
// are enough to show the cause, such as a folder without permission.
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

// private lists the folders below root that are not entered. If a search begins in one of them, the person asked for it, so that
// folder is not in the list.
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

// privateFolders are those that macOS protects. Reading one opens a dialog of the system, which the person does not expect from
// their prompt, and blocks until it is answered.
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

// start returns the scope for a search in root, and whether the ignore files above hide root itself. If they do, they are not
// applied, and ripgrep gets a flag not to read them (see grepJob.bare): the search was meant for the ignored folder. If a
// repository begins between a .gitignore file and root, that file does not apply to root.
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

// upTo is the scope without the rules of dir and its subfolders: a folder's own ignore files do not hide the folder.
func (s *scope) upTo(dir string) *scope {
	// Skip the scopes of the folder and of the folders below it.
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

// PathError reports a root that cannot be searched. Its text says what to do. Err is nil if the path exists but is not what was
// expected, such as a file instead of a folder.
type PathError struct {
	Message string
	Err     error
}

func (e *PathError) Error() string { return e.Message }
func (e *PathError) Unwrap() error { return e.Err }
