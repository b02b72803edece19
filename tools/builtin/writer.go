package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/diff"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/paths"
)

// maxTries is how often carryOut compares and writes while a person types in the same file. When the last write is stale as well, the
// call fails.
const maxTries = 3

// carriedOut is a set that was written. It may differ from the approved one in lines that others changed meanwhile, and in what a
// formatter changed.
type carriedOut struct {
	set   *change.Set // as written: merged, formatted
	notes []string    // for the model
}

// Writer is the only way to the disk and to the editor's buffers: it takes decided sets, compares them with the files under the locks
// of all their paths, and writes all of a set or nothing.
type Writer struct {
	workspace
	Tracker   *files.Tracker
	Locks     *files.Locks  // shared by all writers of the process; nil: there is no other writer
	Applier   Applier       // writes through the editor; nil: straight to the disk
	Journal   files.Journal // nil: a crash between two files is not recovered
	Formatter Formatter     // nil: none
	Bridge    Bridge        // nil: no language servers
}

// NewWriter is the writer of a session's environment.
func NewWriter(env Env) *Writer {
	return &Writer{workspace: env.workspace(), Tracker: env.Tracker, Locks: env.Locks, Applier: env.Applier, Journal: env.Journal, Formatter: env.Format, Bridge: env.Bridge}
}

// Check asks the language servers once what a change would do to the problems. It waits for them as long as for a
// proposal's update (30 s) or until ctx ends; nil where there are none.
func (w *Writer) Check(ctx context.Context, set *change.Set) *change.Verdict {
	if w.Bridge == nil {
		return nil
	}
	return checker{Bridge: w.Bridge}.checkOnce(ctx, proposals(set))
}

// carryOut writes what was accepted, under the locks of all its paths. It calls begin with the final text before each attempt to
// write it: that records the state "writing", so that after a crash the next start can compare the files with this text.
func (w *Writer) carryOut(ctx context.Context, d *change.Decided, p proposal, begin func(*change.Set)) (*carriedOut, error) {
	led := map[string]string{} // real path of each path at the time of the approval
	for _, m := range p.members {
		led[m.Path] = m.base.Real
		if m.to != nil {
			led[m.to.path] = m.to.real
		}
	}
	unlock, err := w.lock(ctx, d.Set)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for try := 1; ; try++ {
		if err := checkUnmoved(d.Set, led); err != nil {
			return nil, err
		}
		set, notes, err := w.rebase(judged(d.Set, led))
		if err != nil {
			return nil, err
		}
		notes = append(notes, w.format(ctx, set)...)
		if err := checkUnmoved(set, led); err != nil { // a formatter may run for seconds
			return nil, err
		}
		noteFolders(set)
		begin(set)
		err = w.write(ctx, set)
		if errors.Is(err, files.ErrStale) && try < maxTries {
			continue // a person typed between the comparison and the write
		}
		if err != nil {
			return nil, writeError(err)
		}
		return &carriedOut{set, append(notes, w.track(set)...)}, nil
	}
}

// judged is the set with the places that the decision was about: writing goes there or fails, whatever the paths lead to by then.
func judged(set *change.Set, led map[string]string) *change.Set {
	out := *set
	out.Files = slices.Clone(set.Files)
	for i := range out.Files {
		f := &out.Files[i]
		f.Real = led[f.Path]
		if f.NewPath != "" {
			f.NewReal = led[f.NewPath]
		}
	}
	return &out
}

// checkUnmoved fails when the links of a path lead elsewhere than when it was approved: a program may have put a symbolic link there
// meanwhile, and the approval was for another file. led has the real path of each path at that time.
func checkUnmoved(set *change.Set, led map[string]string) error {
	links := map[string]bool{}
	for _, f := range set.Files {
		links[f.Path] = f.Links()
	}
	for _, path := range set.Paths() {
		resolve := files.Real
		if links[path] { // the change is of the link, wherever it leads
			resolve = nameAt
		}
		now, err := resolve(path)
		if err != nil {
			return pathError(path, err)
		}
		if now != led[path] {
			return &tools.Error{Kind: "stale", Message: fmt.Sprintf("%s led to %s when it was allowed and leads to %s now; nothing was written", path, led[path], now)}
		}
	}
	return nil
}

// lock takes the locks of all real paths of a set, so that two names of one file are one lock. Locks
// are taken in one order by files.Locks, so two sets cannot block each other. The caller unlocks.
func (w *Writer) lock(ctx context.Context, set *change.Set) (func(), error) {
	if w.Locks == nil {
		return func() {}, nil
	}
	var paths []string
	for _, p := range set.Paths() {
		r, err := files.Real(p)
		if err != nil {
			return nil, pathError(p, err)
		}
		paths = append(paths, r)
	}
	return w.Locks.Lock(ctx, paths...)
}

// rebase compares every base with the file as it is now. A change elsewhere in the file is merged and
// told to the model; one in the same lines is an error that shows them. The caller holds the locks.
func (w *Writer) rebase(set *change.Set) (*change.Set, []string, error) {
	out := *set
	out.Files, out.Verdict = slices.Clone(set.Files), nil // what is written may be another text than was checked
	var notes []string
	for i := range out.Files {
		f := &out.Files[i]
		if f.Links() {
			if err := rebaseLink(f); err != nil {
				return nil, nil, err
			}
			continue
		}
		if f.Real == "" { // an undo, which is decided by what is there now
			r, err := files.Real(f.Path)
			if err != nil {
				return nil, nil, pathError(f.Path, err)
			}
			f.Real = r
		}
		now, err := files.OpenLike(f.Path, f.Real, f.Old, w.Buffers)
		if err != nil {
			return nil, nil, pathError(f.Path, err)
		}
		// A document that was never saved exists as far as the person can see.
		there := now.Exists || now.Dirty
		switch {
		case f.Kind == change.Create && there:
			return nil, nil, &tools.Error{Kind: "exists", Message: f.Path + " was created by another program meanwhile; nothing was written. Read it, then change it with edit."}
		case f.Kind != change.Create && !there:
			return nil, nil, &tools.Error{Kind: "stale", Message: "File " + f.Path + " was deleted meanwhile; nothing was written."}
		case f.Kind != change.Create && now.Text != f.Old:
			moved, err := f.Rebase(now.Text)
			if err != nil {
				return nil, nil, &tools.Error{Kind: "stale", Err: err, Message: fmt.Sprintf("File %s changed in the same lines while the user decided; nothing was written.%s", f.Path, w.describeChange(now, f.Old))}
			}
			notes = append(notes, fmt.Sprintf("%s had been changed in other lines; your change was merged with that:\n%s",
				w.rel(f.Path), capLines(diff.Unified(w.rel(f.Path), w.rel(f.Path), f.Old, now.Text), 100)))
			moved.Real, moved.NewReal = f.Real, f.NewReal
			*f = moved
		}
		f.BaseHash, f.BaseBuffer = now.Hash, now.Version
		if there && !(f.Binary && f.Encoding != "") { // a binary may come to be another kind of bytes
			f.Encoding = string(now.Encoding)
		}
	}
	return &out, notes, nil
}

// describeChange describes for the model what changed since old. When the description is complete, the file counts as read, because
// the model can work out its text.
func (w *Writer) describeChange(now *files.File, old string) string {
	text := diff.Unified(w.rel(now.Path), w.rel(now.Path), old, now.Text)
	short, all := firstLines(text, 200)
	if !all {
		return " Read it again. What changed begins with:\n" + short
	}
	w.Tracker.Read(now)
	return " It is now known to you with this difference; make your change against the present text:\n" + short
}

// firstLines keeps the first n lines and at most 8 KiB of a text, since lines may be very long; all reports that nothing was cut.
func firstLines(text string, n int) (kept string, all bool) {
	l := diff.Lines(text)
	s := strings.Join(l[:min(n, len(l))], "")
	if len(s) > 8<<10 {
		s = strings.ToValidUTF8(s[:8<<10], "")
	}
	return strings.TrimRight(s, "\n"), s == text
}

// capLines is firstLines with a mark where it cuts.
func capLines(text string, n int) string {
	s, all := firstLines(text, n)
	if !all {
		s += "\n… (cut)"
	}
	return s
}

// write lets the editor apply the set. Symbolic links go to the disk: no editor protocol can make them. The files come first,
// so that a failing editor leaves no link to a file that was not written.
func (w *Writer) write(ctx context.Context, set *change.Set) error {
	if w.Applier == nil {
		return w.WriteDisk(ctx, set)
	}
	links, rest := splitLinks(set)
	if len(rest.Files) > 0 {
		if err := w.Applier.Apply(ctx, rest); err != nil {
			return err
		}
	}
	if len(links.Files) > 0 {
		return w.WriteDisk(ctx, links)
	}
	return nil
}

// WriteDisk writes a set's new texts to the disk, all or nothing, in the files' own encodings. BaseHash
// of each member must be the hash of what is there. An Applier calls it for files that no editor has
// open; the caller holds the locks.
func (w *Writer) WriteDisk(ctx context.Context, set *change.Set) error {
	if err := w.checkRootExists(set); err != nil {
		return err
	}
	var ops []files.Op
	for _, f := range set.Files {
		// Without an Applier the editor's buffer cannot be changed. Writing the file under an unsaved buffer would lose one of the
		// two texts when the person saves.
		if w.Applier == nil && w.Buffers != nil {
			if w.dirty(place{path: f.Path, real: real(f.Path)}) {
				return fmt.Errorf("%s has unsaved changes in the editor, which cannot take edits; save or close it first", f.Path)
			}
		}
		if f.Links() {
			ops = append(ops, linkOps(&f)...)
			continue
		}
		op := files.Op{Kind: files.Write, Path: f.Path, Real: f.Real, Base: f.BaseHash, Mode: fs.FileMode(f.Mode)}
		switch f.Kind {
		case change.Delete:
			op.Kind = files.Remove
		default:
			enc, text := files.Encoding(f.Encoding), f.New
			// A stored set of an earlier version has no encoding: the file keeps its own.
			if enc == "" && f.Kind != change.Create {
				now, err := files.Open(f.Path, nil)
				if err != nil {
					return err
				}
				enc = now.Encoding
			}
			// A byte order mark that the model wrote becomes the file's encoding; as a character it would be there twice after the
			// next edit.
			if t, ok := strings.CutPrefix(text, "\ufeff"); ok && f.Kind == change.Create {
				text, enc = t, files.UTF8BOM
			}
			var err error
			if op.Data, err = files.Encode(text, enc); err != nil {
				return fmt.Errorf("%s: %w", f.Path, err)
			}
		}
		if f.Kind == change.Rename {
			op.Kind, op.NewPath, op.NewReal = files.Move, f.NewPath, f.NewReal
			// A plain move: the bytes stay as they are, whatever their encoding.
			if f.New == f.Old && f.Mode == 0 {
				op.Data = nil
			}
		}
		ops = append(ops, op)
	}
	return files.Commit(ctx, ops, w.Journal)
}

// checkRootExists refuses to write into a project whose folder does not exist any more: an unmounted disk or
// a deleted worktree would come back as a folder with one file in it.
func (w *Writer) checkRootExists(set *change.Set) error {
	root := w.root()
	if root == "" {
		return nil
	}
	if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, path := range set.Paths() {
		if paths.Within(root, path) {
			return &tools.Error{Kind: "root_missing", Message: "the project folder " + root + " does not exist any more; nothing was written. Ask the user what became of it."}
		}
	}
	return nil
}

// real is files.Real for a path that was resolved before. On an error it is the path itself; the write of such a path fails anyway.
func real(path string) string {
	if r, err := files.Real(path); err == nil {
		return r
	}
	return path
}

// Apply writes a set that the person already decided on, such as an undo, and returns it as it was written. It compares the bases
// under lock first. It does not update the Tracker, on purpose: the model's next edit of these files is then told what changed.
func (w *Writer) Apply(ctx context.Context, set *change.Set) (*change.Set, error) {
	unlock, err := w.lock(ctx, set)
	if err != nil {
		return nil, err
	}
	defer unlock()
	moved, _, err := w.rebase(set)
	if err != nil {
		return nil, err
	}
	noteFolders(moved)
	if err := w.write(ctx, moved); err != nil {
		return nil, writeError(err)
	}
	dropFolders(moved)
	return moved, nil
}

// noteFolders records which folders are created with the files of a set, so that undo can remove them
// again.
func noteFolders(set *change.Set) {
	for i := range set.Files {
		if f := &set.Files[i]; f.Kind == change.Create {
			f.Folders = files.MissingDirs(f.Path)
		}
	}
}

// dropFolders removes the folders that were created with files that are deleted now, unless something
// else is in them.
func dropFolders(set *change.Set) {
	for _, f := range set.Files {
		if f.Kind != change.Delete {
			continue
		}
		// Innermost first. os.Remove fails for a folder that is not empty, which ends the loop.
		for _, dir := range slices.Backward(f.Folders) {
			if info, err := os.Lstat(dir); err != nil || !info.IsDir() || os.Remove(dir) != nil {
				break
			}
		}
	}
}

// Present is the file's text as the person sees it, see change.Present. A path that cannot be opened (a folder, a device, a file that
// is too large) exists with an empty text: undo then finds a conflict and does not overwrite it.
func (w *Writer) Present(path string) (text string, exists bool) {
	f, err := files.Open(path, w.Buffers)
	if err != nil {
		return "", true
	}
	return f.Text, f.Exists || f.Dirty
}
