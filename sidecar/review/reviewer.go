package review

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/checkpoint"
)

// Reviewer is a session's changes after the fact, for an editor or for the command line: what the person keeps, undoes
// and restores. Whatever it writes goes the way of all changes, and is a change set of its own.
type Reviewer struct {
	session *agent.Session
	// files belongs to the session's tools, so that an undo passes the same locks and the same journal as an edit.
	files  Files // nil: nothing can be written
	desk   *Desk
	mu     *sync.Mutex // one decision at a time, whoever decides
	ledger *Ledger
}

// Changes are the session's change sets; see Ledger.Changes.
func (r *Reviewer) Changes() []protocol.ChangeInfo { return r.ledger.Changes() }

// Checkpoints are the states that the session can be taken back to.
func (r *Reviewer) Checkpoints() []protocol.Checkpoint { return r.ledger.Checkpoints() }

// whole gives a set its texts.
func (r *Reviewer) whole(set *change.Set) (*change.Set, error) {
	return r.desk.Whole(set)
}

// errNothingWritten refuses a change in a session that was opened for reading.
var errNothingWritten = errors.New("this session cannot write files: it was opened without its tools")

// find returns a written change set and the hunks that are meant: the named ones, or all that are not undone. The
// errors name the parameter of the request, since an editor shows them as they are.
func (r *Reviewer) find(id string, hunks []string) (c Change, meant []string, err error) {
	r.ledger.read(func(l *ledger) {
		have := l.changes[id]
		if have == nil {
			err = protocol.NotFound("no change %q in this session; _pillion/change/list shows them", id)
			return
		}
		if have.State != change.Applied {
			err = rpc.InvalidParams("changeSet: %s was %s, not applied", id, have.State)
			return
		}
		c = *have
		all, undone := have.hunks(), toSet(have.undone)
		for _, h := range hunks {
			switch {
			case !toSet(all)[h]:
				err = rpc.InvalidParams("hunks: change %s has no hunk %q", id, h)
				return
			case undone[h]:
				err = rpc.InvalidParams("hunks: %s was undone already", h)
				return
			}
		}
		if meant = hunks; len(hunks) == 0 {
			for _, h := range all {
				if !undone[h] {
					meant = append(meant, h)
				}
			}
		}
		if len(meant) == 0 {
			err = rpc.InvalidParams("changeSet: everything in %s was undone already", id)
		}
	})
	return c, meant, err
}

// toSet is a list as a set.
func toSet(list []string) map[string]bool {
	m := make(map[string]bool, len(list))
	for _, s := range list {
		m[s] = true
	}
	return m
}

// Keep marks hunks as seen and wanted; none named means all that are not undone. It writes no file. It fails with NotFound or InvalidParams
// for a change or a hunk that cannot be kept.
func (r *Reviewer) Keep(ctx context.Context, id string, hunks []string) (protocol.ChangeInfo, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, meant, err := r.find(id, hunks)
	if err != nil {
		return protocol.ChangeInfo{}, err
	}
	// Only the process that writes the session may add to its log.
	err = r.session.Beside(ctx, func(context.Context) error {
		r.session.RecordReview(agent.ReviewData{ChangeSet: id, Kept: meant})
		return nil
	})
	return r.info(id), err
}

// Undo undoes hunks, merged with what was written since; none named means all that are not undone. It fails, names the place and writes
// nothing where the same lines have changed. The person has asked for it, so it needs no approval.
func (r *Reviewer) Undo(ctx context.Context, id string, hunks []string) (protocol.ChangeInfo, error) {
	if err := r.undo(ctx, id, hunks); err != nil {
		return protocol.ChangeInfo{}, err
	}
	return r.info(id), nil
}

// undo is Undo without the answer.
func (r *Reviewer) undo(ctx context.Context, id string, hunks []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, meant, err := r.find(id, hunks)
	if err != nil {
		return err
	}
	if r.files == nil {
		return errNothingWritten
	}
	want := checkpoint.Want{}
	for _, f := range c.Set.Files {
		// The hunks are named one by one, also where all of them are meant: those that were undone before must not be
		// taken back twice.
		ref := change.Ref{Set: id, Path: f.Path}
		for _, h := range f.Hunks {
			if toSet(meant)[h.ID] {
				ref.Hunks = append(ref.Hunks, h.ID)
			}
		}
		if len(ref.Hunks) > 0 {
			want.Refs = append(want.Refs, ref)
		}
	}
	return r.session.Beside(ctx, func(ctx context.Context) error {
		_, err := r.write(ctx, job{id: "chg_" + rand.Text(), call: c.Call, title: strings.TrimSpace("Undo " + c.Set.Title), undoes: id, want: want, all: true})
		return err
	})
}

// job is a change set to be made that undoes others. Its id is fixed before the first attempt, so that the log shows
// attempts at one set and not several sets.
type job struct {
	id     string
	call   string // on whose card it is shown; empty: on none
	title  string
	undoes string // the set that it undoes; empty for a restore
	// after is the number of the event to go back to. It does not count where want names sets or hunks.
	after int64
	want  checkpoint.Want
	all   bool // nothing is written when a file cannot be taken back
}

// planTries is how often a plan is made again because a file was written between the comparison and the write. A
// program that keeps writing the file would otherwise keep the person waiting for ever.
const planTries = 3

// plan compares a job with the files as they are now. With j.all one conflict fails the whole plan, because the
// person has asked for exactly these hunks; a restore leaves such files as they are and lists them.
func (r *Reviewer) plan(j job) (*checkpoint.Plan, error) {
	var steps []checkpoint.Step
	r.ledger.read(func(l *ledger) { steps = l.steps(j.after) })
	p, err := checkpoint.New(j.id, steps, j.want, r.files.Present, r.whole)
	if err != nil {
		return nil, err
	}
	p.Set.Title, p.Set.Undoes, p.Set.SessionID, p.Set.CallID = j.title, j.undoes, r.session.ID(), j.call
	if !j.all {
		return p, nil
	}
	for _, o := range p.Outcomes {
		switch o.Status {
		case checkpoint.Conflict:
			return nil, fmt.Errorf("%s; nothing was undone. Undo the other hunks alone, or change these lines by hand", o.Reason)
		case checkpoint.Failed:
			return nil, fmt.Errorf("%s; nothing was undone", o.Reason)
		}
	}
	return p, nil
}

// write carries out a job; the caller is in Session.Beside or Session.Restore, so this process is the only writer of
// the session. A turn may run beside it, and another program may write a file: then the plan is made again.
func (r *Reviewer) write(ctx context.Context, j job) (*checkpoint.Plan, error) {
	for try := 1; ; try++ {
		p, err := r.plan(j)
		if err != nil {
			return nil, err
		}
		if len(p.Set.Files) == 0 {
			r.mark(p, j)
			return p, nil
		}
		// The intention is in the log before the first byte is written. After a crash the next start finds it there
		// and compares.
		r.session.RecordChange(j.call, change.Writing, p.Set)
		done, err := r.files.Apply(ctx, p.Set)
		if err != nil {
			r.session.RecordChange(j.call, change.Failed, p.Set)
			if try < planTries && ctx.Err() == nil && isStale(err) {
				continue
			}
			return nil, err
		}
		r.session.RecordChange(j.call, change.Applied, done)
		r.mark(p, j)
		return p, nil
	}
}

// mark records what became of the hunks that a plan undid, also of those that were undone in the file already.
func (r *Reviewer) mark(p *checkpoint.Plan, j job) {
	var marks []agent.ReviewData
	r.ledger.read(func(l *ledger) {
		marks = l.marks(p.Set)
		// Somebody has taken the lines out by hand: nothing was written, and the hunks are undone all the same.
		if len(marks) == 0 && len(j.want.Refs) > 0 {
			marks = l.marks(&change.Set{ID: j.id, Files: []change.File{{Takes: j.want.Refs}}})
		}
	})
	for _, m := range marks {
		r.session.RecordReview(m)
	}
}
