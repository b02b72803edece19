package main

import (
	"context"
	"sync"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/tools/change"
)

// ReviewFiles compares a change with a session's files as they are now, and writes it; *builtin.Writer is one.
type ReviewFiles interface {
	Apply(ctx context.Context, set *change.Set) (*change.Set, error)
	Present(path string) (text string, exists bool)
}

// ChangeStore is where the changes of sessions are written and their texts kept.
type ChangeStore interface {
	// Files are a session's; nil: nothing can be written in it.
	Files(session string) ReviewFiles
	// Load gives a stored change set the texts that are kept elsewhere.
	Load(set *change.Set) (*change.Set, error)
}

// Desk is where the changes of all sessions are reviewed. Decisions about one session are taken one at a time,
// whichever editors they come from.
type Desk struct {
	store ChangeStore // nil: nothing is kept or written

	mu       sync.Mutex
	deciding map[string]*sync.Mutex // by session: held while somebody decides about its changes; guarded by mu
}

// NewDesk makes a desk over a store.
func NewDesk(store ChangeStore) *Desk { return &Desk{store: store, deciding: map[string]*sync.Mutex{}} }

// Writes reports whether decisions can change files.
func (d *Desk) Writes() bool { return d.store != nil }

// Whole gives a change set its texts.
func (d *Desk) Whole(set *change.Set) (*change.Set, error) {
	if d.store == nil {
		return set, nil
	}
	return d.store.Load(set)
}

// Reviewer reviews the changes that l knows of a session.
func (d *Desk) Reviewer(s *agent.Session, l *Ledger) *reviewer {
	r := &reviewer{session: s, ledger: l, desk: d, mu: d.lock(s.ID())}
	if d.store != nil {
		r.files = d.store.Files(s.ID())
	}
	return r
}

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
