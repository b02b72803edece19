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

	"github.com/bmatcuk/doublestar/v4"
	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"go.lsp.dev/protocol"
)

// FileRename is a file (or folder) that gets another name.
type FileRename struct{ Old, New string }

// fileOperations are what a server wants to hear of before and after files come, go and are renamed.
type fileOperations struct{ WillRename, DidRename, WillCreate, DidCreate, WillDelete, DidDelete fileFilters }

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

// of are the renames that match a filter.
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

func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}

func wireRenames(list []FileRename) map[string]any {
	out := make([]map[string]any, len(list))
	for i, r := range list {
		out[i] = map[string]any{"oldUri": pathURI(r.Old), "newUri": pathURI(r.New)}
	}
	return map[string]any{"files": out}
}

// WillRename is what the servers would change because files are about to be renamed: imports of them, mostly. Edits
// name files as they are called before. Nothing is written; a server that is not there changes nothing, one that does
// not answer within ctx is an error beside the answers of the others.
func (m *Manager) WillRename(ctx context.Context, renames []FileRename) ([]FileEdit, error) {
	ctx, cancel := budget(ctx)
	defer cancel()
	groups := map[*slot][]FileRename{}
	var order []*slot
	for _, r := range renames {
		for _, s := range m.slotsFor(r.Old) {
			if s.spec.Extra {
				continue
			}
			if groups[s] == nil {
				order = append(order, s)
			}
			groups[s] = append(groups[s], r)
		}
	}
	edits, errs := make([][]FileEdit, len(order)), make([]error, len(order))
	var wg sync.WaitGroup
	for i, s := range order {
		wg.Go(func() {
			c, err := s.get(ctx)
			if err == nil {
				edits[i], err = c.willRename(ctx, groups[s])
			}
			var gone unavailable
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

func (c *client) willRename(ctx context.Context, renames []FileRename) ([]FileEdit, error) {
	renames = c.able.operations().WillRename.of(renames, isDir)
	if len(renames) == 0 {
		return nil, nil
	}
	release, err := c.lock(ctx)
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
	var e *lsp.WorkspaceEdit
	if err := c.call(ctx, protocol.MethodWorkspaceWillRenameFiles, wireRenames(renames), &e); err != nil || e == nil {
		return nil, err
	}
	return c.fileEdits(*e)
}

// workspaceCaps forgives wrong shapes: what cannot be read is not announced.
type workspaceCaps struct{ FileOperations fileOperations }

// UnmarshalJSON implements json.Unmarshaler.
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
