package store

import (
	"context"
	"database/sql"
)

// backend is the database behind a Store: a file of SQLite, or a PostgreSQL server. The queue and its one writer are the same for both.
type backend interface {
	// open connects and migrates the database to the present schema. All writes go through the result, which has one connection.
	open() (*sql.DB, error)
	// reader returns the pool for reading, given the result of open.
	reader(write *sql.DB) (*sql.DB, error)
	// begin starts a writing transaction on what open made.
	begin(ctx context.Context, w *writeQueue, d *sql.DB) (*sql.Tx, error)
	// bind rewrites a query's ? into the placeholders of the database.
	bind(query string) string
	// clean replaces what the database cannot hold in a text.
	clean(text string) string
	// insert stores the events whose keys are free and returns how many it stored.
	insert(t tx, rows []row) (int64, error)
	// explain turns a failure into a *Problem that tells a person what to do.
	explain(err error) error
	// broken reports a failure of the database rather than of one statement: then the whole transaction has to be repeated.
	broken(err error) bool
	// lock makes the caller a session's only writer among all processes; see Store.Lock.
	lock(ctx context.Context, w *writeQueue, session string) (unlock func(), err error)
	// fenced returns those of the sessions that another process has continued meanwhile. It runs inside the writing transaction.
	fenced(t tx, sessions []string) ([]*FencedError, error)
	// name is the database as people know it, without secrets.
	name() string
}

// row is an event with its key; see eventKey. The event's number is the key's low 32 bits and needs no column.
type row struct {
	key int64
	*Event
}

// tx is a transaction in whose queries ? stands for arguments in every database. ready is nil where the driver prepares statements
// itself.
type tx struct {
	t     *sql.Tx
	b     backend
	ready *prepared
}

// Exec uses a prepared statement where there is one. A missing one is prepared before the next transaction and not at once: SQLite's only
// writing connection is busy with this transaction.
func (t tx) Exec(q string, args ...any) (sql.Result, error) {
	q = t.b.bind(q)
	if st, _ := t.ready.look(q, true); st != nil {
		return t.t.Stmt(st).Exec(args...)
	}
	return t.t.Exec(q, args...)
}

// Query is not prepared: inside a transaction only rare calls ask for many rows.
func (t tx) Query(q string, args ...any) (*sql.Rows, error) { return t.t.Query(t.b.bind(q), args...) }

func (t tx) QueryRow(q string, args ...any) *sql.Row {
	q = t.b.bind(q)
	if st, _ := t.ready.look(q, true); st != nil {
		return t.t.Stmt(st).QueryRow(args...)
	}
	return t.t.QueryRow(q, args...)
}

// db is the pool of reading connections, with ? for arguments in every database. Its methods prepare a statement at its first use.
type db struct {
	d     *sql.DB
	b     backend
	ready *prepared
}

func (d db) Query(ctx context.Context, q string, args ...any) (*sql.Rows, error) {
	q = d.b.bind(q)
	if st := d.ready.get(ctx, q); st != nil {
		return st.QueryContext(ctx, args...)
	}
	return d.d.QueryContext(ctx, q, args...)
}

func (d db) QueryRow(ctx context.Context, q string, args ...any) *sql.Row {
	q = d.b.bind(q)
	if st := d.ready.get(ctx, q); st != nil {
		return st.QueryRowContext(ctx, args...)
	}
	return d.d.QueryRowContext(ctx, q, args...)
}
