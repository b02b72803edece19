package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// migrations only lead forward; the index plus one is the version. An entry that was released is never changed, since its files exist.
var migrations = []string{
	`CREATE TABLE sessions(
		num INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again, so a straggler's events cannot reach another session
		id TEXT NOT NULL UNIQUE, cwd TEXT NOT NULL, title TEXT NOT NULL, parent TEXT NOT NULL,
		created INTEGER NOT NULL, updated INTEGER NOT NULL, -- microseconds since 1970
		info BLOB NOT NULL);
	CREATE INDEX sessions_parent ON sessions(parent) WHERE parent <> '';
	CREATE TABLE events(
		key INTEGER PRIMARY KEY, -- sessions.num << 32 | seq: one b-tree, in reading order, unique per session and seq
		time INTEGER NOT NULL, type TEXT NOT NULL, data BLOB NOT NULL);
	CREATE TABLE grants(
		id INTEGER PRIMARY KEY, project TEXT NOT NULL, permission TEXT NOT NULL, pattern TEXT NOT NULL, created INTEGER NOT NULL,
		UNIQUE(project, permission, pattern));
	CREATE TABLE journal(id TEXT PRIMARY KEY, data BLOB NOT NULL, created INTEGER NOT NULL, pid INTEGER NOT NULL);
	CREATE TABLE changes(
		id TEXT NOT NULL, session TEXT NOT NULL, time INTEGER NOT NULL, state TEXT NOT NULL, data BLOB NOT NULL,
		PRIMARY KEY(session, id));`,
}

// maxSeq is the largest number of an event: the low 32 bits of its key. The session's number has 31 bits, so that a key stays positive.
const maxSeq = 1<<32 - 1

// eventKey joins the numbers of a session and an event. With one integer as the key the table itself is the index, and the events of a
// session are together in reading order.
func eventKey(num, seq int64) int64 { return num<<32 | seq }

// migrate brings the file to the present version. Two processes that start together take turns, and the version is read again inside the
// transaction, because the other one may have migrated. A newer file, or one of another program, is a *Problem and is not changed.
func migrate(ctx context.Context, db *sql.DB, path string) error {
	// Read without a transaction, so that the usual start does not wait for a writer.
	v, err := version(ctx, db)
	if err != nil {
		return err
	}
	if v == len(migrations) {
		return nil
	}
	if v > len(migrations) {
		return &Problem{Kind: ProblemNewer, Path: path, Message: fmt.Sprintf(
			"%s was written by a newer Pillion (schema %d, this one knows %d). It was not changed: update Pillion, or point XDG_STATE_HOME at another folder", path, v, len(migrations))}
	}
	if v == 0 {
		if err := refuseForeign(ctx, db, path); err != nil {
			return err
		}
		// WAL is a property of the file and is set once, outside a transaction, where SQLite allows it. refuseForeign comes before it:
		// not even the header of another program's file may change.
		if _, err := db.ExecContext(ctx, "PRAGMA journal_mode = WAL"); err != nil {
			return err
		}
	}
	tx, err := db.BeginTx(ctx, nil) // immediate: see dsn
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if v, err = version(ctx, tx); err != nil {
		return err
	}
	if v == 0 {
		if _, err := tx.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS schema_version(version INTEGER PRIMARY KEY, applied INTEGER NOT NULL)"); err != nil {
			return err
		}
	}
	for ; v < len(migrations); v++ {
		if _, err := tx.ExecContext(ctx, migrations[v]); err != nil {
			return fmt.Errorf("bringing %s to schema %d: %w", path, v+1, err)
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO schema_version VALUES (?, ?)", v+1, time.Now().UnixMicro()); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// queryer is a database or a transaction.
type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// version is the schema's version; 0 for a file without our tables.
func version(ctx context.Context, db queryer) (v int, err error) {
	var n int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE name = 'schema_version'").Scan(&n); err != nil || n == 0 {
		return 0, err
	}
	err = db.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM schema_version").Scan(&v)
	return v, err
}

// refuseForeign returns a *Problem for a database with other tables than ours: a wrong path in the settings must not change the data of
// another program.
func refuseForeign(ctx context.Context, db queryer, path string) error {
	var n int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'schema_version'").Scan(&n); err != nil {
		return err
	}
	if n > 0 {
		return &Problem{Kind: ProblemForeign, Path: path, Message: path + " is a database of another program. It is left as it is: move it away, or point XDG_STATE_HOME at another folder"}
	}
	return nil
}
