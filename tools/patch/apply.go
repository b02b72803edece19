package patch

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Apply works out the whole patch in memory: read gives a file's text and whether it exists. The result has at most one change for
// each file, and their order does not matter; after an error (an *Error, or read's own) nothing may be written. Sections of an
// envelope are applied one after the other, each to the result so far. A unified diff describes the files as they were, so in it two
// files may exchange their names.
func (p *Patch) Apply(read func(path string) (text string, exists bool, err error)) ([]FileChange, error) {
	key := p.Key
	if key == nil {
		key = lexical
	}
	t := &tree{key: key, read: read, files: map[string]*file{}, unified: p.Unified, leaving: map[string]bool{}, literals: p.Literals}
	// Collected before the first section: in a diff, a file may take a name that a later section frees.
	for _, op := range p.Ops {
		if p.Unified && (op.Kind == Delete || op.Kind == Move) {
			t.leaving[t.key(op.Path)] = true
		}
	}
	for i := range p.Ops {
		if err := t.do(&p.Ops[i]); err != nil {
			return nil, err
		}
	}
	return t.changes(), nil
}

// lexical is the default of Patch.Key: the cleaned path, with slashes. It knows neither links nor letter case.
func lexical(p string) string { return path.Clean(strings.ReplaceAll(p, "\\", "/")) }

// tree is the files that the patch touches, as they were and as they become.
type tree struct {
	key     func(string) string                // see Patch.Key
	read    func(string) (string, bool, error) // text, exists; called once for each file
	files   map[string]*file                   // by key
	order   []*file                            // in the order in which the patch names them first
	unified bool
	leaving map[string]bool // unified: files that are deleted or moved away somewhere in the patch
	// literals is Patch.Literals.
	literals func(path, text string) ([][2]int, bool)
}

// file is one path of the tree while a patch is applied: what it was, and what it is after the sections so far. The pointer also
// identifies the old content (content.origin), so that changes can tell a move from an edit.
type file struct {
	path    string // as first spelled
	was     string // text before the patch
	existed bool
	is      content // after the sections so far
	exists  bool
	spent   bool // unified: the old text was deleted or moved by a section
}

// content is a text and where it came from.
type content struct {
	text   string
	origin *file       // the file whose text this was; nil for a new one
	mode   fs.FileMode // permission bits to set, 0: keep
	loose  []Loose     // see FileChange.Loose
}

// file returns the file of a path, however it is spelled, and reads it the first time: a second section works on the result of the
// first.
func (t *tree) file(name string) (*file, error) {
	if f := t.files[t.key(name)]; f != nil {
		return f, nil
	}
	text, exists, err := t.read(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f := &file{path: name, was: text, existed: exists, exists: exists}
	f.is = content{text: text, origin: f}
	t.files[t.key(name)] = f
	t.order = append(t.order, f)
	return f, nil
}

// do applies one section to the tree. Its errors are *Error or those of read.
func (t *tree) do(op *Op) error {
	f, err := t.file(op.Path)
	if err != nil {
		return err
	}
	switch op.Kind {
	case Add:
		if op.Copy {
			return t.move(op, f)
		}
		return t.add(op, f)
	case Delete:
		return t.remove(op, f)
	case Move:
		return t.move(op, f)
	}
	// In "diff -u a.orig a" either name may be the one that exists.
	if !f.exists && op.Instead != "" {
		if f, err = t.file(op.Instead); err != nil {
			return err
		}
	}
	// "@@ -0,0 +1,3 @@" with two real names is how diff -N and many models write a new file.
	if !f.exists && t.unified && len(op.Hunks) == 1 && op.Hunks[0].Top && len(op.Hunks[0].old()) == 0 {
		if f, err = t.file(op.Path); err != nil {
			return err
		}
		return t.add(op, f)
	}
	if !f.exists {
		return missing(op)
	}
	text, loose, err := t.update(op, f.path, f.is.text)
	if err != nil {
		return err
	}
	f.is.text, f.is.loose = text, append(f.is.loose, loose...)
	if op.Mode != 0 {
		f.is.mode = op.Mode
	}
	return nil
}

// missing is the error of an update or a move of a file that does not exist.
func missing(op *Op) error {
	return &Error{Kind: UpdateTargetMissing, Path: op.Path, Line: op.Line, Message: fmt.Sprintf("%s does not exist, so it cannot be updated; check the path, or use \"*** Add File: %s\"", op.Path, op.Path)}
}

// add applies an Add section. It refuses a file that exists: a model that adds an existing file has not read it, and would overwrite text
// that it has not seen.
func (t *tree) add(op *Op, f *file) error {
	if f.exists && !t.leaves(f) {
		return &Error{Kind: Exists, Path: op.Path, Line: op.Line, Message: fmt.Sprintf("%s exists already; update it, or delete it earlier in the same patch to replace it", op.Path)}
	}
	text := op.Content
	if len(op.Hunks) > 0 {
		var err error
		if text, _, err = t.update(op, op.Path, ""); err != nil {
			return err
		}
	}
	f.exists, f.is = true, content{text: text, mode: op.Mode}
	return nil
}

// leaves reports whether the patch deletes or moves the present file in a later section. A diff names files in alphabetical order, so a
// file can be created before the old one of that name is gone.
func (t *tree) leaves(f *file) bool { return t.leaving[t.key(f.path)] && f.is.origin == f && f.existed }

// remove applies a Delete section. A unified diff quotes the lines that it deletes, and they must be the whole file.
func (t *tree) remove(op *Op, f *file) error {
	if !f.exists && !(t.unified && f.existed && !f.spent) {
		return &Error{Kind: DeleteFailed, Path: op.Path, Line: op.Line, Message: fmt.Sprintf("%s does not exist, so it cannot be deleted; leave the section out if it is gone already", op.Path)}
	}
	now := t.source(f)
	if len(op.Hunks) > 0 { // a diff says what it deletes
		left, _, err := t.update(op, op.Path, now.text)
		if err != nil {
			return err
		}
		// The author of the diff did not know of the lines that are left.
		if left != "" {
			return &Error{Kind: LinesNotFound, Path: op.Path, Line: op.Line, Message: fmt.Sprintf("%s has other lines than the diff deletes; read it again, then delete it if it should still go", op.Path)}
		}
	}
	t.gone(f)
	return nil
}

// source is the content that a section of the patch means by f: what is there after the sections so far, or, for a diff in which an
// earlier section put another text there, what was there before the patch.
func (t *tree) source(f *file) content {
	if t.unified && f.existed && !f.spent && f.is.origin != f {
		return content{text: f.was, origin: f}
	}
	return f.is
}

// gone removes the content that source returned. spent keeps a diff from deleting or moving the same old content twice.
func (t *tree) gone(f *file) {
	if f.is.origin == f || !t.unified || f.spent {
		f.exists, f.is = false, content{}
	}
	f.spent = true
}

// move applies an Update section with "*** Move to:", or a rename or copy of a unified diff. It refuses a destination that exists, unless
// the patch removes that: its text would be lost without having been quoted.
func (t *tree) move(op *Op, f *file) error {
	if t.key(op.Path) == t.key(op.NewPath) {
		return &Error{Kind: Exists, Path: op.NewPath, Line: op.Line, Message: fmt.Sprintf("%s cannot be moved onto itself; leave \"*** Move to:\" out", op.Path)}
	}
	if !f.exists && !(t.unified && f.existed && !f.spent) {
		return missing(op)
	}
	to, err := t.file(op.NewPath)
	if err != nil {
		return err
	}
	if to.exists && !t.leaves(to) {
		return &Error{Kind: Exists, Path: op.NewPath, Line: op.Line, Message: fmt.Sprintf("%s cannot be moved to %s, which exists already; delete that earlier in the same patch if it should go", op.Path, op.NewPath)}
	}
	// The hunks of a move apply to the text that moves.
	now := t.source(f)
	text, loose, err := t.update(op, op.Path, now.text)
	if err != nil {
		return err
	}
	now.text, now.loose = text, append(now.loose, loose...)
	if op.Mode != 0 {
		now.mode = op.Mode
	}
	if op.Copy { // a copy is a new file; the old one stays
		now.origin = nil
	} else {
		t.gone(f)
	}
	to.exists, to.is = true, now
	return nil
}

// changes compares before and after, file by file. Changes must not depend on each other, so a move onto a name that existed becomes an
// update of that name and a deletion of the other.
func (t *tree) changes() []FileChange {
	var out []FileChange
	moved := map[*file]bool{}
	// Files that are moved to a free name; their old names are not deletions.
	for _, f := range t.order {
		if o := f.is.origin; f.exists && !f.existed && o != nil && !o.exists {
			moved[o] = true
		}
	}
	for _, f := range t.order {
		o, mode := f.is.origin, f.is.mode
		switch {
		// The text of a file that is gone, under a name that was free.
		case f.exists && !f.existed && o != nil && moved[o]:
			out = append(out, FileChange{Kind: Move, Path: o.path, NewPath: f.path, Old: o.was, New: f.is.text, Mode: mode, Loose: f.is.loose})
		case f.exists && !f.existed:
			out = append(out, FileChange{Kind: Add, Path: f.path, New: f.is.text, Mode: mode})
		case f.exists && (f.is.text != f.was || mode != 0):
			out = append(out, FileChange{Kind: Update, Path: f.path, Old: f.was, New: f.is.text, Mode: mode, Loose: f.is.loose})
		case f.existed && !f.exists && !moved[f]:
			out = append(out, FileChange{Kind: Delete, Path: f.path, Old: f.was})
		}
	}
	return out
}
