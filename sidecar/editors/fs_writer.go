package editors

import (
	"context"
	"errors"
	"fmt"
	"os"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
)

// fsWriter writes through an editor that has only ACP's fs methods (fs/read_text_file and fs/write_text_file), and asks it first what it
// shows. These methods know no versions: between the question and the write the person may type, so each write is read back.
type fsWriter struct{ ed *Editor }

// guard compares what a generic editor shows with what the change was computed from and with the disk. On any
// difference nothing is written: unsaved lines are the person's.
//
// exact says that the editor's text, the disk and the base are the same bytes, or that the editor only lags behind what
// it wrote itself: then it may write the file without changing lines nobody touched.
func (w fsWriter) guard(ctx context.Context, session string, f change.File) (exact bool, err error) {
	if f.Kind == change.Create {
		return false, nil
	}
	disk, err := os.ReadFile(f.Path)
	if err != nil {
		return false, &tools.Error{Kind: "stale", Err: err, Message: fmt.Sprintf("%s can no longer be read: %v", f.Path, err)}
	}
	if !utf8.Valid(disk) || len(disk) > MaxAsked {
		return false, nil // an editor has no plain text of it; the disk's own guard decides
	}
	text, err := w.ed.docs.readText(ctx, session, f.Path)
	if errors.Is(err, errNoAnswer) {
		return false, &tools.Error{Kind: "unsaved", Err: err, Message: fmt.Sprintf("the editor was asked whether %s has unsaved changes and did not answer (%v); nothing was written, so that none are lost. Try again, or ask the user whether the editor hangs", f.Path, err)}
	}
	if err != nil {
		return false, nil // not a file it knows: then it has no unsaved text of it either
	}
	lags, byEditor := w.ed.docs.lagging.behind(f.Path, text, string(disk))
	if lags {
		text = string(disk)
	}
	switch {
	case !sameText(text, string(disk)):
		return false, errUnsavedInEditor(w.ed, f.Path)
	case !sameText(f.Old, string(disk)):
		return false, &tools.Error{Kind: "stale", Message: fmt.Sprintf("%s changed since it was read; nothing was written. Read it again, then edit", f.Path)}
	}
	return string(disk) == f.Old && text == f.Old && (!lags || byEditor), nil
}

// errUnsavedInEditor is the error for a file of which an editor that was asked shows another text than the disk has. Where an editor has
// left a mark on the disk, it names that one.
func errUnsavedInEditor(ed *Editor, path string) error {
	if h, ok := unsavedElsewhere(path); ok { // it has left a mark that says more
		return h.refuse(path)
	}
	name := ed.Client().Name
	if name == "" {
		name = "the editor"
	}
	return (&holder{editor: name}).refuse(path)
}

// writeFiles writes through fs/write_text_file what the editor sees exactly as the disk holds it, and the rest on the
// disk: an editor that changes line ends on the way would change lines nobody touched. All files are checked before the
// first is written; when one fails, those already written are put back.
func (w fsWriter) writeFiles(ctx context.Context, session string, set *change.Set, disk Applier) error {
	exact := map[string]bool{} // by path
	for _, f := range set.Files {
		same, err := w.guard(ctx, session, f)
		if err != nil {
			return err
		}
		exact[f.Path] = same
	}
	mine, rest := split(set, func(f change.File) bool { return f.Kind == change.Edit && exact[f.Path] })
	// The disk first: it writes its files as one journalled transaction or not at all, and an editor that fails after it
	// can be undone with hashes. The other way round a failing disk would have to be undone through the editor.
	if len(rest.Files) > 0 {
		if err := disk.Apply(ctx, rest); err != nil {
			return err
		}
		w.ed.docs.wroteDisk(rest)
	}
	// The guard of the only file was its last look: nothing has been written since, and no editor asked. Before a later
	// one the editor may have shown a dialog for minutes.
	only := len(set.Files) == 1
	for i, f := range mine.Files {
		if err := w.writeFile(ctx, session, f.Path, f.Old, f.New, only); err != nil {
			return w.putBack(ctx, session, mine.Files[:i+1], rest, disk, only, err)
		}
	}
	return nil
}

// writeFile writes one file through the editor, if it still is what it was a moment ago, and reads it back. looked says
// that the editor has said so just now.
func (w fsWriter) writeFile(ctx context.Context, session, path, old, now string, looked bool) error {
	if text, err := w.look(ctx, session, path, old, looked); err != nil || text != old {
		return &tools.Error{Kind: "stale", Err: err, Message: fmt.Sprintf("%s changed in the editor just now; it was not written. Read it again, then edit", path)}
	}
	err := w.ed.Ask(ctx, protocol.MethodFsWriteTextFile, protocol.WriteTextFileRequest{SessionID: session, Path: path, Content: now}, nil)
	back, rerr := w.ed.docs.readText(ctx, session, path)
	if err == nil && rerr == nil && old != now && !sameText(back, now) {
		if disk, derr := os.ReadFile(path); derr == nil && string(disk) == now {
			w.ed.docs.lagging.wrote(path, old, now, true)
			if lags, _ := w.ed.docs.lagging.behind(path, back, now); lags {
				return nil // written to the disk; the buffer shows it when it is loaded again
			}
		}
	}
	switch {
	case err != nil && (rerr != nil || back == old):
		return &tools.Error{Kind: "refused", Err: err, Message: fmt.Sprintf("the editor could not write %s: %v", path, err)}
	case rerr != nil:
		return &tools.Error{Kind: "unknown", Err: rerr, Message: fmt.Sprintf("the editor wrote %s but could not read it back: %v. Read it again", path, rerr)}
	case back == old && old != now:
		return &tools.Error{Kind: "refused", Message: fmt.Sprintf("the editor accepted the write of %s but its text is unchanged; check whether it is read-only", path)}
	case !sameText(back, now):
		return &tools.Error{Kind: "changed", Message: fmt.Sprintf("%s was written, but the editor now shows something else (it may format when it saves); read it again", path)}
	}
	return nil
}

// look is the text that the editor shows before a write. With looked it is old, without a question: guard has just compared the two.
func (w fsWriter) look(ctx context.Context, session, path, old string, looked bool) (string, error) {
	if looked {
		return old, nil
	}
	return w.ed.docs.shownText(ctx, session, path, old)
}

// withBases sets the hash of what each file has now as its base. Without a base the disk refuses to delete a file, so
// that one which the set had created would stay.
func withBases(set *change.Set) {
	for i, f := range set.Files {
		if b, err := os.ReadFile(f.Path); err == nil {
			set.Files[i].BaseHash = files.Hash(b)
		}
	}
}

// putBack undoes a set after a failure, cause, and returns it, with what could not be undone. written are the files that were sent to the
// editor; the last one failed, but the editor may have written it all the same, as something else. rest was written by disk. alone says
// that the set has one file. What the person typed meanwhile is not undone: then the editor shows another text than the disk.
func (w fsWriter) putBack(ctx context.Context, session string, written []change.File, rest *change.Set, disk Applier, alone bool, cause error) error {
	ctx = context.WithoutCancel(ctx) // a turn that was stopped leaves no half of a set behind
	var failed []error
	for i, f := range written {
		now := f.New
		if i == len(written)-1 {
			text, err := w.ed.docs.readText(ctx, session, f.Path)
			disk, derr := os.ReadFile(f.Path)
			if err != nil || derr != nil || sameText(text, f.Old) || text != string(disk) || alone {
				continue // it has the old text, or holds unsaved lines; or it is the only file, and cause says what became of it
			}
			now = text
		}
		if err := w.writeFile(ctx, session, f.Path, now, f.Old, false); err != nil {
			failed = append(failed, err)
		}
	}
	if len(rest.Files) > 0 {
		back, err := rest.Undo(rest.ID+"-back", nil, func(path string) (string, bool) {
			b, err := os.ReadFile(path)
			text, _ := files.Decode(b)
			return text, err == nil
		})
		if err == nil {
			withBases(back)
			err = disk.Apply(ctx, back)
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%w; the files that were written before could not be restored: %v", cause, errors.Join(failed...))
	}
	return cause
}
