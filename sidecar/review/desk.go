// Package review is what a person does with changes after they were applied: keep or undo hunks, take files and the
// conversation back to a checkpoint, and decide about what waited when a session was cut off.
//
// A Ledger reads a session's events; a Reviewer decides on what the ledger knows; the Desk keeps decisions about one
// session apart. What is written goes the way of all changes: it is a change set of its own, through the session's
// Files.
package review

import (
	"context"
	"sync"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
)

// Files compares a change with a session's files as they are now, and writes it; *builtin.Writer is one.
type Files interface {
	Apply(ctx context.Context, set *change.Set) (*change.Set, error)
	Present(path string) (text string, exists bool)
	// Check asks the language servers what a change would do; nil where there are none. Nothing is written.
	Check(ctx context.Context, set *change.Set) *change.Verdict
}

// Store is where the changes of sessions are written and their texts kept.
type Store interface {
	// Files are a session's; nil: nothing can be written in it.
	Files(session string) Files
	// Load gives a stored change set the texts that are kept elsewhere.
	Load(set *change.Set) (*change.Set, error)
	// Reopen proposes a change set of a session again, as a tool to be run once; ask is the id of the approval request
	// that was open. false: nothing can be written in it.
	Reopen(session string, set *change.Set, ask string) (tools.Tool, bool)
}

// Desk reviews the changes of all sessions. Decisions about one session are taken one at a time, whichever editors
// they come from: two undos at once would be compared with the same file.
type Desk struct {
	store Store // nil: nothing is kept or written

	mu       sync.Mutex
	deciding map[string]*sync.Mutex // by session: held while somebody decides about its changes; guarded by mu
}

// NewDesk makes a desk over a store.
func NewDesk(store Store) *Desk { return &Desk{store: store, deciding: map[string]*sync.Mutex{}} }

// Writes reports whether decisions can change files.
func (d *Desk) Writes() bool { return d.store != nil }

// Whole gives a change set its texts. It fails when the texts are no longer kept.
func (d *Desk) Whole(set *change.Set) (*change.Set, error) {
	if d.store == nil {
		return set, nil
	}
	return d.store.Load(set)
}

// Check asks the language servers what a change would do to a session's files; nil where there are none.
func (d *Desk) Check(ctx context.Context, session string, set *change.Set) *change.Verdict {
	if d.store == nil {
		return nil
	}
	files := d.store.Files(session)
	if files == nil {
		return nil
	}
	return set.WithVerdict(files.Check(ctx, set)).Verdict // lists that are empty are lists on the wire too
}

// reopen is Store.Reopen; false without a store.
func (d *Desk) reopen(session string, set *change.Set, ask string) (tools.Tool, bool) {
	if d.store == nil {
		return tools.Tool{}, false
	}
	return d.store.Reopen(session, set, ask)
}

// Reviewer reviews the changes that l knows of a session.
func (d *Desk) Reviewer(s *agent.Session, l *Ledger) *Reviewer {
	r := &Reviewer{session: s, ledger: l, desk: d, mu: d.lock(s.ID())}
	if d.store != nil {
		r.files = d.store.Files(s.ID())
	}
	return r
}

// lock is the mutex of a session's decisions. It is never removed: an editor may hold it.
func (d *Desk) lock(session string) *sync.Mutex {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.deciding[session]
	if m == nil {
		m = new(sync.Mutex)
		d.deciding[session] = m
	}
	return m
}
