package builtin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
)

// Symbolic links that a command made, changed or removed are taken back as what they are: names with a target. What
// they lead to is never read or written for it, and no editor is asked, for none has a buffer of a link.

// splitLinks parts a set into the members that are about links and the others, which are written in two
// ways.
func splitLinks(set *change.Set) (links, rest *change.Set) {
	a, b := *set, *set
	a.Files, b.Files = nil, nil
	for _, f := range set.Files {
		if f.Links() {
			a.Files = append(a.Files, f)
		} else {
			b.Files = append(b.Files, f)
		}
	}
	return &a, &b
}

// rebaseLink compares a member about a link with what is there now, and fails where that differs: a target cannot be merged.
func rebaseLink(f *change.File) error {
	info, err := os.Lstat(f.Path)
	there := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pathError(f.Path, err)
	}
	link := there && info.Mode()&fs.ModeSymlink != 0
	switch {
	case f.Kind == change.Create && there:
		return &tools.Error{Kind: "exists", Message: f.Path + " was created by another program meanwhile; nothing was written. Read it first."}
	case f.Kind == change.Create:
		return nil
	case !there:
		return &tools.Error{Kind: "stale", Message: f.Path + " was deleted meanwhile; nothing was written."}
	}
	// OldEncoding is set where the change turns a link into a file or back; else both sides are of one kind.
	was := f.Encoding == change.Link
	if f.Kind == change.Edit && f.OldEncoding != "" {
		was = f.OldEncoding == change.Link
	}
	stale := &tools.Error{Kind: "stale", Message: fmt.Sprintf("%s has just changed; nothing was written. Try again.", f.Path)}
	if was != link {
		return stale
	}
	if link {
		if target, err := os.Readlink(f.Path); err != nil || target != f.Old {
			return stale
		}
		return nil
	}
	now, err := files.Open(f.Path, nil)
	if err != nil {
		return pathError(f.Path, err)
	}
	if now.Text != f.Old {
		return stale
	}
	f.BaseHash = now.Hash
	return nil
}

// linkOps are the steps of a member about a link. A link that becomes a file is removed first, since
// writing would go through it to its target.
func linkOps(f *change.File) []files.Op {
	switch {
	case f.Kind == change.Delete:
		return []files.Op{{Kind: files.Remove, Path: f.Path, Real: f.Real}}
	case f.Encoding == change.Link:
		return []files.Op{{Kind: files.Link, Path: f.Path, Real: f.Real, Base: f.BaseHash, Data: []byte(f.New)}}
	}
	enc := files.Encoding(f.Encoding)
	data, err := files.Encode(f.New, enc)
	if err != nil { // it was decoded from bytes of this encoding
		data = []byte(f.New)
	}
	return []files.Op{{Kind: files.Remove, Path: f.Path, Real: f.Real}, {Kind: files.Write, Path: f.Path, Real: f.Real, Data: data, Mode: fs.FileMode(f.Mode)}}
}
