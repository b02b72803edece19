package store

import (
	"context"
	"database/sql"
	"sync"
)

// maxPrepared bounds the statements one pool keeps; the few whose text varies (lists of types) are not worth more.
const maxPrepared = 32

// prepared keeps what is asked again and again ready to run: SQLite takes longer to parse a query than to answer it. A nil one
// keeps nothing: PostgreSQL's driver does so itself.
// The writer's pool and the readers' pool have one each, since a statement belongs to its pool.
type prepared struct {
	d *sql.DB

	mu     sync.Mutex
	ready  map[string]*sql.Stmt // guarded by mu
	wanted map[string]bool      // guarded by mu: seen in a transaction, which holds the connection they would be made on
}

func newPrepared(d *sql.DB) *prepared {
	return &prepared{d: d, ready: map[string]*sql.Stmt{}, wanted: map[string]bool{}}
}

// get is the prepared statement of a query, made when it is missing. nil means that there is no room or that it failed to parse: the
// caller runs the text, which gives the error.
func (p *prepared) get(ctx context.Context, q string) *sql.Stmt {
	// The lock is not held while a statement is prepared, so two readers may both prepare it; put keeps one.
	st, room := p.look(q, false)
	if st != nil || !room {
		return st
	}
	st, err := p.d.PrepareContext(ctx, q)
	if err != nil {
		return nil // the query itself says what is wrong
	}
	return p.put(q, st)
}

// look is get within a transaction: what is not ready will be before the next one begins.
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

// put keeps the first of two that were made at once.
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
	// The map is taken as a whole; what is asked for meanwhile goes into the next one.
	wanted := p.wanted
	if len(wanted) > 0 {
		p.wanted = map[string]bool{}
	}
	p.mu.Unlock()
	for q := range wanted {
		p.get(ctx, q)
	}
}
