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

// commandWatch turns what a shell command did to the files of a project into a change set, so that it is shown, belongs to its turn and can
// be undone like an edit of the agent. Without it the review would not see a `sed -i`.
type commandWatch struct {
	session func(id string) (*agent.Session, bool)
	tree    *checkpoint.Tree                       // copies of the worktree's files, shared by its sessions
	whole   func(*change.Set) (*change.Set, error) // loads the texts of a stored set
	buffers files.Buffers                          // nil without an editor
}

// watch makes the watch of one session; nil when nothing is stored. Sessions of one worktree share its tree of copied files.
func (k *Changes) watch(root string, find *search.Searcher, buffers files.Buffers) builtin.CommandWatch {
	if k.ephemeral {
		return nil // nothing is stored, so nothing can be undone
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.trees == nil {
		k.trees = map[string]*checkpoint.Tree{}
	}
	// All sessions of the worktree use the first one's search, because they walk the same files.
	t := k.trees[root]
	if t == nil {
		t = &checkpoint.Tree{Root: root, Blobs: k.Blobs, List: find.FilesAndLinks}
		k.trees[root] = t
	}
	return &commandWatch{session: k.runtime.Session, tree: t, whole: k.Blobs.Load, buffers: buffers}
}

// Before implements builtin.CommandWatch: it copies what the command may write. The returned function compares the files after the command
// and records the change set; it is nil for a session that has ended.
func (w *commandWatch) Before(ctx context.Context, run builtin.CommandRun) func(context.Context) []string {
	s, ok := w.session(run.SessionID)
	if !ok {
		return nil
	}
	top := s.Top()
	// Sub-agents and other calls may write while the command runs. Their change sets have higher event numbers and are subtracted below.
	seq := top.Last()
	// Unsaved texts before the command: a file that has this text afterwards was saved by the person, not written by the command.
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

// shortened returns the first line of a command for a title, at most 60 characters, in quotation marks.
func shortened(command string) string {
	line, _, more := strings.Cut(strings.TrimSpace(command), "\n")
	short := textutil.Shorten(line, 60)
	if more && short == line {
		short += "…"
	}
	return "“" + short + "”"
}

// writtenSince returns the files that other change sets have written since an event, in their last state: the command that ran meanwhile
// did not write that. A rename counts as a deletion and a creation.
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
		// A stored set has references instead of texts; one whose contents are gone cannot be subtracted.
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

// sides returns a file before and after a command, for change.Compare.
func sides(c checkpoint.Change) (before, after change.Side) {
	side := func(exists bool, b []byte, mode os.FileMode) change.Side {
		if !exists {
			return change.Side{}
		}
		if mode == os.ModeSymlink {
			return change.Side{Exists: true, Text: string(b), Encoding: change.Link}
		}
		text, encoding := files.Decode(b)
		return change.Side{Exists: true, Text: text, Encoding: string(encoding), Mode: uint32(mode)}
	}
	return side(c.Existed, c.Before, c.OldMode), side(c.Exists, c.After, c.NewMode)
}

// set returns what the command did as a change set. told are the files that other change sets have written meanwhile, see writtenSince;
// unsaved are the texts of buffers before the command, by path. A file that has its buffer's text afterwards was saved by the person and is
// left out.
func (w *commandWatch) set(run builtin.CommandRun, changes []checkpoint.Change, told map[string]change.File, unsaved map[string]string) *change.Set {
	var list []change.File
	for _, c := range changes {
		before, after := sides(c)
		// The command started from what the other change set wrote, so only the difference from that is its own.
		if earlier, ok := told[c.Path]; ok && before.Encoding != change.Link && after.Encoding != change.Link {
			before.Exists, before.Text = earlier.Kind != change.Delete, earlier.New
		}
		if text, ok := unsaved[c.Path]; ok && after.Exists && after.Encoding != change.Link && text == after.Text {
			continue // the person saved it meanwhile
		}
		f, ok := change.Compare(c.Path, before, after, uint32(umaskOnce()))
		if !ok {
			continue
		}
		if !f.Links() {
			f.BaseHash = files.Hash(c.Before)
		}
		list = append(list, f)
	}
	set := change.New("chg_"+rand.Text(), list)
	set.Source, set.Tool, set.SessionID, set.CallID = change.ByCommand, "bash", run.SessionID, run.CallID
	if set.Title = fmt.Sprintf("%s of %s", textutil.Plural(len(list), "file"), shortened(run.Command)); len(list) == 1 {
		set.Title = filepath.Base(list[0].Path) + " by " + shortened(run.Command)
	}
	return set
}
