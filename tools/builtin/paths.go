package builtin

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"syscall"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/permission"
)

// abs makes a model's path absolute and clean.
func (e Env) abs(path string) (string, error) {
	switch {
	case path == "":
		return "", &tools.Error{Kind: "file_missing", Message: "filePath is empty; give the path of a file, absolute or relative to " + e.Cwd}
	case strings.ContainsRune(path, 0):
		return "", &tools.Error{Kind: "file_missing", Message: "the path holds a NUL byte, which no file name can"}
	}
	if path = e.meant(path); filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	return filepath.Join(e.Cwd, path), nil
}

// rel is the path that permission rules and people see: relative to the worktree, with forward slashes.
func (e Env) rel(path string) string { return relTo(e.root(), path) }

func relTo(dir, path string) string {
	r, err := filepath.Rel(dir, path)
	if err != nil {
		return filepath.ToSlash(path)
	}
	return filepath.ToSlash(r)
}

func (e Env) root() string {
	if e.Root != "" {
		return e.Root
	}
	return e.Cwd
}

// inside says whether a real path belongs to the project: to the worktree, the session's folder, or one that was added.
func (e Env) inside(real string) bool {
	for _, dir := range append([]string{e.root(), e.Cwd}, e.Extra...) {
		if dir == "" {
			continue
		}
		if files.Within(dir, real) {
			return true
		}
		if r, err := files.Real(dir); err == nil && r != dir && files.Within(r, real) {
			return true
		}
	}
	return false
}

// patterns are what rules judge of a path: its name relative to the worktree, and where its links lead when that
// is another place, so that a link is no way around a rule.
func (e Env) patterns(path, real string) []string {
	out := []string{e.rel(path)}
	root, err := files.Real(e.root())
	if err != nil {
		root = e.root()
	}
	if r := relTo(root, real); !slices.Contains(out, r) {
		out = append(out, r)
	}
	return out
}

// protected is permission.Protected, and Pillion's own folders where XDG variables put them elsewhere: trust, keys,
// sessions and settings are nothing that a rule for everything allows to write.
func (e Env) protected(real, home string) (string, bool) {
	for _, dir := range append([]string{e.StateDir}, e.Own...) {
		if dir == "" {
			continue
		}
		if r, err := files.Real(dir); err == nil {
			dir = r
		}
		if files.Within(dir, real) {
			return "it holds the agent's own rules", true
		}
	}
	return permission.Protected(real, home, e.root())
}

// place is a path a call wants to use: as named, and with its links resolved.
type place struct {
	path, real string
	dir        bool
}

// place resolves a path and sees whether it is a folder.
func (e Env) place(path string) (place, error) {
	real, err := files.Real(path)
	if err != nil {
		return place{}, pathError(path, err)
	}
	fi, err := os.Stat(real)
	return place{path, real, err == nil && fi.IsDir()}, nil
}

// askOutside asks for the folders of those places that lie outside the project, once for all of them.
func (e Env) askOutside(ctx context.Context, call *tools.Call, places ...place) error {
	var patterns, also []string
	for _, p := range places {
		if e.inside(p.real) {
			continue
		}
		dir, named := p.real, p.path
		if !p.dir {
			dir, named = filepath.Dir(dir), filepath.Dir(named)
		}
		patterns = append(patterns, folderPattern(dir))
		if named != dir {
			also = append(also, folderPattern(named))
		}
	}
	if len(patterns) == 0 {
		return nil
	}
	sort.Strings(patterns)
	patterns = slices.Compact(patterns)
	title := "Use " + strings.Join(patterns, ", ") + ", outside the project"
	return ask(ctx, call, permission.Request{
		Permission: "external_directory", Patterns: patterns, Also: also, Always: patterns, Title: title,
		Why:      "the path lies outside " + e.root(),
		Metadata: map[string]any{"filepath": places[0].path, "parentDir": filepath.Dir(places[0].real)},
	})
}

func folderPattern(dir string) string {
	return strings.TrimSuffix(filepath.ToSlash(dir), "/") + "/*"
}

// ask fills in whose call it is and asks. The error carries the kind "denied" or "rejected".
func ask(ctx context.Context, call *tools.Call, r permission.Request) error {
	_, err := askReply(ctx, call, r)
	return err
}

func askReply(ctx context.Context, call *tools.Call, r permission.Request) (permission.Reply, error) {
	r.SessionID, r.CallID, r.Tool = call.SessionID, call.CallID, call.Tool
	if call.Host.Gate == nil {
		return permission.Reply{}, &tools.Error{Kind: "denied", Message: "nobody can be asked for permission here, so this is not done", Err: permission.ErrDenied}
	}
	reply, err := call.Host.Gate.Ask(ctx, r)
	switch {
	case err == nil:
		return reply, nil
	case errors.Is(err, permission.ErrRejected):
		return reply, &tools.Error{Kind: "rejected", Message: err.Error(), Err: err}
	case errors.Is(err, permission.ErrDenied):
		return reply, &tools.Error{Kind: "denied", Message: err.Error(), Err: err}
	}
	return reply, err
}

// open asks for a place outside the project and reads the file there as the person sees it.
func (e Env) open(ctx context.Context, call *tools.Call, path string) (*files.File, error) {
	path, err := e.abs(path)
	if err != nil {
		return nil, err
	}
	p, err := e.place(path)
	if err != nil {
		return nil, err
	}
	if err := e.askOutside(ctx, call, p); err != nil {
		return nil, err
	}
	return e.openPlace(p)
}

func (e Env) openPlace(p place) (*files.File, error) {
	f, err := files.Open(p.path, e.Buffers)
	if err != nil {
		return nil, pathError(p.path, err)
	}
	if f.Real != p.real {
		return nil, &tools.Error{Kind: "stale", Message: p.path + " leads to another place than a moment ago; try again"}
	}
	return f, nil
}

// pathError words what went wrong with a path.
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
		msg += " (the home folder is not known here, so \"~\" is not expanded; give the absolute path)"
	}
	if to, err := os.Readlink(path); err == nil {
		msg += " (it is a link to " + to + ", which does not exist)"
	} else if names := similar(path); len(names) > 0 {
		msg += "\n\nDid you mean one of these?\n" + strings.Join(names, "\n")
	}
	return &tools.Error{Kind: "file_missing", Message: msg}
}
