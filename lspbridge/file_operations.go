package lspbridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"github.com/pillion-dev/pillion/tools/paths"
	"go.lsp.dev/protocol"
)

// wireFiles are the parameters of the create and delete messages.
func wireFiles(paths []string) map[string]any {
	out := make([]map[string]any, len(paths))
	for i, p := range paths {
		out[i] = map[string]any{"uri": pathURI(p)}
	}
	return map[string]any{"files": out}
}

// ofPaths are the paths that a filter selects.
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

// WillChange returns what the servers would change because files are about to be created or deleted. It
// asks only servers that run and have registered for it: few have, and an edit should not wait for a
// start. Errors come beside the answers of the other servers.
func (m *Manager) WillChange(ctx context.Context, created, deleted []string) ([]FileEdit, error) {
	ctx, cancel := budget(ctx)
	defer cancel()
	type job struct {
		c      *client
		method string
		paths  []string
	}
	var jobs []job
	for _, s := range m.running() {
		c := s.current()
		if c == nil {
			continue
		}
		ops := c.able.operations()
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
			release, err := j.c.lock(ctx)
			if err != nil {
				errs[i] = err
				return
			}
			defer release()
			var e *lsp.WorkspaceEdit
			if err = j.c.call(ctx, j.method, wireFiles(j.paths), &e); err == nil && e != nil {
				edits[i], err = j.c.fileEdits(*e)
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

// didOperate notifies a server that has registered for file operations: renames first, then creations and
// deletions.
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
		case f.Delete && !from[f.Path]:
			went = append(went, f.Path)
		case created[f.Path] && f.From == "":
			came = append(came, f.Path)
		}
	}
	// The files have been renamed already, so the disk cannot tell what a path was; a Proposal is always a
	// file.
	file := func(string) bool { return false }
	if list := ops.DidRename.of(renamed, file); len(list) > 0 {
		c.ledger.outdate()
		_ = c.notify(protocol.MethodWorkspaceDidRenameFiles, wireRenames(list))
	}
	for _, o := range []struct {
		method  string
		filters fileFilters
		paths   []string
	}{{protocol.MethodWorkspaceDidCreateFiles, ops.DidCreate, came}, {protocol.MethodWorkspaceDidDeleteFiles, ops.DidDelete, went}} {
		if paths := o.filters.ofPaths(o.paths); len(paths) > 0 {
			c.ledger.outdate()
			_ = c.notify(o.method, wireFiles(paths))
		}
	}
}
