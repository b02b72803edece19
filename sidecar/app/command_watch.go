package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/checkpoint"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/search"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// commandWatch makes a change set of what a shell command did to the files of a project, so that it is shown, belongs
// to its turn and can be undone like an edit of the agent. Without it `sed -i` would be invisible to the review.
type commandWatch struct {
	session func(id string) (*agent.Session, bool)
	tree    *checkpoint.Tree                       // copies of the worktree's files, shared by its sessions
	whole   func(*change.Set) (*change.Set, error) // gives a stored set its texts
	buffers files.Buffers                          // nil without an editor
}

// watch makes the watch of one session; nil when nothing is stored. The tree belongs to the worktree: sessions share
// the copies of its files.
func (k *Changes) watch(root string, find *search.Searcher, buffers files.Buffers) builtin.CommandWatch {
	if k.ephemeral {
		return nil // nothing is stored, so nothing can be taken back
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.trees == nil {
		k.trees = map[string]*checkpoint.Tree{}
	}
	// The first session's search serves all of the worktree: they walk the same files.
	t := k.trees[root]
	if t == nil {
		t = &checkpoint.Tree{Root: root, Blobs: k.Blobs, List: find.FilesAndLinks}
		k.trees[root] = t
	}
	return &commandWatch{session: k.runtime.Session, tree: t, whole: k.Blobs.Load, buffers: buffers}
}

// Before implements builtin.CommandWatch: it copies what the command may write. The function that it returns compares
// after the command and records the change set. It is nil for a session that has ended.
func (w *commandWatch) Before(ctx context.Context, run builtin.CommandRun) func(context.Context) []string {
	s, ok := w.session(run.SessionID)
	if !ok {
		return nil
	}
	top := s.Top()
	// Sub-agents and other calls may write while the command runs. Their change sets have later numbers than this
	// one, and are subtracted below.
	seq := top.Last()
	// Texts of before the command: a file that has one of them afterwards was saved by the person, not written by the
	// command.
	unsaved := map[string]string{}
	if w.buffers != nil {
		for _, b := range w.buffers.Dirty() {
			unsaved[b.Path] = b.Text
		}
	}
	look := w.tree.Before(ctx, run.Writes)
	return func(ctx context.Context) []string {
		changes, uncaught := look.After(ctx)
		set := w.set(run, changes, w.writtenSince(ctx, top, seq), unsaved)
		if set.Uncaught = uncaught; len(set.Files) > 0 {
			_ = s.Beside(ctx, func(context.Context) error {
				s.RecordChange(run.CallID, change.Applied, set)
				return nil
			})
		}
		if uncaught != "" {
			s.Notice("info", "The command "+shortened(run.Command)+" cannot be undone in full: "+uncaught)
		}
		return nil // the bash tool itself tells the model which files have changed
	}
}

// shortened is the first line of a command for a title, at most 60 characters, in quotation marks.
func shortened(command string) string {
	line, _, more := strings.Cut(strings.TrimSpace(command), "\n")
	short := textutil.Shorten(line, 60)
	if more && short == line {
		short += "…"
	}
	return "“" + short + "”"
}

// writtenSince are the files that other change sets have written since an event, each as the last of them left it:
// the command that ran meanwhile did not do that. A rename counts as a deletion and a creation.
func (w *commandWatch) writtenSince(ctx context.Context, s *agent.Session, seq int64) map[string]change.File {
	out := map[string]change.File{}
	_ = s.Events(ctx, seq, func(e agent.Event) error {
		if e.Type != agent.EventChange {
			return nil
		}
		d, ok := agent.Value[agent.ChangeData](e)
		if !ok || d.State != change.Applied || d.Set == nil {
			return nil
		}
		// A stored set has references in place of its texts; one whose contents are gone cannot be subtracted.
		set, err := w.whole(d.Set)
		if err != nil {
			return nil
		}
		for _, f := range set.Files {
			if out[f.Path] = f; f.Kind == change.Rename {
				out[f.NewPath] = change.File{Path: f.NewPath, Kind: change.Create, New: f.New}
				f.Kind = change.Delete
				out[f.Path] = f
			}
		}
		return nil
	})
	return out
}

// linkChange is what a command did to a symbolic link, or to a file that a link has replaced or that has replaced a
// link. ok is false when nothing has changed.
func linkChange(c checkpoint.Change) (change.File, bool) {
	// as gives a link's target as its text: change.Link is the encoding by which the review knows it.
	as := func(b []byte, mode os.FileMode) (text, encoding string, perm uint32) {
		if mode == os.ModeSymlink {
			return string(b), change.Link, 0
		}
		text, kind := files.Decode(b)
		return text, string(kind), uint32(mode)
	}
	f := change.File{Path: c.Path, Kind: change.Edit, Binary: true}
	old, oldKind, oldMode := as(c.Before, c.OldMode)
	now, nowKind, newMode := as(c.After, c.NewMode)
	switch {
	case !c.Existed && !c.Exists:
		return f, false
	case !c.Existed:
		f.Kind, f.New, f.Encoding = change.Create, now, nowKind
	case !c.Exists:
		f.Kind, f.Old, f.Encoding = change.Delete, old, oldKind
	default:
		f.Old, f.New, f.Encoding, f.OldEncoding = old, now, nowKind, oldKind
		f.Mode, f.OldMode = newMode, oldMode
	}
	return f, f.Old != f.New || oldKind != nowKind
}

// set is what the command did, as a change set. told are the files that other change sets have written meanwhile, see writtenSince; unsaved
// are the texts of buffers before the command, by path. A file that has its buffer's text afterwards was saved by the person and is left out.
func (w *commandWatch) set(run builtin.CommandRun, changes []checkpoint.Change, told map[string]change.File, unsaved map[string]string) *change.Set {
	var list []change.File
	for _, c := range changes {
		f := change.File{Path: c.Path, Kind: change.Edit, OldMode: uint32(c.OldMode)}
		if c.OldMode == os.ModeSymlink || c.NewMode == os.ModeSymlink {
			if f, ok := linkChange(c); ok {
				list = append(list, f)
			}
			continue
		}
		old, oldKind := files.Decode(c.Before)
		now, nowKind := files.Decode(c.After)
		f.Old, f.New, f.Encoding = old, now, string(nowKind)
		if !c.Exists {
			f.Encoding = string(oldKind)
		}
		// Text with zero bytes, or of another encoding than before, is taken or left as a whole.
		f.Binary = strings.Contains(old, "\x00") || strings.Contains(now, "\x00") || c.Existed && c.Exists && oldKind != nowKind
		if f.Binary && c.Existed && c.Exists {
			f.OldEncoding = string(oldKind)
		}
		// The command began from what the other change set left, so only the difference to that is its own.
		if earlier, ok := told[c.Path]; ok {
			c.Existed = earlier.Kind != change.Delete
			f.Old = earlier.New
		}
		if text, ok := unsaved[c.Path]; ok && c.Exists && text == now {
			continue // the person saved it meanwhile
		}
		switch {
		case !c.Existed && !c.Exists:
			continue
		case !c.Existed:
			f.Kind, f.Old = change.Create, ""
			if c.NewMode&0o111 != 0 {
				f.Mode = uint32(c.NewMode)
			}
		case !c.Exists:
			f.Kind, f.New = change.Delete, ""
		// A change of the mode alone counts as well: chmod +x is what some commands are for.
		case c.OldMode != c.NewMode && c.OldMode != 0:
			f.Mode = uint32(c.NewMode)
		case f.Old == f.New:
			continue
		}
		f.BaseHash = files.Hash(c.Before)
		list = append(list, f)
	}
	set := change.New("chg_"+rand.Text(), list)
	set.Source, set.Tool, set.SessionID, set.CallID = change.ByCommand, "bash", run.SessionID, run.CallID
	if set.Title = fmt.Sprintf("%s of %s", textutil.Plural(len(list), "file"), shortened(run.Command)); len(list) == 1 {
		set.Title = filepath.Base(list[0].Path) + " by " + shortened(run.Command)
	}
	return set
}
