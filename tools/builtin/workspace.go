package builtin

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/search"
	"github.com/pillion-dev/pillion/tools/skill"
)

// workspace is where a session works: which paths belong to it, how they are named, and who is asked about the
// others. The fields are those of Env.
type workspace struct {
	Cwd, Root  string
	Extra, Own []string
	StateDir   string
	Home       string
	Buffers    files.Buffers
	Skills     *skill.Finder // their files may be read wherever they are
}

// abs makes a model's path absolute and clean. It does not resolve links; place does.
func (w workspace) abs(path string) (string, error) {
	switch {
	case path == "":
		return "", &tools.Error{Kind: "file_missing", Message: "filePath is empty; give the path of a file, absolute or relative to " + w.Cwd}
	case strings.ContainsRune(path, 0):
		return "", &tools.Error{Kind: "file_missing", Message: "the path holds a NUL byte, which no file name can"}
	}
	if path = w.repairPath(path); filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	return filepath.Join(w.Cwd, path), nil
}

// rel is the path that permission rules and people see: relative to the worktree, with forward slashes.
func (w workspace) rel(path string) string { return relTo(w.root(), path) }

// relTo is a path relative to dir with forward slashes; the path itself where there is no relative one
// (another drive).
func relTo(dir, path string) string {
	r, err := filepath.Rel(dir, path)
	if err != nil {
		return filepath.ToSlash(path)
	}
	return filepath.ToSlash(r)
}

// root is the folder that paths are named after: the worktree, or the session's folder without one.
func (w workspace) root() string {
	if w.Root != "" {
		return w.Root
	}
	return w.Cwd
}

// inside reports whether a real path belongs to the project: to the worktree, the session's folder, or
// one that was added. Both the folder as configured and its resolved name count, since real is resolved
// and the configuration may not be.
func (w workspace) inside(real string) bool {
	for _, dir := range append([]string{w.root(), w.Cwd}, w.Extra...) {
		if dir == "" {
			continue
		}
		if paths.Within(dir, real) {
			return true
		}
		if r, err := files.Real(dir); err == nil && r != dir && paths.Within(r, real) {
			return true
		}
	}
	return false
}

// patterns are the names of a path that rules judge: relative to the worktree, and the target of its
// links when that is another place, so that a link is no way around a rule.
func (w workspace) patterns(path, real string) []string {
	out := []string{w.rel(path)}
	root, err := files.Real(w.root())
	if err != nil {
		root = w.root()
	}
	if r := relTo(root, real); !slices.Contains(out, r) {
		out = append(out, r)
	}
	return out
}

// protected is permission.Protected plus Pillion's own folders where XDG variables put them elsewhere.
// Trust, keys, sessions and settings are never writable by a rule for everything: the agent could give
// itself permissions.
func (w workspace) protected(real, home string) (string, bool) {
	for _, dir := range append([]string{w.StateDir}, w.Own...) {
		if dir == "" {
			continue
		}
		if r, err := files.Real(dir); err == nil {
			dir = r
		}
		if paths.Within(dir, real) && !w.inCopy(dir, real) {
			return "it holds the agent's own rules", true
		}
	}
	return permission.Protected(real, home, w.root())
}

// inCopy reports a path of the project where that is a draft's copy, which is kept in the state folder. The draft's own data lies beside
// the copy and stays protected.
func (w workspace) inCopy(state, real string) bool {
	root, err := files.Real(w.root())
	return err == nil && filepath.Dir(filepath.Dir(root)) == filepath.Join(state, "drafts") && paths.Within(root, real)
}

// place is a path that a call wants to use: as named, and with its links resolved at that moment.
// openPlace and the writer compare real again.
type place struct {
	path, real string
	dir        bool
}

// place resolves a path and notes whether it is a folder. A path that does not exist is no error: it
// may be created.
func (w workspace) place(path string) (place, error) {
	real, err := files.Real(path)
	if err != nil {
		return place{}, pathError(path, err)
	}
	fi, err := os.Stat(real)
	return place{path, real, err == nil && fi.IsDir()}, nil
}

// open asks for a place outside the project, then reads the file as the person sees it (an open buffer
// before the disk).
func (w workspace) open(ctx context.Context, call *tools.Call, path string) (*files.File, error) {
	path, err := w.abs(path)
	if err != nil {
		return nil, err
	}
	p, err := w.place(path)
	if err != nil {
		return nil, err
	}
	if err := w.askOutside(ctx, call, p); err != nil {
		return nil, err
	}
	return w.openPlace(p)
}

// openPlace reads the file at a place that was approved. It fails as stale when the path leads elsewhere by now: the approval
// was for the file that the links led to then.
func (w workspace) openPlace(p place) (*files.File, error) {
	f, err := files.OpenAt(p.path, p.real, w.Buffers)
	if err != nil {
		return nil, pathError(p.path, err)
	}
	if f.Real != p.real {
		return nil, &tools.Error{Kind: "stale", Message: p.path + " leads to another place than a moment ago; try again"}
	}
	return f, nil
}

// pathError gives an error about a path its kind, and says in plain words what the system said.
func pathError(path string, err error) error {
	kind := "io"
	msg := err.Error()
	switch {
	case errors.Is(err, files.ErrIsDir):
		kind, msg = "is_directory", "Path is a directory, not a file: "+path
	case errors.Is(err, files.ErrTooBig):
		kind = "too_big"
	case errors.Is(err, files.ErrNotRegular):
		kind = "not_regular"
	case errors.Is(err, syscall.ENOTDIR):
		kind, msg = "file_missing", "File not found: "+path+" (a part of the path is a file, not a folder)"
	case errors.Is(err, fs.ErrNotExist):
		kind = "file_missing"
	case errors.Is(err, fs.ErrPermission):
		msg += "; the file's permissions do not allow it"
	}
	return &tools.Error{Kind: kind, Message: msg, Err: err}
}

// missing is the error for a file that is not there, with up to three names like it.
func missing(path string) error {
	msg := "File not found: " + path
	if strings.Contains(path, "/~/") || strings.HasSuffix(path, "/~") {
		msg += " (the home folder is not known, so \"~\" is not expanded; give the absolute path)"
	}
	if to, err := os.Readlink(path); err == nil {
		msg += " (it is a link to " + to + ", which does not exist)"
	} else if names := similarNames(path); len(names) > 0 {
		msg += "\n\nDid you mean one of these?\n" + strings.Join(names, "\n")
	}
	return &tools.Error{Kind: "file_missing", Message: msg}
}

// home is the person's home folder; empty when the system does not say, and then nothing below it is protected as such.
func (w workspace) home() string {
	if w.Home != "" {
		return w.Home
	}
	h, _ := os.UserHomeDir()
	return h
}

// canonicalName gives all spellings of a file one name (relative, absolute, through links), so that a patch
// cannot change one file in two sections.
func (w workspace) canonicalName(name string) string {
	path, err := w.abs(name)
	if err != nil {
		return name
	}
	return real(path)
}

// workdir is the folder in which a command runs. It need not exist; the command then fails and says so.
func (w workspace) workdir(dir string) string {
	switch {
	case dir == "":
		dir = w.Cwd
	case !filepath.IsAbs(dir):
		dir = filepath.Join(w.Cwd, dir)
	}
	return filepath.Clean(dir)
}

// spillDir is where long outputs are written; empty keeps none.
func (w workspace) spillDir() string {
	if w.StateDir == "" {
		return ""
	}
	return filepath.Join(w.StateDir, "tool-output")
}

// spill is the real path of spillDir, to compare with resolved paths; empty until it exists.
func (w workspace) spill() string {
	if w.StateDir == "" {
		return ""
	}
	// Resolved, because the paths it is compared with are.
	dir, err := files.Real(w.StateDir + "/tool-output")
	if err != nil {
		return ""
	}
	return dir
}

// buffered reports whether an editor has the file open, under the name as given or as resolved.
func (w workspace) buffered(at place) bool {
	if w.Buffers == nil {
		return false
	}
	if _, ok := w.Buffers.Buffer(at.path); ok {
		return true
	}
	_, ok := w.Buffers.Buffer(at.real)
	return ok
}

// dirty reports whether an editor has unsaved changes of the file.
func (w workspace) dirty(at place) bool {
	if w.Buffers == nil {
		return false
	}
	b, ok := w.Buffers.Buffer(at.path)
	if !ok {
		b, ok = w.Buffers.Buffer(at.real)
	}
	return ok && b.Dirty
}

// searchPlace resolves where a search begins.
func (w workspace) searchPlace(path string) (place, error) {
	if path == "" {
		path = w.Cwd
	}
	abs, err := w.abs(path)
	if err != nil {
		return place{}, err
	}
	return w.place(abs)
}

// named is a path below at.real under the name that the model used: results of a search through a link
// must not surprise it with another folder.
func (at place) named(path string) string {
	if at.path == at.real {
		return path
	}
	rel, err := filepath.Rel(at.real, path)
	if err != nil {
		return path
	}
	return filepath.Join(at.path, rel)
}

// unsaved are the open documents whose text differs from the disk, by their real paths: searches look
// into them instead.
func (w workspace) unsaved() []search.Buffer {
	if w.Buffers == nil {
		return nil
	}
	var out []search.Buffer
	for _, b := range w.Buffers.Dirty() {
		if real, err := files.Real(b.Path); err == nil {
			out = append(out, search.Buffer{Path: real, Text: b.Text})
		}
	}
	return out
}
