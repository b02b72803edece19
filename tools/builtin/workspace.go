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
	"github.com/pillion-dev/pillion/tools/shell/sandbox"
	"github.com/pillion-dev/pillion/tools/skill"
)

// KindFileMissing is the kind of the error of a tool whose file does not exist.
const KindFileMissing = "file_missing"

// workspace decides which paths belong to the project, how they are named, and asks for approval of the others. The fields
// are those of Env.
type workspace struct {
	Cwd, Root  string
	Extra, Own []string
	StateDir   string
	Home       string
	Buffers    files.Buffers
	Skills     *skill.Finder        // files of skills may be read without approval, wherever they are
	Hidden     *sandbox.HiddenFiles // finds the files of the project that may not be read without a question; nil: a new one each time
}

// abs makes a model's path absolute and clean. It does not resolve links; place does.
func (w workspace) abs(path string) (string, error) {
	switch {
	case path == "":
		return "", &tools.Error{Kind: KindFileMissing, Message: "filePath is empty; give the path of a file, absolute or relative to " + w.Cwd}
	case strings.ContainsRune(path, 0):
		return "", &tools.Error{Kind: KindFileMissing, Message: "the path contains a NUL byte, which a file name cannot contain; give the path without it"}
	}
	path = w.repairPath(path)
	if err := files.CheckName(path, w.root()); err != nil {
		return "", &tools.Error{Kind: KindFileMissing, Message: err.Error(), Err: err}
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	return filepath.Join(w.Cwd, path), nil
}

// rel is the path that permission rules and people see: relative to the worktree's root, with forward slashes.
func (w workspace) rel(path string) string { return relTo(w.root(), path) }

// relTo is a path relative to dir, with forward slashes. If there is no relative path (another drive on Windows), it is the path itself.
func relTo(dir, path string) string {
	r, err := filepath.Rel(dir, path)
	if err != nil {
		return filepath.ToSlash(path)
	}
	return filepath.ToSlash(r)
}

// root is the folder to which displayed paths are relative: the worktree's root or, without a worktree, the session's folder.
func (w workspace) root() string {
	if w.Root != "" {
		return w.Root
	}
	return w.Cwd
}

// inside reports whether a real path belongs to the project: to the worktree, the session's folder or an additional folder. Each
// folder is tried as configured and with its links resolved, because real is resolved and the configuration may
// contain links.
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

// patterns are the names that permission rules are matched with: the path relative to the root and, if links lead to another
// place, that place too. Otherwise a link could be used to get around a rule.
func (w workspace) patterns(path, real string) []string {
	out := []string{w.rel(path)}
	// Without a link in the path there is none in the root above it, which then needs no look at the disk.
	if path == real && paths.Within(w.root(), path) {
		return out
	}
	root, err := files.Real(w.root())
	if err != nil {
		root = w.root()
	}
	if r := relTo(root, real); !slices.Contains(out, r) {
		out = append(out, r)
	}
	return out
}

// protected is permission.Protected and Pillion's own folders, which XDG variables can put anywhere. A rule that allows everything
// does not allow writes to trust, keys, sessions and settings, because the agent could give itself permissions there. The
// string is the reason.
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

// inCopy reports whether the project is a draft's copy, which is kept in the state folder, and the path is in that copy. The draft's own
// data is beside the copy and stays protected.
func (w workspace) inCopy(state, real string) bool {
	root, err := files.Real(w.root())
	return err == nil && filepath.Dir(filepath.Dir(root)) == filepath.Join(state, "drafts") && paths.Within(root, real)
}

// place is a path of a call: as the call names it, and with its links resolved at that moment (real). openPlace and
// the writer resolve the links again and refuse the path if they lead elsewhere.
type place struct {
	path, real string
	dir        bool
}

// place resolves a path and checks whether it is a folder. A path that does not exist is not an error, because a tool
// may create it.
func (w workspace) place(path string) (place, error) {
	real, err := files.Real(path)
	if err != nil {
		return place{}, pathError(path, err)
	}
	fi, err := os.Stat(real)
	return place{path, real, err == nil && fi.IsDir()}, nil
}

// open asks for approval if the file is outside the project, then reads it as the person sees it: from an open buffer if there is one,
// else from the disk.
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

// openPlace reads the file at a place that was approved. It fails with the kind "stale" if the path leads to another file than before:
// the approval was for the earlier one.
func (w workspace) openPlace(p place) (*files.File, error) {
	f, err := files.OpenAt(p.path, p.real, w.Buffers)
	if err != nil {
		return nil, pathError(p.path, err)
	}
	if f.Real != p.real {
		return nil, &tools.Error{Kind: "stale", Message: p.path + " is a link, and its target has just changed; call the tool again"}
	}
	return f, nil
}

// pathError converts an error of the file system to a tools.Error with a kind and a message for the model.
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
		kind, msg = KindFileMissing, "File not found: "+path+" (a part of the path is a file, not a folder)"
	case errors.Is(err, fs.ErrNotExist):
		kind = KindFileMissing
	case errors.Is(err, fs.ErrPermission):
		msg += "; the file's permissions do not allow it"
	}
	return &tools.Error{Kind: kind, Message: msg, Err: err}
}

// missing is the error for a file that does not exist; it lists up to three similar names.
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
	return &tools.Error{Kind: KindFileMissing, Message: msg}
}

// home is the person's home folder. It is empty if the system does not know it; files that are protected by their place in the home
// folder are not protected then.
func (w workspace) home() string {
	if w.Home != "" {
		return w.Home
	}
	h, _ := os.UserHomeDir()
	return h
}

// canonicalName gives all spellings of a file (relative, absolute, through links) one name. Without it a patch could have two sections
// for the same file and not know it.
func (w workspace) canonicalName(name string) string {
	path, err := w.abs(name)
	if err != nil {
		return name
	}
	return real(path)
}

// workdir is the folder in which a command runs. If it does not exist, the command fails with an error that names it.
func (w workspace) workdir(dir string) string {
	switch {
	case dir == "":
		dir = w.Cwd
	case !filepath.IsAbs(dir):
		dir = filepath.Join(w.Cwd, dir)
	}
	return filepath.Clean(dir)
}

// spillDir is the folder for long outputs; "" means that they are not kept.
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
	// The paths that it is compared with have their links resolved, so this one must have too.
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

// named converts a path below at.real to the name that the model used. If a model searches through a link, the results must
// have the name of the link, not of the folder it leads to.
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

// unsaved returns the open documents whose text differs from the disk, by their real paths. Searches read their text instead of
// the file.
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
