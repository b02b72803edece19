package editors

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
)

// liveWriter writes through an editor that reports its buffers, by one versioned workspace edit in LSP's shape. The person can undo it
// there like their own typing.
type liveWriter struct{ ed *Editor }

// applyEdit applies what is open in the editor as one versioned workspace edit, then the rest by disk. The editor comes first because it is
// the one that may refuse: nothing of the set is written then. When disk fails afterwards, the edit is undone in the buffers.
func (w liveWriter) applyEdit(ctx context.Context, session string, set *change.Set, disk Applier) error {
	open, rest := split(set, func(f change.File) bool {
		_, ok := w.ed.Buffers.Buffer(f.Path)
		return ok && f.Kind != change.Create
	})
	if len(open.Files) == 0 {
		return disk.Apply(ctx, rest)
	}
	edit, err := w.workspaceEdit(open)
	if err != nil {
		return err
	}
	if err := w.sendEdit(ctx, session, open, edit); err != nil {
		return err
	}
	if len(rest.Files) == 0 {
		return nil
	}
	if err := disk.Apply(ctx, rest); err != nil {
		// Against the buffers as they are now, so that what the person has typed since is kept.
		back, berr := open.Undo(open.ID+"-back", nil, func(path string) (string, bool) {
			b, ok := w.ed.Buffers.Buffer(path)
			return b.Text, ok
		})
		if berr == nil {
			var e protocol.WorkspaceEdit
			if e, berr = w.workspaceEdit(back); berr == nil {
				// Also after the turn was cancelled: half of a set must not stay.
				berr = w.sendEdit(context.WithoutCancel(ctx), session, back, e)
			}
		}
		if berr != nil {
			return fmt.Errorf("%w (the edits already made in open files could not be reverted: %v)", err, berr)
		}
		return err
	}
	return nil
}

// sendEdit sends one workspace edit and compares the hashes that the editor answers with. The error is a tools.Error: stale (the editor did
// not apply it), changed (the buffer has another text than was sent), or that of unsure, where the request failed and may have been carried
// out all the same.
func (w liveWriter) sendEdit(ctx context.Context, session string, set *change.Set, edit protocol.WorkspaceEdit) error {
	label := set.Title
	if label == "" {
		label = "Pillion"
	}
	var got protocol.ApplyEditResponse
	err := w.ed.Ask(ctx, protocol.MethodPillionWorkspaceApplyEdit, protocol.ApplyEditRequest{SessionID: session, ChangeSet: set.ID, Label: label, Edit: edit}, &got)
	if err != nil {
		return w.unsure(set, err)
	}
	if !got.Applied {
		reason := got.FailureReason
		if reason == "" {
			reason = "no reason given"
		}
		return &tools.Error{Kind: "stale", Message: "the editor did not apply the edit (" + reason + "); nothing was written. Read the file again before editing it"}
	}
	for _, f := range set.Files {
		if f.Kind != change.Edit {
			continue
		}
		uri := w.ed.Buffers.URI(f.Path)
		if want, ok := got.Sha256[uri]; ok && want != hash(f.New) {
			return &tools.Error{Kind: "changed", Message: fmt.Sprintf("the editor applied the edit to %s, but its text is not what was sent (a formatter, perhaps); read it again", f.Path)}
		}
		// The mirror knows the text at once: the next tool may read it before the editor's didChange arrives.
		if v, ok := got.Versions[uri]; ok {
			w.ed.Buffers.applied(f.Path, f.New, v)
		}
	}
	return nil
}

// unsure is the error of an edit that was never answered, for the reason err. Where a buffer is no longer as it was, the edit may have been
// applied: the model must read the file before it repeats the edit (kind unknown). Otherwise nothing was written (kind refused).
func (w liveWriter) unsure(set *change.Set, err error) error {
	for _, f := range set.Files {
		if b, ok := w.ed.Buffers.Buffer(f.Path); ok && b.Text != f.Old {
			return &tools.Error{Kind: "unknown", Err: err, Message: fmt.Sprintf("%v; %s has changed since, perhaps by this edit. Read it again", err, f.Path)}
		}
	}
	return &tools.Error{Kind: "refused", Err: err, Message: fmt.Sprintf("the editor could not apply the edit: %v", err)}
}

// workspaceEdit is a change set as LSP's WorkspaceEdit with documentChanges, in the order of the files. It fails with kind stale where a
// buffer no longer has the text that the change was computed from.
func (w liveWriter) workspaceEdit(set *change.Set) (protocol.WorkspaceEdit, error) {
	edit := protocol.WorkspaceEdit{DocumentChanges: []protocol.DocumentChange{}}
	add := func(kind string, value any) {
		edit.DocumentChanges = append(edit.DocumentChanges, protocol.DocumentChange{Kind: kind, Value: value})
	}
	for _, f := range set.Files {
		b, ok := w.ed.Buffers.Buffer(f.Path)
		if ok && b.Text != f.Old {
			return edit, &tools.Error{Kind: "stale", Message: fmt.Sprintf("%s changed in the editor while this edit was being made; nothing was written. Read it again, then edit", f.Path)}
		}
		uri := w.ed.Buffers.URI(f.Path)
		switch f.Kind {
		case change.Delete:
			add("delete", &protocol.DeleteFile{URI: uri})
			continue
		case change.Create:
			add("create", &protocol.CreateFile{URI: uri})
		}
		doc := protocol.TextDocumentIdentifier{URI: uri}
		if ok {
			// The editor refuses the edit when the person has typed since: the comparison above is of our mirror, which
			// can be a keystroke behind.
			doc.Version = &b.Version
		}
		if edits := textEdits(f); len(edits) > 0 {
			add("", &protocol.TextDocumentEdit{TextDocument: doc, Edits: edits})
		}
		if f.Kind == change.Rename {
			add("rename", &protocol.RenameFile{OldURI: uri, NewURI: PathURI(f.NewPath)})
		}
	}
	return edit, nil
}

// textEdits are a file's hunks as LSP edits, all of them relative to the old text: lines from 0, characters in UTF-16 units. Hunks come in
// the order of lines, so the old text is scanned once.
func textEdits(f change.File) []protocol.TextEdit {
	var out []protocol.TextEdit
	line, offset := 1, 0
	for _, h := range f.Hunks {
		first := h.OldStart
		if h.OldLines == 0 {
			first++ // an insertion names the line before it
		}
		for line < first && offset < len(f.Old) {
			n := strings.IndexByte(f.Old[offset:], '\n')
			if n < 0 {
				offset = len(f.Old)
				break
			}
			offset += n + 1
			line++
		}
		if h.OldText == h.NewText {
			continue // the whole-file hunk of a pure rename
		}
		out = append(out, protocol.TextEdit{
			Range:   protocol.Range{Start: OffsetPosition(f.Old, offset), End: OffsetPosition(f.Old, offset+len(h.OldText))},
			NewText: h.NewText,
		})
	}
	return out
}

// hash is the sha256 of a text in hex, as editors answer it.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
