package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
)

// sessionFiles are the open documents of whichever editor has the session.
type sessionFiles struct {
	e       *Editors
	session string
}

// maxAsked is the largest file, in bytes, a generic editor is asked about; larger ones are read from the disk.
const maxAsked = 8 << 20

// Buffer implements files.Buffers. An editor that reports its buffers is answered from memory. A generic one is asked:
// where its text differs from the disk's, it is a buffer with unsaved changes, and that is what the person sees.
func (f sessionFiles) Buffer(path string) (files.Buffer, bool) {
	all, session := f.e.all(f.session)
	return firstDirty(all, func(s *Server) (files.Buffer, bool) { return s.showsFile(session, path) })
}

// showsFile is a document as this editor shows it.
func (s *Server) showsFile(session, path string) (files.Buffer, bool) {
	c := s.currentClient()
	if c.liveBuffers() {
		return s.o.Buffers.Buffer(path)
	}
	if !c.readsFiles() {
		return files.Buffer{}, false
	}
	return s.asksFile(s.ctx, session, path)
}

// asksFile asks a generic editor, and remembers what it says.
func (s *Server) asksFile(ctx context.Context, session, path string) (files.Buffer, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxAsked {
		return files.Buffer{}, false
	}
	disk, err := os.ReadFile(path)
	if err != nil || !utf8.Valid(disk) {
		return files.Buffer{}, false
	}
	text, err := s.shownText(ctx, session, path, string(disk))
	dirty := err == nil && !sameText(text, string(disk))
	s.unsaved.keep(path, session, text, info, dirty)
	if !dirty {
		return files.Buffer{}, false
	}
	return files.Buffer{Path: path, Text: text, Dirty: true}, true
}

// Dirty implements files.Buffers. A generic editor cannot be asked for a list.
func (f sessionFiles) Dirty() []files.Buffer {
	all, _ := f.e.all(f.session)
	var out []files.Buffer
	for _, s := range all {
		if s.currentClient().liveBuffers() {
			out = append(out, s.o.Buffers.Dirty()...)
		}
	}
	return out
}

func (s *Server) readText(ctx context.Context, session, path string) (string, error) {
	var got protocol.ReadTextFileResponse
	err := s.ask(ctx, protocol.MethodFsReadTextFile, protocol.ReadTextFileRequest{SessionID: session, Path: path}, &got)
	return got.Content, err
}

// sameText compares what an editor says with the disk as editors change it on the way: line ends, BOM, last newline.
func sameText(editor, disk string) bool { return editor == disk || plain(editor) == plain(disk) }

func plain(s string) string {
	s = strings.TrimPrefix(s, "\ufeff")
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	return strings.TrimSuffix(s, "\n")
}

// sessionApplier writes where the session's editor shows it.
type sessionApplier struct {
	e       *Editors
	session string
	disk    Applier
}

// Apply implements Applier: open documents through the editor, everything else through the disk.
func (a sessionApplier) Apply(ctx context.Context, set *change.Set) error {
	all, session := a.e.all(a.session)
	switch len(all) {
	case 0:
		return a.disk.Apply(ctx, set)
	case 1:
	default:
		return a.applyMany(ctx, all, session, set)
	}
	s := all[0]
	c := s.currentClient()
	switch {
	case c.liveBuffers() && c.does(protocol.MethodPillionWorkspaceApplyEdit):
		return s.applyEdit(ctx, session, set, a.disk)
	case c.writesFiles():
		return s.writeFiles(ctx, session, set, a.disk)
	case c.readsFiles():
		// It shows what is unsaved but cannot write: guard against it, then the disk.
		for _, f := range set.Files {
			if err := s.guard(ctx, session, f); err != nil {
				return err
			}
		}
		if err := a.disk.Apply(ctx, set); err != nil {
			return err
		}
		s.wroteDisk(set)
		return nil
	}
	return a.disk.Apply(ctx, set)
}

// split takes the files apart that belong to the editor.
func split(set *change.Set, theirs func(change.File) bool) (editor, disk *change.Set) {
	e, d := *set, *set
	e.Files, d.Files = nil, nil
	for _, f := range set.Files {
		if theirs(f) {
			e.Files = append(e.Files, f)
		} else {
			d.Files = append(d.Files, f)
		}
	}
	return &e, &d
}

// applyEdit applies what is open as one versioned workspace edit. Nothing of the set is written when the editor refuses;
// when the disk fails after it, the edit is taken back.
func (s *Server) applyEdit(ctx context.Context, session string, set *change.Set, disk Applier) error {
	open, rest := split(set, func(f change.File) bool {
		_, ok := s.o.Buffers.Buffer(f.Path)
		return ok && f.Kind != change.Create
	})
	if len(open.Files) == 0 {
		return disk.Apply(ctx, rest)
	}
	edit, err := s.workspaceEdit(open)
	if err != nil {
		return err
	}
	if err := s.sendEdit(ctx, session, open, edit); err != nil {
		return err
	}
	if len(rest.Files) == 0 {
		return nil
	}
	if err := disk.Apply(ctx, rest); err != nil {
		back, berr := open.Undo(open.ID+"-back", nil, func(path string) (string, bool) {
			b, ok := s.o.Buffers.Buffer(path)
			return b.Text, ok
		})
		if berr == nil {
			var e protocol.WorkspaceEdit
			if e, berr = s.workspaceEdit(back); berr == nil {
				berr = s.sendEdit(context.WithoutCancel(ctx), session, back, e)
			}
		}
		if berr != nil {
			return fmt.Errorf("%w (the edits already made in open files could not be taken back: %v)", err, berr)
		}
		return err
	}
	return nil
}

func (s *Server) sendEdit(ctx context.Context, session string, set *change.Set, edit protocol.WorkspaceEdit) error {
	label := set.Title
	if label == "" {
		label = "Pillion"
	}
	var got protocol.ApplyEditResponse
	err := s.ask(ctx, protocol.MethodPillionWorkspaceApplyEdit, protocol.ApplyEditRequest{SessionID: session, ChangeSet: set.ID, Label: label, Edit: edit}, &got)
	if err != nil {
		return s.unsure(set, err)
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
		uri := s.o.Buffers.uri(f.Path)
		if want, ok := got.Sha256[uri]; ok && want != hash(f.New) {
			return &tools.Error{Kind: "changed", Message: fmt.Sprintf("the editor applied the edit to %s, but its text is not what was sent (a formatter, perhaps); read it again", f.Path)}
		}
		if v, ok := got.Versions[uri]; ok {
			s.o.Buffers.applied(f.Path, f.New, v)
		}
	}
	return nil
}

// unsure is what an edit that was never answered means: look at the buffers to know.
func (s *Server) unsure(set *change.Set, err error) error {
	for _, f := range set.Files {
		if b, ok := s.o.Buffers.Buffer(f.Path); ok && b.Text != f.Old {
			return &tools.Error{Kind: "unknown", Err: err, Message: fmt.Sprintf("%v; %s has changed since, perhaps by this edit. Read it again", err, f.Path)}
		}
	}
	return &tools.Error{Kind: "refused", Err: err, Message: fmt.Sprintf("the editor could not apply the edit: %v", err)}
}

// workspaceEdit is a change set in LSP's shape, checked against the buffers as they are now.
func (s *Server) workspaceEdit(set *change.Set) (protocol.WorkspaceEdit, error) {
	edit := protocol.WorkspaceEdit{DocumentChanges: []protocol.DocumentChange{}}
	add := func(kind string, value any) {
		edit.DocumentChanges = append(edit.DocumentChanges, protocol.DocumentChange{Kind: kind, Value: value})
	}
	for _, f := range set.Files {
		b, ok := s.o.Buffers.Buffer(f.Path)
		if ok && b.Text != f.Old {
			return edit, &tools.Error{Kind: "stale", Message: fmt.Sprintf("%s changed in the editor while this edit was being made; nothing was written. Read it again, then edit", f.Path)}
		}
		uri := s.o.Buffers.uri(f.Path)
		switch f.Kind {
		case change.Delete:
			add("delete", &protocol.DeleteFile{URI: uri})
			continue
		case change.Create:
			add("create", &protocol.CreateFile{URI: uri})
		}
		doc := protocol.TextDocumentIdentifier{URI: uri}
		if ok {
			doc.Version = &b.Version
		}
		if edits := textEdits(f); len(edits) > 0 {
			add("", &protocol.TextDocumentEdit{TextDocument: doc, Edits: edits})
		}
		if f.Kind == change.Rename {
			add("rename", &protocol.RenameFile{OldURI: uri, NewURI: pathURI(f.NewPath)})
		}
	}
	return edit, nil
}

// textEdits are a file's hunks as LSP edits of the old text.
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

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// guard compares what a generic editor shows with what the change was computed from and with the disk. On any
// difference nothing is written: unsaved lines are the person's.
func (s *Server) guard(ctx context.Context, session string, f change.File) error {
	if f.Kind == change.Create {
		return nil
	}
	disk, err := os.ReadFile(f.Path)
	if err != nil {
		return &tools.Error{Kind: "stale", Err: err, Message: fmt.Sprintf("%s cannot be read any more: %v", f.Path, err)}
	}
	if !utf8.Valid(disk) || len(disk) > maxAsked {
		return nil // an editor has no plain text of it; the disk's own guard decides
	}
	text, err := s.shownText(ctx, session, f.Path, string(disk))
	if errors.Is(err, errNoAnswer) {
		return &tools.Error{Kind: "unsaved", Err: err, Message: fmt.Sprintf("the editor was asked whether %s has unsaved changes and did not answer (%v); nothing was written, so that none are lost. Try again, or ask the user whether the editor hangs", f.Path, err)}
	}
	if err != nil {
		return nil // not a file it knows: then it has no unsaved text of it either
	}
	switch {
	case !sameText(text, string(disk)):
		return &tools.Error{Kind: "unsaved", Message: fmt.Sprintf("%s has changes in the editor that are not on the disk; nothing was written, so that they are not lost. Ask the user to save (or reload) the file, then read it again and repeat the edit", f.Path)}
	case !sameText(f.Old, string(disk)):
		return &tools.Error{Kind: "stale", Message: fmt.Sprintf("%s changed since it was read; nothing was written. Read it again, then edit", f.Path)}
	}
	return nil
}

// writeFiles writes through fs/write_text_file what the editor sees exactly as the disk holds it, and the rest on the
// disk: an editor that changes line ends on the way would change lines nobody touched. All files are checked before the
// first is written; when one fails, those already written are put back.
func (s *Server) writeFiles(ctx context.Context, session string, set *change.Set, disk Applier) error {
	for _, f := range set.Files {
		if err := s.guard(ctx, session, f); err != nil {
			return err
		}
	}
	mine, rest := split(set, func(f change.File) bool { return f.Kind == change.Edit && s.exact(ctx, session, f) })
	if len(rest.Files) > 0 {
		if err := disk.Apply(ctx, rest); err != nil {
			return err
		}
		s.wroteDisk(rest)
	}
	for i, f := range mine.Files {
		if err := s.writeFile(ctx, session, f.Path, f.Old, f.New); err != nil {
			return s.putBack(ctx, session, mine.Files[:i], rest, disk, err)
		}
	}
	return nil
}

// exact reports whether the editor's text, the disk and the base are the same bytes, or the editor only lags behind
// what it wrote itself.
func (s *Server) exact(ctx context.Context, session string, f change.File) bool {
	disk, err := os.ReadFile(f.Path)
	if err != nil || string(disk) != f.Old {
		return false
	}
	text, err := s.readText(ctx, session, f.Path)
	if err != nil || text == f.Old {
		return err == nil
	}
	lags, byEditor := s.lagging.behind(f.Path, text, f.Old)
	return lags && byEditor
}

// writeFile writes one file through the editor, if it still is what it was a moment ago, and reads it back.
func (s *Server) writeFile(ctx context.Context, session, path, old, now string) error {
	if text, err := s.shownText(ctx, session, path, old); err != nil || text != old {
		return &tools.Error{Kind: "stale", Err: err, Message: fmt.Sprintf("%s changed in the editor just now; it was not written. Read it again, then edit", path)}
	}
	err := s.ask(ctx, protocol.MethodFsWriteTextFile, protocol.WriteTextFileRequest{SessionID: session, Path: path, Content: now}, nil)
	back, rerr := s.readText(ctx, session, path)
	if err == nil && rerr == nil && old != now && !sameText(back, now) {
		if disk, derr := os.ReadFile(path); derr == nil && string(disk) == now {
			s.lagging.wrote(path, old, now, true)
			if lags, _ := s.lagging.behind(path, back, now); lags {
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

// putBack restores what was written before cause.
func (s *Server) putBack(ctx context.Context, session string, written []change.File, rest *change.Set, disk Applier, cause error) error {
	ctx = context.WithoutCancel(ctx)
	var failed []error
	for _, f := range written {
		if err := s.writeFile(ctx, session, f.Path, f.New, f.Old); err != nil {
			failed = append(failed, err)
		}
	}
	if len(rest.Files) > 0 {
		back, err := rest.Undo(rest.ID+"-back", nil, func(path string) (string, bool) {
			b, err := os.ReadFile(path)
			return string(b), err == nil
		})
		if err == nil {
			err = disk.Apply(ctx, back)
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%w; what had been written before could not be put back: %v", cause, errors.Join(failed...))
	}
	return cause
}

func fileChanges(set *change.Set) []protocol.FileChange {
	out := []protocol.FileChange{}
	parts := excerpted(set)
	for i, f := range set.Files {
		x := protocol.FileChange{Excerpt: parts[i], URI: pathURI(f.Path), Kind: string(f.Kind), BaseVersion: f.BaseBuffer, BaseSha256: f.BaseHash, Hunks: []protocol.Hunk{}}
		if f.NewPath != "" {
			x.NewURI = pathURI(f.NewPath)
		}
		for _, h := range f.Hunks {
			x.Hunks = append(x.Hunks, protocol.Hunk{ID: h.ID, OldStart: int64(h.OldStart), OldLines: int64(h.OldLines), NewStart: int64(h.NewStart), NewLines: int64(h.NewLines)})
		}
		out = append(out, x)
	}
	return out
}

func changeDiagnostics(set *change.Set) *protocol.ChangeDiagnostics {
	d := set.Diagnostics
	if d == nil {
		return nil
	}
	problems := func(list []change.Problem) []protocol.Problem {
		out := []protocol.Problem{}
		for _, p := range list {
			out = append(out, protocol.Problem{Path: filepath.Clean(p.Path), Line: int64(p.Line), Column: int64(p.Column), Severity: p.Severity, Source: p.Source, Code: p.Code, Message: p.Message})
		}
		return out
	}
	return &protocol.ChangeDiagnostics{Certainty: string(d.Certainty), Reason: d.Reason, Introduced: problems(d.Introduced), Fixed: problems(d.Fixed), Unchanged: int64(d.Unchanged)}
}
