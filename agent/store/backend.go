package store

import (
	"context"
	"database/sql"
)

// backend is the database behind a Store: a file of SQLite, or a PostgreSQL server. Everything else, above all the
// queue and its one writer, is the same for both.
type backend interface {
	// open connects and brings the database to our version. All writes go through the result, one at a time.
	open() (*sql.DB, error)
	// reader is the pool that reads, given what open made.
	reader(write *sql.DB) (*sql.DB, error)
	// begin starts a writing transaction on what open made.
	begin(ctx context.Context, s *Store, d *sql.DB) (*sql.Tx, error)
	// bind writes a query's ? the way the database wants them.
	bind(query string) string
	// clean is a text as the database can hold it.
	clean(text string) string
	// insert stores events whose keys are free and says how many those were.
	insert(t tx, rows []row) (int64, error)
	// explain turns a failure into a Problem with the next move.
	explain(err error) error
	// broken reports failures of the database rather than of one statement.
	broken(err error) bool
	// lock makes the caller a session's only writer; see Store.Lock.
	lock(ctx context.Context, s *Store, session string) (unlock func(), err error)
	// fenced returns those of the sessions that another process has continued meanwhile.
	fenced(t tx, sessions []string) ([]*FencedError, error)
	// name is the database, for people.
	name() string
}

// row is an event with its key; see eventKey.
// The event's number is in the key's low 32 bits, so a row has no column for it.
type row struct {
	key int64
	*Event
}

// tx is a transaction that takes ? in every database.
// ready is nil where the driver keeps statements itself.
type tx struct {
	t     *sql.Tx
	b     backend
	ready *prepared
}

// Exec uses a prepared statement where there is one. One that is missing is made before the next transaction, not now: SQLite's
// only writing connection is busy with this one.
func (t tx) Exec(q string, args ...any) (sql.Result, error) {
	q = t.b.bind(q)
	if st, _ := t.ready.look(q, true); st != nil {
		return t.t.Stmt(st).Exec(args...)
	}
	return t.t.Exec(q, args...)
}

func (t tx) Query(q string, args ...any) (*sql.Rows, error) { return t.t.Query(t.b.bind(q), args...) }

func (t tx) QueryRow(q string, args ...any) *sql.Row {
	q = t.b.bind(q)
	if st, _ := t.ready.look(q, true); st != nil {
		return t.t.Stmt(st).QueryRow(args...)
	}
	return t.t.QueryRow(q, args...)
}

// db is the pool of reading connections, with ? for arguments in every database.
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
