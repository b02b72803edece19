package store

import (
	"context"
	"database/sql"
	"sync"
)

// maxPrepared bounds the statements that one pool keeps: the text of some varies with their lists of types, and those are not worth more.
const maxPrepared = 32

// prepared keeps frequent statements ready to run: SQLite takes longer to parse a query than to answer it. The writer's pool and the
// readers' pool have one each, because a statement belongs to its pool. A nil prepared keeps nothing: PostgreSQL's driver prepares by
// itself.
type prepared struct {
	d *sql.DB

	mu     sync.Mutex
	ready  map[string]*sql.Stmt // guarded by mu
	wanted map[string]bool      // guarded by mu: queries seen in a transaction, which occupies the connection that would prepare them
}

func newPrepared(d *sql.DB) *prepared {
	return &prepared{d: d, ready: map[string]*sql.Stmt{}, wanted: map[string]bool{}}
}

// get returns the prepared statement of a query and prepares it when it is missing. nil means that there is no room or that preparing
// failed: then the caller runs the text, which gives the error.
func (p *prepared) get(ctx context.Context, q string) *sql.Stmt {
	// The lock is not held while a statement is prepared, so two readers may prepare the same one; put keeps one.
	st, room := p.look(q, false)
	if st != nil || !room {
		return st
	}
	st, err := p.d.PrepareContext(ctx, q)
	if err != nil {
		return nil // running the text gives the error
	}
	return p.put(q, st)
}

// look returns a statement that is ready, without preparing any. With want a missing one is noted, and prepared before the next
// transaction.
func (p *prepared) look(q string, want bool) (st *sql.Stmt, room bool) {
	if p == nil {
		return nil, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	st, room = p.ready[q], len(p.ready) < maxPrepared
	if want && st == nil && room && len(p.wanted) < maxPrepared {
		p.wanted[q] = true
	}
	return st, room
}

// put keeps the first of two statements that were prepared at once, and closes the other.
func (p *prepared) put(q string, st *sql.Stmt) *sql.Stmt {
	p.mu.Lock()
	defer p.mu.Unlock()
	if had := p.ready[q]; had != nil {
		_ = st.Close()
		return had
	}
	p.ready[q] = st
	return st
}

// prepare makes the statements that transactions have asked for so far. The writer calls it while no transaction is open.
func (p *prepared) prepare(ctx context.Context) {
	if p == nil {
		return
	}
	p.mu.Lock()
	// The map is taken as a whole; queries that are seen meanwhile go into the next one.
	wanted := p.wanted
	if len(wanted) > 0 {
		p.wanted = map[string]bool{}
	}
	p.mu.Unlock()
	for q := range wanted {
		p.get(ctx, q)
	}
}
