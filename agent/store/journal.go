package store

import (
	"context"
	"os"
	"time"
)

// JournalEntry is a change that was begun and not ended: after a crash it is finished or rolled back.
type JournalEntry struct {
	ID      string
	Data    []byte
	Created time.Time
	PID     int // the process that began it; it may still be at work
}

// Begin writes down that a change starts; it is committed before Begin returns. An entry of that id is replaced.
func (s *Store) Begin(ctx context.Context, id string, data []byte) error {
	return s.do(ctx, func(tx tx) error {
		_, err := tx.Exec(`INSERT INTO journal(id, data, created, pid) VALUES (?,?,?,?)
			ON CONFLICT(id) DO UPDATE SET data = excluded.data, created = excluded.created, pid = excluded.pid`, id, data, time.Now().UnixMicro(), os.Getpid())
		return err
	})
}

// End takes the entry out: the change is complete, or was rolled back. An unknown id is fine.
func (s *Store) End(ctx context.Context, id string) error {
	return s.do(ctx, func(tx tx) error {
		_, err := tx.Exec("DELETE FROM journal WHERE id = ?", id)
		return err
	})
}

// Pending lists what was begun and not ended, by any process, the oldest first.
func (s *Store) Pending(ctx context.Context) ([]JournalEntry, error) {
	db, err := s.reader()
	if err != nil {
		return nil, err
	}
	rows, err := db.Query(ctx, "SELECT id, data, created, pid FROM journal ORDER BY created, id")
	if err != nil {
		return nil, s.explain(err)
	}
	defer rows.Close()
	var all []JournalEntry
	for rows.Next() {
		var e JournalEntry
		var created int64
		if err := rows.Scan(&e.ID, &e.Data, &created, &e.PID); err != nil {
			return nil, s.explain(err)
		}
		e.Created = unixMicro(created)
		all = append(all, e)
	}
	return all, s.explain(rows.Err())
}

// Change is a change set of a session as it stands, for review and undo. Data is the owner's JSON.
type Change struct {
	ID      string
	Session string
	Time    time.Time
	State   string
	Data    []byte
}

// PutChange makes or replaces a change; it is committed before PutChange returns.
func (s *Store) PutChange(ctx context.Context, c Change) error {
	return s.do(ctx, func(tx tx) error {
		_, err := tx.Exec(`INSERT INTO changes(id, session, time, state, data) VALUES (?,?,?,?,?)
			ON CONFLICT(session, id) DO UPDATE SET state = excluded.state, data = excluded.data`,
			c.ID, c.Session, c.Time.UnixMicro(), c.State, c.Data)
		return err
	})
}

// Changes lists a session's changes, the oldest first.
func (s *Store) Changes(ctx context.Context, session string) ([]Change, error) {
	db, err := s.reader()
	if err != nil {
		return nil, err
	}
	rows, err := db.Query(ctx, "SELECT id, session, time, state, data FROM changes WHERE session = ? ORDER BY time, rowid", session)
	if err != nil {
		return nil, s.explain(err)
	}
	defer rows.Close()
	var all []Change
	for rows.Next() {
		var c Change
		var micro int64
		if err := rows.Scan(&c.ID, &c.Session, &micro, &c.State, &c.Data); err != nil {
			return nil, s.explain(err)
		}
		c.Time = unixMicro(micro)
		all = append(all, c)
	}
	return all, s.explain(rows.Err())
}
