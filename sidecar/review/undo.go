package review

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/tools/checkpoint"
)

// UndoLast undoes a prompt, files and conversation: the one with that id, else the last one of the conversation. It
// returns what was done, for people. It fails with InvalidParams when there is no prompt to undo.
func (r *Reviewer) UndoLast(ctx context.Context, id string) (string, error) {
	r.ledger.read(func(l *ledger) {
		last := l.point(l.reverted)
		for _, p := range slices.Backward(l.points) {
			// After an undo the last prompt is the one before the restored state, so that /undo goes back one prompt
			// each time. Lost prompts are not in the conversation.
			if id == "" && p.prompt != nil && !p.lost && (last == nil || p.seq < last.seq) {
				id = p.id
			}
		}
	})
	if id == "" {
		return "", rpc.InvalidParams("nothing to undo: no prompt is left in this conversation")
	}
	return r.restoreTo(ctx, id)
}

// RedoLast undoes the last UndoLast or restore, unless a prompt has followed: the conversation then has another past,
// and the files other changes. It returns what was done, for people.
func (r *Reviewer) RedoLast(ctx context.Context) (string, error) {
	id := ""
	r.ledger.read(func(l *ledger) {
		taken := map[string]bool{}
		for _, p := range slices.Backward(l.points) {
			switch {
			case p.prompt != nil:
				return // a prompt has followed: the undo before it is final
			// A redo is a restore itself. What it has undone is passed over, so that several undos are redone one
			// after the other.
			case p.restore.Undoes != "":
				taken[p.restore.Undoes] = true
			case !taken[p.id]:
				id = p.id
				return
			}
		}
	})
	if id == "" {
		return "", rpc.InvalidParams("nothing to redo: nothing was undone since the last prompt")
	}
	return r.restoreTo(ctx, id)
}

// restoreTo restores files and conversation to a checkpoint and describes the result in Markdown: what was done, each file that was written
// or left with the reason, and how to undo it.
func (r *Reviewer) restoreTo(ctx context.Context, id string) (string, error) {
	done, err := r.Restore(ctx, Restoring{Checkpoint: id, Scope: scopeBoth})
	if err != nil {
		return "", err
	}
	var d agent.RestoreData
	r.ledger.read(func(l *ledger) {
		if p := l.point(done.Undo); p != nil {
			d = *p.restore
		}
	})
	var b strings.Builder
	if b.WriteString("Nothing to restore: everything is as it was at this checkpoint."); done.Undo != "" {
		b.Reset()
		fmt.Fprintf(&b, "%s: %s.", d.Title, done.Plan)
	}
	for _, o := range done.Plan.Outcomes {
		// Paths in the session's folder are shown relative, others whole.
		name := o.Path
		if rel, err := filepath.Rel(r.session.Info().Cwd, o.Path); err == nil && filepath.IsLocal(rel) {
			name = rel
		}
		if o.Status != checkpoint.Unchanged {
			fmt.Fprintf(&b, "\n- %s: %s%s", name, o.Status, Because(o.Reason))
		}
	}
	// A redo is not undone by /redo.
	if d.Undoes == "" && done.Undo != "" {
		b.WriteString("\n\n/redo undoes this.")
	}
	return b.String() + "\n", nil
}
