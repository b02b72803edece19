package review

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/checkpoint"
)

// Scopes of a restore. An empty scope means both, or files when single files or hunks are named: the conversation
// cannot be taken back in part.
const (
	ScopeFiles        = "files"
	ScopeConversation = "conversation"
	scopeBoth         = "both"
)

// checkpoints are the states that can be restored, each with what changed until the next one.
func (l *ledger) checkpoints() []protocol.Checkpoint {
	var out []protocol.Checkpoint
	applied := l.applied()
	for i, p := range l.points {
		c := protocol.Checkpoint{ID: p.id, Kind: "prompt", Time: p.time.UTC().Format(time.RFC3339Nano), Title: p.title, Files: []protocol.CheckpointFile{}, Current: l.current() == p.id}
		if p.prompt != nil {
			c.MessageID = p.id
		} else {
			c.Kind = "restore"
		}
		for _, x := range applied {
			// What was written between this checkpoint and the next is listed with this one.
			if x.seq > p.seq && (i+1 == len(l.points) || x.seq < l.points[i+1].seq) {
				c.Files = addFiles(c.Files, x.Set)
			}
		}
		out = append(out, c)
	}
	return out
}

// current is the checkpoint that was restored last, if nothing has happened since; else "".
func (l *ledger) current() string {
	// A prompt has followed, so the state is not that of the checkpoint any more.
	if !l.fresh {
		return ""
	}
	for _, p := range slices.Backward(l.points) {
		if p.restore != nil {
			return p.restore.Checkpoint
		}
	}
	return ""
}

// addFiles counts the files of a set to those of a checkpoint, apart for the agent, commands and the person.
func addFiles(list []protocol.CheckpointFile, set *change.Set) []protocol.CheckpointFile {
	source := string(set.Source)
	if set.Source == change.ByAgent {
		source = "agent"
	}
	for _, f := range set.Files {
		uri := editors.PathURI(f.Path)
		// One file has an entry for each source: the editor shows apart what the agent and what a command has
		// changed.
		i := slices.IndexFunc(list, func(c protocol.CheckpointFile) bool { return c.URI == uri && c.Source == source })
		if i < 0 {
			c := protocol.CheckpointFile{URI: uri, Kind: string(f.Kind), Source: source}
			if f.NewPath != "" {
				c.NewURI = editors.PathURI(f.NewPath)
			}
			i, list = len(list), append(list, c)
			// A later edit does not change what happened to the file as a whole: a created file stays a created one.
		} else if f.Kind == change.Delete || f.Kind == change.Rename {
			list[i].Kind = string(f.Kind)
			if f.NewPath != "" {
				list[i].NewURI = editors.PathURI(f.NewPath)
			}
		}
		added, removed := f.Stat()
		list[i].Added, list[i].Removed = addCount(list[i].Added, added), addCount(list[i].Removed, removed)
	}
	return list
}

// addCount returns the sum as a new pointer; nil counts as 0. On the wire a count that is absent is not 0.
func addCount(n *int64, m int) *int64 {
	sum := int64(m)
	if n != nil {
		sum += *n
	}
	return &sum
}

// Restoring is a request to restore a checkpoint. Paths or Hunks choose some of the files; both empty mean all.
type Restoring struct {
	Checkpoint string
	// Scope is one of the constants above or "", which check replaces.
	Scope string
	Paths []string
	Hunks []string // of turns
	// DryRun makes the plan and writes nothing: an editor shows it before the person confirms.
	DryRun bool
}

// Restored is the result of a restore.
type Restored struct {
	Plan   *checkpoint.Plan // nil: files were not asked for
	Undo   string           // the checkpoint that undoes it; empty: nothing was done
	Prompt []provider.Part  // the prompt that the conversation is now before; an editor offers it again
}

// RestoredFiles is what a plan does to each file, as the protocol tells it: status, reason, and lines added and removed.
func RestoredFiles(p *checkpoint.Plan) []protocol.RestoredFile {
	out := []protocol.RestoredFile{}
	for _, o := range p.Outcomes {
		f := protocol.RestoredFile{URI: editors.PathURI(o.Path), Status: string(o.Status), Reason: o.Reason}
		for _, m := range p.Set.Files {
			if m.Path == o.Path {
				a, r := m.Stat()
				f.Added, f.Removed = addCount(nil, a), addCount(nil, r)
			}
		}
		out = append(out, f)
	}
	return out
}

// check validates a request and fills in the scope.
func (w *Restoring) check() error {
	if some := len(w.Paths)+len(w.Hunks) > 0; w.Scope == "" {
		if w.Scope = scopeBoth; some {
			w.Scope = ScopeFiles
		}
	} else if some && w.Scope != ScopeFiles {
		return rpc.InvalidParams("scope: with uris or hunks only files can be restored, not %q", w.Scope)
	}
	if !slices.Contains([]string{ScopeFiles, ScopeConversation, scopeBoth}, w.Scope) {
		return rpc.InvalidParams("scope: unknown scope %q; known are files, conversation, both", w.Scope)
	}
	return nil
}

// Restore restores files, the conversation or both to a checkpoint. The restore is a checkpoint itself, so it can be
// undone. Files are compared with what the agent wrote: later text of the person is merged, and a file with a
// conflict is left as it is.
func (r *Reviewer) Restore(ctx context.Context, w Restoring) (*Restored, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// The checkpoint is copied: the ledger may change while the files are compared.
	var point checkpointView
	d := agent.RestoreData{ID: "rst_" + rand.Text(), Checkpoint: w.Checkpoint, Conversation: w.Scope != ScopeFiles}
	var err error
	r.ledger.read(func(l *ledger) {
		p := l.point(w.Checkpoint)
		if p == nil {
			err = protocol.NotFound("no checkpoint %q in this session; _pillion/checkpoint/list shows them", w.Checkpoint)
			return
		}
		point, d.Was, d.Title = *p, l.reverted, "Back to before “"+p.title+"”"
		// Restoring the checkpoint of a restore undoes that restore: the conversation goes back to where it stood
		// before, which may be its end ("").
		if d.MessageID = p.id; p.restore != nil {
			d.MessageID, d.Undoes, d.Title = p.restore.Was, p.id, "Undo: "+p.title
		}
		// The events of a lost prompt are out of the history that the model gets, and nothing brings them back.
		if at := l.point(d.MessageID); d.Conversation && at != nil && at.lost {
			err = rpc.InvalidParams("checkpointId: the conversation was continued without this prompt, so it cannot be restored; restore the files only (scope files)")
		}
	})
	if err != nil {
		return nil, err
	}
	j := job{id: "chg_" + rand.Text(), title: d.Title, after: point.seq, want: checkpoint.Want{Paths: w.Paths}}
	if len(w.Hunks) > 0 {
		if j.want.Refs, err = r.refs(w.Hunks); err != nil {
			return nil, err
		}
	}
	out := &Restored{}
	if point.prompt != nil && d.Conversation {
		out.Prompt = point.prompt.Parts
	}
	if w.Scope != ScopeConversation {
		if r.files == nil {
			return nil, errNothingWritten
		}
		if out.Plan, err = r.plan(j); err != nil {
			return nil, err
		}
	}
	// An idle restore must not leave a checkpoint: /redo would find it and do nothing.
	idle := out.Plan == nil || len(out.Plan.Set.Files) == 0
	if w.DryRun || idle && (!d.Conversation || d.MessageID == d.Was) {
		return out, nil
	}
	if !idle {
		d.ChangeSet = j.id
	}
	// write compares with the files again: this plan may be out of date by the time the session lets the restore
	// begin.
	err = r.session.Restore(ctx, d, func(ctx context.Context, d *agent.RestoreData) error {
		if idle {
			return nil
		}
		p, err := r.write(ctx, j)
		if err == nil {
			out.Plan = p
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Undo = d.ID
	return out, nil
}

// isStale reports the errors of the writer that mean: a file was written, or created, between the comparison and the write. Another attempt
// may succeed.
func isStale(err error) bool {
	var t *tools.Error
	return errors.As(err, &t) && (t.Kind == "stale" || t.Kind == "exists")
}
