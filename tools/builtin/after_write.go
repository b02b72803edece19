package builtin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/diff"
	"github.com/pillion-dev/pillion/tools/files"
)

// track records in the Tracker what the session knows of the files after a write, and returns a note for each file that differs
// from what was written. An editor may change a text while it applies it (format on save, a final newline, another line ending);
// without the note the model's next oldString would not be found.
func (w *Writer) track(set *change.Set) (notes []string) {
	for _, f := range set.Files {
		path := f.Path
		if f.Kind == change.Rename || f.Kind == change.Delete {
			w.Tracker.Forget(real(f.Path))
			path = f.NewPath
		}
		if path == "" {
			continue
		}
		// Without an editor the file has exactly this text. A byte order mark is not part of the text, see files.Decode.
		if w.Applier == nil {
			w.Tracker.Know(real(path), strings.TrimPrefix(f.New, "\ufeff"))
			continue
		}
		now, err := files.OpenLike(path, real(path), f.New, w.Buffers)
		if err != nil || !now.Exists && !now.Dirty {
			continue
		}
		w.Tracker.Read(now)
		// The change is in an editor's buffer only. Without the note the model runs the tests on the old file and looks for a
		// mistake in its change.
		if now.Dirty {
			notes = append(notes, w.rel(path)+" is open in the user's editor with unsaved changes: your change is there, but not on disk before the user saves, so commands do not see it yet.")
		}
		if want := strings.TrimPrefix(f.New, "\ufeff"); now.Text != want {
			notes = append(notes, fmt.Sprintf("The editor changed %s further when it was written:\n%s",
				w.rel(path), capLines(diff.Unified(w.rel(path), w.rel(path), want, now.Text), 100)))
		}
	}
	return notes
}

// format runs the configured formatters on the accepted texts before they are written, so that one write and one undo step have
// both. A formatter that fails does not fail the edit: the text is the one that the person approved. Long diffs and errors are cut,
// because they stay in the model's context.
func (w *Writer) format(ctx context.Context, set *change.Set) (notes []string) {
	if w.Formatter == nil {
		return nil
	}
	for i := range set.Files {
		f := &set.Files[i]
		path := f.Path
		if f.Kind == change.Rename {
			path = f.NewPath
		}
		if f.Kind == change.Delete || f.New == f.Old {
			continue
		}
		text, name, ok, err := w.Formatter.Format(ctx, path, f.New)
		switch {
		case err != nil && !errors.Is(err, context.Canceled):
			notes = append(notes, fmt.Sprintf("The formatter %s failed on %s; the file was written without formatting: %s", name, w.rel(path), capLines(err.Error(), 10)))
		case ok && err == nil && text != f.New:
			notes = append(notes, fmt.Sprintf("The formatter %s changed %s; quote these lines in their present form:\n%s",
				name, w.rel(path), capLines(diff.Unified(w.rel(path), w.rel(path), f.New, text), 100)))
			*f = f.With(text)
		}
	}
	return notes
}
