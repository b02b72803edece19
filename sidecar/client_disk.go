package main

import (
	"context"
	"fmt"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
)

// DiskApplier writes a change set to the disk, all or nothing, keeping each file's encoding. A file that is not what
// the change was made from is an error, and nothing is written.
type DiskApplier struct{ Journal files.Journal }

// Apply implements Applier.
func (a DiskApplier) Apply(ctx context.Context, set *change.Set) error {
	var ops []files.Op
	for _, f := range set.Files {
		have, err := files.Open(f.Path, nil)
		if err != nil {
			return err
		}
		if f.Kind == change.Create == have.Exists || have.Text != f.Old {
			return &tools.Error{Kind: "stale", Message: fmt.Sprintf("%s changed since it was read; nothing was written. Read it again, then edit", f.Path)}
		}
		op := files.Op{Kind: files.Write, Path: f.Path, NewPath: f.NewPath, Base: have.Hash}
		switch f.Kind {
		case change.Delete:
			op.Kind = files.Remove
		case change.Rename:
			op.Kind = files.Move
		}
		if f.Kind != change.Delete && f.New != f.Old || f.Kind == change.Create {
			if op.Data, err = files.Encode(f.New, have.Encoding); err != nil {
				return fmt.Errorf("%s: %w", f.Path, err)
			}
		}
		ops = append(ops, op)
	}
	return files.Commit(ctx, ops, a.Journal)
}
