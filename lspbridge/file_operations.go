package lspbridge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools/paths"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"go.lsp.dev/protocol"
)

// FileRename is the new name of a file or folder; both paths are absolute.
type FileRename struct{ Old, New string }

// fileOperations are the file operations (LSP 3.16, workspace.fileOperations) before which a server wants a request (will…) or after which
// it wants a notification (did…).
type fileOperations struct{ WillRename, DidRename, WillCreate, DidCreate, WillDelete, DidDelete fileFilters }

// fileFilters select files by scheme, glob and kind (FileOperationRegistrationOptions).
type fileFilters struct {
	Filters []struct {
		Scheme  string
		Pattern struct {
			Glob    string
			Matches string // "file", "folder", "" both
			Options struct{ IgnoreCase bool }
		}
	}
}

// of returns the renames that a filter selects by the old name. folder says whether a path is a folder: before a rename the disk tells,
// afterwards only the caller can. A glob that cannot be parsed selects nothing.
func (f fileFilters) of(renames []FileRename, folder func(string) bool) []FileRename {
	var out []FileRename
	for _, r := range renames {
		kind := "file"
		if folder(r.Old) || folder(r.New) {
			kind = "folder"
		}
		for _, x := range f.Filters {
			glob, name := x.Pattern.Glob, filepath.ToSlash(r.Old)
			if x.Pattern.Options.IgnoreCase {
				glob, name = strings.ToLower(glob), strings.ToLower(name)
			}
			if x.Scheme != "" && x.Scheme != "file" || x.Pattern.Matches != "" && x.Pattern.Matches != kind {
				continue
			}
			if ok, _ := doublestar.Match(glob, name); ok {
				out = append(out, r)
				break
			}
		}
	}
	return out
}

// isDir reports whether path is a folder on disk; it follows links.
func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}

// wireRenames returns the parameters of the rename messages (RenameFilesParams).
func wireRenames(list []FileRename) map[string]any {
	out := make([]map[string]any, len(list))
	for i, r := range list {
		out[i] = map[string]any{"oldUri": pathURI(r.Old), "newUri": pathURI(r.New)}
	}
	return map[string]any{"files": out}
}

// WillRename returns the edits that the servers want to make because files are about to be renamed, mostly of imports. The edits use the
// old names of the files. Nothing is written. Servers that are unavailable are skipped; one that does not answer within ctx is reported as
// an error, together with the edits of the others.
func (q questions) WillRename(ctx context.Context, renames []FileRename) ([]FileEdit, error) {
	ctx, cancel := budget(ctx)
	defer cancel()
	groups := map[*slot][]FileRename{}
	var order []*slot
	for _, r := range renames {
		for _, s := range q.serversOf(r.Old) {
			// Linters have only problems and actions.
			if s.spec.Extra {
				continue
			}
			if groups[s] == nil {
				order = append(order, s)
			}
			groups[s] = append(groups[s], r)
		}
	}
	// Each goroutine writes to its own index, so they share nothing and the result has the order of the servers.
	edits, errs := make([][]FileEdit, len(order)), make([]error, len(order))
	var wg sync.WaitGroup
	for i, s := range order {
		wg.Go(func() {
			c, err := s.get(ctx)
			if err == nil {
				edits[i], err = c.willRename(ctx, groups[s])
			}
			var gone unavailable
			// A server that is not installed knows nothing to update, so the rename is complete without it.
			if err != nil && !errors.As(err, &gone) {
				errs[i] = fmt.Errorf("%s: %w", s.name(), err)
				if ctx.Err() != nil && c != nil {
					errs[i] = errors.New(c.why(ctx, err))
				}
			}
		})
	}
	wg.Wait()
	all := slices.Concat(edits...)
	slices.SortStableFunc(all, func(a, b FileEdit) int { return cmp.Compare(a.Path, b.Path) })
	return all, errors.Join(errs...)
}

// willRename asks one server if its filters select any of the renames.
func (c *client) willRename(ctx context.Context, renames []FileRename) ([]FileEdit, error) {
	renames = c.able.operations().WillRename.of(renames, isDir)
	if len(renames) == 0 {
		return nil, nil
	}
	// While a proposal is laid over the documents, the edits would be for its texts.
	release, err := c.exclusive.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	var paths []string
	for _, r := range renames {
		if !isDir(r.Old) {
			paths = append(paths, r.Old) // tsserver knows only the project of an open file
		}
	}
	c.sync(c.withBuffers(paths))
	// null is a valid answer: nothing to change.
	var e *lsp.WorkspaceEdit
	if err := c.call(ctx, protocol.MethodWorkspaceWillRenameFiles, wireRenames(renames), &e); err != nil || e == nil {
		return nil, err
	}
	return c.edits.resolve(*e)
}

// workspaceCaps decodes member by member: a filter of the wrong shape counts as not announced, without losing the others.
type workspaceCaps struct{ FileOperations fileOperations }

// UnmarshalJSON never fails.
func (w *workspaceCaps) UnmarshalJSON(b []byte) error {
	var x struct{ FileOperations map[string]json.RawMessage }
	_ = json.Unmarshal(b, &x)
	o := &w.FileOperations
	for name, to := range map[string]*fileFilters{"willRename": &o.WillRename, "didRename": &o.DidRename, "willCreate": &o.WillCreate,
		"didCreate": &o.DidCreate, "willDelete": &o.WillDelete, "didDelete": &o.DidDelete} {
		_ = json.Unmarshal(x.FileOperations[name], to)
	}
	return nil
}

// wireFiles returns the parameters of the create and delete messages.
func wireFiles(paths []string) map[string]any {
	out := make([]map[string]any, len(paths))
	for i, p := range paths {
		out[i] = map[string]any{"uri": pathURI(p)}
	}
	return map[string]any{"files": out}
}

// ofPaths returns the paths that a filter selects. A path that does not exist counts as a file.
func (f fileFilters) ofPaths(paths []string) []string {
	list := make([]FileRename, len(paths))
	for i, p := range paths {
		list[i] = FileRename{Old: p, New: p}
	}
	var out []string
	for _, r := range f.of(list, isDir) {
		out = append(out, r.Old)
	}
	return out
}

// WillChange returns the edits that the servers want to make because files are about to be created or deleted. It asks only running servers
// that have registered for it: few have, and an edit should not wait for a server to start. Errors come together with the edits of the
// other servers.
func (q questions) WillChange(ctx context.Context, created, deleted []string) ([]FileEdit, error) {
	ctx, cancel := budget(ctx)
	defer cancel()
	type job struct {
		c      *client
		method string
		paths  []string
	}
	var jobs []job
	for _, s := range q.running() {
		c := s.current()
		if c == nil {
			continue
		}
		ops := c.able.operations()
		// Ask a server only about files below its root.
		inRoot := func(p string) bool { return paths.Within(c.root, p) }
		if paths := ops.WillCreate.ofPaths(slices.DeleteFunc(slices.Clone(created), func(p string) bool { return !inRoot(p) })); len(paths) > 0 {
			jobs = append(jobs, job{c, protocol.MethodWorkspaceWillCreateFiles, paths})
		}
		if paths := ops.WillDelete.ofPaths(slices.DeleteFunc(slices.Clone(deleted), func(p string) bool { return !inRoot(p) })); len(paths) > 0 {
			jobs = append(jobs, job{c, protocol.MethodWorkspaceWillDeleteFiles, paths})
		}
	}
	edits, errs := make([][]FileEdit, len(jobs)), make([]error, len(jobs))
	var wg sync.WaitGroup
	for i, j := range jobs {
		wg.Go(func() {
			release, err := j.c.exclusive.acquire(ctx)
			if err != nil {
				errs[i] = err
				return
			}
			defer release()
			var e *lsp.WorkspaceEdit
			if err = j.c.call(ctx, j.method, wireFiles(j.paths), &e); err == nil && e != nil {
				edits[i], err = j.c.edits.resolve(*e)
			}
			if err != nil {
				errs[i] = fmt.Errorf("%s: %w", j.c.id, err)
				if ctx.Err() != nil {
					errs[i] = errors.New(j.c.why(ctx, err))
				}
			}
		})
	}
	wg.Wait()
	all := slices.Concat(edits...)
	slices.SortStableFunc(all, func(a, b FileEdit) int { return cmp.Compare(a.Path, b.Path) })
	return all, errors.Join(errs...)
}

// didOperate notifies a server that has registered for file operations: renames first, then creations and deletions. A rename is two
// proposals; the deletion in it is not reported separately. Pulled diagnostics become outdated, because imports may resolve differently.
func (c *client) didOperate(files []Proposal, created map[string]bool) {
	ops := c.able.operations()
	var renamed []FileRename
	var came, went []string
	from := map[string]bool{}
	for _, f := range files {
		if f.From != "" && !f.Delete {
			renamed = append(renamed, FileRename{f.From, f.Path})
			from[f.From] = true
		}
	}
	for _, f := range files {
		switch {
		// The deletion of the old name is part of the rename.
		case f.Delete && !from[f.Path]:
			went = append(went, f.Path)
		case created[f.Path] && f.From == "":
			came = append(came, f.Path)
		}
	}
	// After the rename the disk cannot tell what the old path was, but a Proposal is always a file.
	file := func(string) bool { return false }
	if list := ops.DidRename.of(renamed, file); len(list) > 0 {
		c.ledger.invalidatePulls()
		_ = c.notify(protocol.MethodWorkspaceDidRenameFiles, wireRenames(list))
	}
	for _, o := range []struct {
		method  string
		filters fileFilters
		paths   []string
	}{{protocol.MethodWorkspaceDidCreateFiles, ops.DidCreate, came}, {protocol.MethodWorkspaceDidDeleteFiles, ops.DidDelete, went}} {
		if paths := o.filters.ofPaths(o.paths); len(paths) > 0 {
			c.ledger.invalidatePulls()
			_ = c.notify(o.method, wireFiles(paths))
		}
	}
}
