package lspbridge

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"github.com/pillion-dev/pillion/tools/paths"
)

// Source returns the text to which a workspace edit applies. version is that of the open document; 0 when it is not open; negative when the
// text differs from what the server was sent.
type Source func(path string) (text string, version int32, ok bool)

// Lister returns the files below a folder; ok is false when dir is not a folder.
type Lister func(dir string) (files []string, ok bool)

// ErrMoved means that the edit was computed for another version of a document. Ask the server again: it then uses the present version.
var ErrMoved = errors.New("the server's edit is out of date")

// resolveEdit turns a server's workspace edit (LSP 3.17, WorkspaceEdit) into whole texts, without writing anything. It refuses edits that
// overlap, that are for another version of an open document, or whose meaning is unclear: a wrong guess would change files at which the
// person may not look. The error is ErrMoved where asking again helps.
func resolveEdit(edit lsp.WorkspaceEdit, enc Encoding, src Source, list Lister) ([]FileEdit, error) {
	p := plan{src: src, list: list, enc: enc, files: map[string]*FileEdit{}, notes: edit.Annotations}
	if len(edit.DocumentChanges) > 0 || len(edit.Changes) == 0 { // documentChanges win over changes (LSP) and are ordered
		for _, ch := range joinSameVersion(edit.DocumentChanges) {
			if err := p.change(ch); err != nil {
				return nil, err
			}
		}
		return p.result(), nil
	}
	uris := make([]string, 0, len(edit.Changes))
	for u := range edit.Changes {
		uris = append(uris, u)
	}
	// Sort, because a map has no order and the same edit must give the same change set each time.
	slices.Sort(uris)
	for _, u := range uris {
		path := uriPath(u)
		if path == "" {
			return nil, fmt.Errorf("the server wants to change %q, which is not a file", u)
		}
		if _, ok := p.present(path); !ok {
			p.add(&FileEdit{Path: path, Kind: "create"}) // typescript-language-server creates files this way
		}
		if err := p.edit(path, nil, edit.Changes[u]); err != nil {
			return nil, err
		}
	}
	return p.result(), nil
}

// joinSameVersion joins edits of one document for the same version. Their positions all refer to that version, so applying them one after
// the other would shift the later ones. Edits are not joined across a create, delete or rename, after which the name may belong to another
// file. Edits without a version are not joined either: each refers to the result of those before it.
func joinSameVersion(changes []lsp.DocumentChange) []lsp.DocumentChange {
	type of struct {
		uri     string
		version int32
	}
	out := make([]lsp.DocumentChange, 0, len(changes))
	at := map[of]int{}
	for _, ch := range changes {
		v := ch.TextDocument.Version
		switch {
		case ch.Kind != "":
			clear(at)
		case v != nil && *v > 0:
			key := of{ch.TextDocument.URI, *v}
			if i, seen := at[key]; seen {
				out[i].Edits = slices.Concat(out[i].Edits, ch.Edits)
				continue
			}
			at[key] = len(out)
		}
		out = append(out, ch)
	}
	return out
}

// plan is the state of the files after the part of the edit that was processed so far.
type plan struct {
	src  Source
	list Lister
	// notes are the edit's change annotations by id; see confirm.
	notes map[string]lsp.Annotation
	enc   Encoding
	// A deleted file stays in files under its old name, so that creating it again becomes an edit of it.
	files map[string]*FileEdit // by their present name
	order []*FileEdit          // in the order in which the edit names them
	gone  map[string]bool      // names that a rename has freed; on disk there is still a file
}

// add registers a file under its present name.
func (p *plan) add(f *FileEdit) {
	key := f.Path
	if f.NewPath != "" {
		key = f.NewPath
	}
	p.files[key] = f
	if !slices.Contains(p.order, f) {
		p.order = append(p.order, f)
	}
}

// present returns the file that has this name at this point of the edit; ok is false when there is none.
func (p *plan) present(path string) (*FileEdit, bool) {
	if f := p.files[path]; f != nil {
		return f, f.Kind != "delete"
	}
	if p.gone[path] {
		return nil, false
	}
	text, _, ok := p.src(path)
	if !ok {
		return nil, false
	}
	// Add it although it may stay unchanged: result leaves out unchanged files.
	f := &FileEdit{Path: path, Kind: "edit", Old: text, New: text}
	p.add(f)
	return f, true
}

// change applies one document change to the plan. Text edits and file operations come in the server's order, and each sees the result of
// those before it.
func (p *plan) change(ch lsp.DocumentChange) error {
	path := func(u string) (string, error) {
		if s := uriPath(u); s != "" {
			return s, nil
		}
		return "", fmt.Errorf("the server wants to change %q, which is not a file", u)
	}
	switch ch.Kind {
	case "":
		f, err := path(ch.TextDocument.URI)
		if err != nil {
			return err
		}
		return p.edit(f, ch.TextDocument.Version, ch.Edits)
	case "create":
		f, err := path(ch.URI)
		if err != nil {
			return err
		}
		old, there := p.present(f)
		switch {
		case there && ch.Options.Overwrite:
			old.New = ""
		// overwrite wins over ignoreIfExists (LSP, CreateFileOptions), hence the order of the cases.
		case there && ch.Options.IgnoreIfExists:
		case there:
			return fmt.Errorf("the server wants to create %s, which exists", f)
		case old != nil: // deleted earlier in this edit: it is written again
			old.Kind, old.New = "edit", ""
		default:
			p.add(&FileEdit{Path: f, Kind: "create"})
		}
		p.confirm(f, ch.AnnotationID)
	case "delete":
		f, err := path(ch.URI)
		if err != nil {
			return err
		}
		if files, ok := p.below(f); ok {
			return p.folder(ch, f, "", files)
		}
		p.confirm(f, ch.AnnotationID)
		old, there := p.present(f)
		switch {
		case !there && ch.Options.IgnoreIfNotExists:
		case !there:
			return fmt.Errorf("the server wants to delete %s, which does not exist", f)
		// The same edit created and deleted it, so nothing of it remains.
		case old.Kind == "create":
			p.drop(old, f)
		default:
			// A file that this edit has moved is deleted at its old path; the new path was never on disk.
			old.Kind, old.New, old.NewPath = "delete", "", ""
			delete(p.files, f)
			if p.files[old.Path] == nil { // else another file has its old name
				p.files[old.Path] = old
			}
		}
	case "rename":
		from, err := path(ch.OldURI)
		if err != nil {
			return err
		}
		to, err := path(ch.NewURI)
		if err != nil {
			return err
		}
		if files, ok := p.below(from); ok {
			return p.folder(ch, from, to, files)
		}
		p.confirm(from, ch.AnnotationID)
		old, there := p.present(from)
		if !there {
			return fmt.Errorf("the server wants to rename %s, which does not exist", from)
		}
		if hit, exists := p.present(to); exists && from != to {
			switch {
			case ch.Options.Overwrite: // its text replaces the target's, and its old path becomes empty
				hit.New = old.New
				if hit.Confirm == "" {
					hit.Confirm = old.Confirm
				}
				return p.change(lsp.DocumentChange{Kind: "delete", URI: ch.OldURI})
			case ch.Options.IgnoreIfExists:
				return nil
			default:
				return fmt.Errorf("the server wants to rename %s to %s, which exists", from, to)
			}
		}
		delete(p.files, from)
		if p.gone == nil {
			p.gone = map[string]bool{}
		}
		p.gone[from] = true
		if old.Kind == "create" {
			// A file that does not exist yet is created under the other name instead.
			old.Path = to
		} else if old.Kind, old.NewPath = "rename", to; to == old.Path {
			old.Kind, old.NewPath = "edit", ""
		}
		p.files[to] = old
	default:
		return fmt.Errorf("the server sent a change of the unknown kind %q", ch.Kind)
	}
	return nil
}

// confirm records that a file's change needs the person's approval, if its annotation says so (ChangeAnnotation.needsConfirmation).
func (p *plan) confirm(path, annotation string) {
	a, ok := p.notes[annotation]
	if !ok || !a.NeedsConfirmation {
		return
	}
	f, ok := p.present(path)
	if !ok || f.Confirm != "" {
		return
	}
	// Only the first annotation of a file is shown, because each file gets one question.
	if f.Confirm = a.Label; a.Description != "" {
		f.Confirm += ": " + a.Description
	}
	if f.Confirm == "" {
		f.Confirm = "the language server asks for it to be confirmed"
	}
}

// below returns the files in a folder at this point: those on disk and those that the edit has created there.
func (p *plan) below(dir string) (files []string, ok bool) {
	files, ok = p.list(dir)
	var made []string
	for path, f := range p.files {
		if path != dir && f.Kind != "delete" && paths.Within(dir, path) && !slices.Contains(files, path) {
			made = append(made, path)
		}
	}
	slices.Sort(made)
	return append(files, made...), ok || len(made) > 0
}

// maxFolder is how many files a folder may have that a server deletes or moves. Larger folders are refused: a person cannot review so many
// files, and each would be in the change set with its text.
const maxFolder = 500

// folder deletes or moves a folder file by file, so that the person sees each file and undo restores each.
func (p *plan) folder(ch lsp.DocumentChange, from, to string, files []string) error {
	switch {
	case to == "" && !ch.Options.Recursive && len(files) > 0:
		return fmt.Errorf("the server wants to delete the folder %s, which is not empty, but did not ask to delete its content", from)
	case len(files) > maxFolder:
		return fmt.Errorf("the server wants to change the folder %s with %d files; the limit is %d", from, len(files), maxFolder)
	}
	for _, f := range files {
		if _, ok := p.present(f); !ok {
			continue // deleted or moved already
		}
		// Repeat the operation on the folder, with its options, for each of its files.
		one := ch
		if one.URI = string(pathURI(f)); to != "" {
			one.OldURI, one.NewURI = one.URI, string(pathURI(filepath.Join(to, strings.TrimPrefix(f, from))))
		}
		if err := p.change(one); err != nil {
			return err
		}
	}
	return nil
}

// drop removes a file that the edit has created and deleted again.
func (p *plan) drop(f *FileEdit, key string) {
	delete(p.files, key)
	p.order = slices.DeleteFunc(p.order, func(o *FileEdit) bool { return o == f })
}

// edit applies text edits to a file, after a check that the server has seen its present text.
func (p *plan) edit(path string, version *int32, edits []lsp.TextEdit) error {
	f, ok := p.present(path)
	if !ok {
		return fmt.Errorf("the server wants to edit %s, which does not exist", path)
	}
	// For documents that are not open, gopls sends version 0 and pyright null.
	switch _, now, _ := p.src(path); {
	case now < 0 && len(edits) > 0: // whatever version it sends, the server has not seen this text
		return fmt.Errorf("%w: %s has been changed since the server saw it; ask again", ErrMoved, path)
	case version != nil && *version > 0 && now > 0 && now != *version:
		return fmt.Errorf("%w: it is for version %d of %s, which is at version %d; ask again", ErrMoved, *version, path, now)
	}
	text, err := applyTextEdits(f.New, edits, p.enc)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f.New = text
	for _, e := range edits {
		p.confirm(path, e.AnnotationID)
	}
	return nil
}

// errOverlap refuses overlapping edits: LSP forbids them, and the result would depend on their order.
var errOverlap = errors.New("the server's edits overlap")

// applyTextEdits applies edits whose positions all refer to text. Inserts at the same position keep their order, as LSP requires
// (TextEdit[]), hence the stable sort. offset clamps positions beyond the text.
func applyTextEdits(text string, edits []lsp.TextEdit, enc Encoding) (string, error) {
	type span struct {
		// Byte offsets in text.
		from, to int
		with     string
	}
	spans := make([]span, 0, len(edits))
	for _, e := range edits {
		switch {
		case len(e.Snippet) > 0:
			return "", errors.New("the server sent a snippet edit, which Pillion did not request")
		case e.Odd != "":
			return "", fmt.Errorf("the server sent an edit %s", e.Odd)
		}
		s := span{offset(text, int(e.Range.Start.Line), int(e.Range.Start.Character), enc), offset(text, int(e.Range.End.Line), int(e.Range.End.Character), enc), e.NewText}
		// A few servers send the end before the start.
		if s.to < s.from {
			s.from, s.to = s.to, s.from
		}
		spans = append(spans, s)
	}
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	var b strings.Builder
	at := 0
	for _, s := range spans {
		if s.from < at {
			return "", errOverlap
		}
		b.WriteString(text[at:s.from])
		b.WriteString(s.with)
		at = s.to
	}
	b.WriteString(text[at:])
	return b.String(), nil
}

// editResolver resolves a server's edits against the texts that the server was sent.
type editResolver struct {
	able *abilities
	docs *documents
	text func(path string) (string, bool) // what the person sees
	// laid holds, by path, the texts of a draft while a question about it has the documents; see WithTexts. Only the operation that has
	// acquired the documents stores it; it is atomic because edits that the server sends unasked are resolved at the same time.
	laid atomic.Pointer[map[string]Proposal]
}

// resolve turns a server's edit into edits of files, against its open documents and what the person sees. Where the two differ, the version
// is -1 and resolveEdit returns ErrMoved: the server's positions refer to another text.
func (r *editResolver) resolve(edit lsp.WorkspaceEdit) ([]FileEdit, error) {
	// An edit for an earlier version is valid if that version had the present text.
	edit.DocumentChanges = slices.Clone(edit.DocumentChanges)
	for i := range edit.DocumentChanges {
		at := &edit.DocumentChanges[i].TextDocument
		path := uriPath(at.URI)
		if doc, open := r.docs.get(path); open && at.Version != nil && *at.Version != doc.version && r.docs.sameText(path, *at.Version) {
			at.Version = &doc.version
		}
	}
	return resolveEdit(edit, r.able.enc, func(path string) (string, int32, bool) {
		doc, _ := r.docs.get(path)
		version := doc.version
		text, ok := r.text(filepath.Clean(path))
		// A draft's text wins: it is what the server was sent.
		if laid := r.laid.Load(); laid != nil {
			if t, is := (*laid)[filepath.Clean(path)]; is {
				text, ok = t.Text, !t.Delete
			}
		}
		if ok && version > 0 && validUTF8(text) != doc.text {
			version = -1 // it has changed since the server saw it
		}
		return text, version, ok
	}, listFolder)
}

// listFolder is the Lister for the disk; it stops after maxFolder+1 files.
func listFolder(dir string) (files []string, ok bool) {
	if !isDir(dir) {
		return nil, false
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		// One file more than allowed is enough to refuse; a huge folder is not walked to its end.
		case len(files) > maxFolder:
			return filepath.SkipAll
		case err == nil && !d.IsDir():
			files = append(files, path)
		}
		return nil
	})
	return files, true
}

// result returns the plan as a list in which every path occurs once, so that the edits can be applied in any order. Edits that change
// nothing are left out.
func (p *plan) result() []FileEdit {
	// named counts the entries in which a path occurs, as the old or the new name.
	named := map[string]int{}
	for _, f := range p.order {
		named[f.Path]++
		if f.NewPath != "" {
			named[f.NewPath]++
		}
	}
	out, tangled := make([]FileEdit, 0, len(p.order)), []*FileEdit(nil)
	for _, f := range p.order {
		switch {
		// Two entries for one path depend on their order, and a list of edits has none.
		case named[f.Path] > 1 || f.NewPath != "" && named[f.NewPath] > 1:
			tangled = append(tangled, f)
		case f.Kind != "edit" || f.Old != f.New:
			out = append(out, *f)
		}
	}
	return append(out, exchangedNames(tangled)...)
}

// exchangedNames describes files that exchange names (a swap, or a new file in the place of a moved one) by what happens to each path. No
// order of renames gives that result, because each would overwrite another file.
func exchangedNames(list []*FileEdit) []FileEdit {
	// was is the file that had the name before the edit; is has it afterwards.
	type place struct{ was, is *FileEdit }
	places := map[string]*place{}
	var order []string
	at := func(path string) *place {
		if places[path] == nil {
			places[path] = &place{}
			order = append(order, path)
		}
		return places[path]
	}
	for _, f := range list {
		if f.Kind != "create" {
			at(f.Path).was = f
		}
		switch {
		case f.NewPath != "":
			at(f.NewPath).is = f
		case f.Kind != "delete":
			at(f.Path).is = f
		}
	}
	slices.Sort(order)
	out := make([]FileEdit, 0, len(order))
	for _, path := range order {
		switch p := places[path]; {
		case p.is == nil:
			out = append(out, FileEdit{Path: path, Kind: "delete", Old: p.was.Old, Confirm: p.was.Confirm})
		case p.was == nil:
			out = append(out, FileEdit{Path: path, Kind: "create", New: p.is.New, Confirm: p.is.Confirm})
		case p.was.Old != p.is.New:
			out = append(out, FileEdit{Path: path, Kind: "edit", Old: p.was.Old, New: p.is.New, Confirm: p.is.Confirm})
		}
	}
	return out
}
